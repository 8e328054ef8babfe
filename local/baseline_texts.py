"""What the commands about baselines print; rows in, lines out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from regression.results.baseline_reports import BaselineRow, DrawRow, RoundRow, Withdrawn
from regression.results.comparisons import Compared

NONE = ["no baselines: accept a run with `./nightly baseline accept RUN --reason TEXT`"]
ENOUGH_ROUNDS = 14
"""Fewer leave the width of the spread to chance, and with it every later night (docs/baselines.md)."""
BOARD = len("GPU-98d97ad6")  # enough of a uuid to tell boards apart; `show` and --json have all of it


def table(rows: Sequence[BaselineRow], *, ended: bool) -> list[str]:
    """One line a baseline: its key, its run, what it is for, the trust in its energy, who, when and why."""
    if not rows:
        return NONE
    key = ("workload", "payload", "device", "board", "protocol", "environment")
    cells = [[*key, "run", "for", "energy", "accepted", "by", *(["ended"] if ended else []), "why"]]
    for row in rows:
        cells.append(
            [
                *(row.workload, row.payload, row.device, row.device_uuid[:BOARD], row.protocol, row.environment_class),
                *(row.run_id[:8], ", ".join(row.purposes), row.energy_trust, day(row.accepted_at), row.accepted_by),
                *([day(row.retired_at) if row.retired_at else "-"] if ended else []),
                row.reason + (f"; ended by {row.retired_by}: {row.retired_reason}" if row.retired_reason else ""),
            ]
        )
    return aligned(cells)


def shown(
    row: BaselineRow,
    *,
    draws: Sequence[DrawRow],
    rounds: Sequence[RoundRow],
    withdrawals: Sequence[Withdrawn],
    history: Sequence[BaselineRow],
    compared: Sequence[Compared],
) -> list[str]:
    """Everything that one baseline is made of, and what came before it."""
    state = "current" if row.retired_at is None else f"ended {minute(row.retired_at)}: {row.retired_reason}"
    kernel = f"{row.kernel_variant or 'unnamed'}, PTX sha256 {row.kernel_ptx_sha256 or 'unknown'}"
    lines = [
        f"run {row.run_id} ({row.dag_id}/{row.dag_run_id}, {minute(row.started_at)})",
        f"state:     {state}",
        f"accepted:  {minute(row.accepted_at)} by {row.accepted_by}: {row.reason}",
        *_key_lines(row),
        f"kernel:    {kernel}",
    ]
    for withdrawal in withdrawals:
        instead = f"; use run {withdrawal.successor_run_id} instead" if withdrawal.successor_run_id else ""
        what = f"{withdrawal.scope}, {minute(withdrawal.withdrawn_at)} by {withdrawal.withdrawn_by}"
        lines.append(f"withdrawn: {what}: {withdrawal.reason}{instead}")
    lines += ["", *_agreement(draws), "", *_rounds(rounds), "", *_spread(row)]
    lines += ["", *_compared_lines(compared, "nothing is compared with it")]
    return [*lines, "", "baselines of this key:", *table_of_history(history, row.baseline_id)]


def accepted(
    row: BaselineRow, *, replaced: BaselineRow | None, compared: Sequence[Compared], alerts: Mapping[int, str]
) -> list[str]:
    """What an acceptance did: what it replaced, by how much the figures differ, and what is compared with it now.

    ``alerts`` are those of the device that are not resolved, each with its metric, direction and state.
    """
    lines = [
        f"accepted:  run {row.run_id} ({row.dag_run_id}, {day(row.started_at)}), by {row.accepted_by}: {row.reason}",
        *_key_lines(row),
    ]
    if not row.for_energy and row.energy_trust != "unavailable":
        lines.append(f"           not for energy: {_why_not_energy(row)}")
    if not row.has_gpu_time:
        lines.append(f"           not for time: those of the {row.device_kind} device are a CPU's, and never judged")
    if row.rounds_valid < ENOUGH_ROUNDS and ({"energy", "time"} & {*row.purposes}):
        advice = f"a run of {ENOUGH_ROUNDS} or more (--param rounds={ENOUGH_ROUNDS}) cries wolf less often"
        lines.append(f"           of {row.rounds_valid} valid rounds, which judge every later night: {advice}")
    if replaced is None:
        lines.append("replaced:  nothing, it is the first of its key or the one before had ended")
    else:
        lines.append(f"replaced:  {_named(replaced)}, for {', '.join(replaced.purposes)}")
        lines += _differences(replaced, row)
        lost = [purpose for purpose in replaced.purposes if purpose not in row.purposes]
        if lost:
            lines.append(f"           this key has no baseline for {', '.join(lost)} any more")
    lines += _compared_lines(compared, "no run that is stored; the next one of its key will be")
    lines += [
        f"alert {n} of this device is not resolved ({what}): ./nightly alerts show {n}" for n, what in alerts.items()
    ]
    return lines


def ended(row: BaselineRow, compared: Iterable[Compared], scope: str | None = None) -> list[str]:
    """What the end of a baseline means for those that were compared with it."""
    lines = [f"ended:     {_named(row)}, for {', '.join(row.purposes)}"]
    same = [each for each in compared if _concerns(each, row)]
    for purpose in row.purposes:
        now = {each.baseline_id for each in same if each.purpose == purpose}
        found = f"baseline {', '.join(map(str, sorted(now)))}" if now else "nothing: that check will be inconclusive"
        lines.append(f"           {purpose} of {row.device} ({row.device_uuid}): compared with {found}")
    rest = [purpose for purpose in row.purposes if purpose != "energy"]
    if scope == "energy" and rest:
        again = f"./nightly baseline accept {row.run_id[:8]} --no-energy --reason TEXT"
        lines.append(f"           to keep it for {' and '.join(rest)}: {again}")
    return lines


def table_of_history(history: Sequence[BaselineRow], baseline_id: int) -> list[str]:
    """From when to when each baseline of a key was current, with its figures; ``*`` marks the one that is shown."""
    head = ["", "from", "to", "run", "for", "agreed", "energy mJ", "cuda ms", "by", "why"]
    cells = [head]
    for row in history:
        why = row.reason + (f"; ended by {row.retired_by or 'unknown'}: {row.retired_reason}" if row.retired_at else "")
        cells.append(
            [
                "*" if row.baseline_id == baseline_id else "",
                minute(row.accepted_at),
                minute(row.retired_at) if row.retired_at else "now",
                *(row.run_id[:8], ", ".join(row.purposes), _agreed(row)),
                *(number(row.adjusted_mj_median), number(row.cuda_ms_median), row.accepted_by, why),
            ]
        )
    return aligned(cells)


def _key_lines(row: BaselineRow) -> list[str]:
    energy = f" (energy {row.energy_trust})" if row.energy_trust != "unavailable" else ""
    return [
        f"key:       {row.workload}, payload {row.payload}, {row.device} ({row.device_uuid}), {row.protocol}, "
        f"{row.environment_class}",
        f"for:       {', '.join(row.purposes) or 'nothing'}{energy}",
    ]


def _why_not_energy(row: BaselineRow) -> str:
    if row.energy_trust == "unverified":
        why = f" because {row.energy_trust_reason}" if row.energy_trust_reason else ""
        return f"it is unverified{why}; say --energy-unverified to accept it by name"
    if row.energy_trust == "failed":
        return f"its telemetry gates failed{f': {row.energy_trust_reason}' if row.energy_trust_reason else ''}"
    return "it was withdrawn, or not asked for"


def _agreement(draws: Sequence[DrawRow]) -> list[str]:
    cells = [["case", "agreed", "total", "indices that disagree"]]
    for draw in draws:
        indices = [str(mismatch["index"]) for mismatch in draw.mismatches]
        more = f" and {len(indices) - 10} more" if len(indices) > 10 else ""
        cells.append([draw.case_name, _count(draw.agreed), _count(draw.total), ", ".join(indices[:10]) + more or "-"])
    return aligned(cells)


def _rounds(rounds: Sequence[RoundRow]) -> list[str]:
    cells = [["arm", "round", "cuda ms", "wall ms", "energy mJ", "valid"]]
    for row in rounds:
        valid = "yes" if row.valid else f"no: {row.reason_code}"
        figures = (number(row.cuda_ms), number(row.wall_ms), number(row.adjusted_mj))
        cells.append([row.arm, str(row.round), *figures, valid])
    return aligned(cells)


def _spread(row: BaselineRow) -> list[str]:
    lines = [f"agreement: {_agreed(row)} predictions"]
    if row.adjusted_mj_median is not None:
        spread = f"spread {number(row.adjusted_mj_min)} to {number(row.adjusted_mj_max)}"
        deviation = f", sd {number(row.adjusted_mj_sample_sd)}" if row.adjusted_mj_sample_sd is not None else ""
        lines.append(f"energy:    median {number(row.adjusted_mj_median)} mJ a replay, {spread}{deviation}")
    times = {"cuda": row.cuda_ms_median, "wall": row.wall_ms_median}
    told = [f"{name} {number(value)} ms" for name, value in times.items() if value is not None]
    return [*lines, *([f"time:      median a replay {', '.join(told)}"] if told else [])]


def _differences(before: BaselineRow, after: BaselineRow) -> list[str]:
    """From the figures of the baseline before to those of the new one, so that what was accepted is seen."""
    lines = [f"           predictions {_agreed(before)} -> {_agreed(after)}"]
    for name, unit in (("adjusted_mj", "mJ"), ("cuda_ms", "ms"), ("wall_ms", "ms")):
        old, new = getattr(before, f"{name}_median"), getattr(after, f"{name}_median")
        if old is not None and new is not None:
            percent = f" ({100 * (new - old) / abs(old):+.2f} %)" if old else ""
            what = {"adjusted_mj": "energy", "cuda_ms": "CUDA time", "wall_ms": "wall time"}[name]
            lines.append(f"           {what} {number(old)} -> {number(new)} {unit}{percent}")
    if before.kernel_ptx_sha256 != after.kernel_ptx_sha256:
        old, new = ((row.kernel_ptx_sha256 or "unknown")[:12] for row in (before, after))
        lines.append(f"           kernel PTX {old} -> {new}")
    return lines


def _compared_lines(compared: Sequence[Compared], none: str) -> list[str]:
    if not compared:
        return [f"compared with it: {none}"]
    cells = [
        [each.purpose, f"{each.workload}, payload {each.payload}", f"{each.device} ({each.device_uuid})", _where(each)]
        for each in compared
    ]
    return ["compared with it:", *aligned(cells)]


def _where(each: Compared) -> str:
    return ", ".join(word for word in (each.protocol, each.environment_class) if word) or "any protocol and environment"


def _concerns(each: Compared, row: BaselineRow) -> bool:
    same = (each.workload, each.payload, each.device_uuid) == (row.workload, row.payload, row.device_uuid)
    return same and (each.protocol is None or each.protocol == row.protocol)


def _named(row: BaselineRow) -> str:
    return f"run {row.run_id} ({row.dag_run_id}), accepted by {row.accepted_by} on {day(row.accepted_at)}: {row.reason}"


def _agreed(row: BaselineRow) -> str:
    return "none" if row.total is None else f"{row.agreed} of {row.total}"


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)


def number(value: float | None) -> str:
    """A figure with six digits; ``-`` for one that is not there."""
    return "-" if value is None else f"{value:.6g}"


def day(moment: datetime) -> str:
    """Date in UTC."""
    return f"{moment.astimezone(UTC):%Y-%m-%d}"


def minute(moment: datetime) -> str:
    """Date and minute in UTC."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest word; the last one is left as it is."""
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]) - 1)]
    lines = []
    for row in cells:
        padded = [f"{word:<{width}}" for word, width in zip(row, widths, strict=False)]
        lines.append(("  " + "  ".join([*padded, row[-1]])).rstrip())
    return lines
