"""Where the memory of a task is, against an accepted run and against the run before: bytes, no statistics.

An allocator's figures are exact. A task that is made and run alone in a fresh process asks for the same blocks every
time, so that one look a night is enough and every difference has a cause. How far two figures must be apart is what an
allocator moves in: blocks of 512 bytes, of which a library may take a few more for itself, and whole segments. Named
storage is the sum of the tensors' own sizes, which the task chose: there a single byte counts.

Both comparisons count. The baseline shows what has added up since somebody looked, the run before what is new tonight,
where the baseline is of another device or environment, too. Figures of an allocator are compared on the same device, in
the same class of environment and with the same settings of the library; named storage on any device, and where it is
the same even of another payload.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regression.detectors.findings import Found, names, text_of, worst_of
from regression.detectors.verdict import CheckVerdict, Problem, Verdict

CHECK = "memory"
UNIT = "bytes"
NOT_HERE = ("no_memory_account",)
"""Codes of records that say that the workload has no such thing."""
BLOCK_BYTES, SEGMENT_BYTES = 512, 2 * 1024 * 1024
"""What torch's allocator rounds a tensor up to, and the smallest piece that it takes from the device."""


@dataclass(frozen=True)
class MemoryFigure:
    """A figure of the account. A difference counts from ``least`` bytes on."""

    name: str
    words: str
    least: int
    of_allocator: bool = True


PEAK_ALLOCATED = MemoryFigure("peak_allocated_memory", "peak allocated", 8 * BLOCK_BYTES)
PEAK_RESERVED = MemoryFigure("peak_reserved_memory", "peak reserved", SEGMENT_BYTES)
NAMED = MemoryFigure("named_storage", "named storage", 1, of_allocator=False)
UNASSIGNED = MemoryFigure("unassigned_memory", "allocated behind no named tensor", 8 * BLOCK_BYTES)
FIGURES = (PEAK_ALLOCATED, PEAK_RESERVED, NAMED, UNASSIGNED)


@dataclass(frozen=True)
class MemoryConditions:
    """Where a task was made; ``settings`` are those of its library by name. None or absent: not known."""

    device: str
    uuid: str
    payload_manifest_sha256: str | None
    environment_class: str | None
    settings: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class MemoryAccount:
    """The memory of one run's task. ``name`` is for messages; ``figures`` are bytes by the names of ``FIGURES``.

    ``tensors`` has the bytes of each named one. ``no_allocator`` is set where no allocator counts, ``problem`` where
    the account could not be made.
    """

    name: str
    conditions: MemoryConditions
    figures: Mapping[str, int | None]
    tensors: Mapping[str, int] = field(default_factory=dict)
    no_allocator: Problem | None = None
    problem: Problem | None = None


@dataclass(frozen=True)
class _Compared:
    """One figure beside the same figure of another account."""

    verdict: Verdict
    other: MemoryAccount
    place: str
    before: int
    difference: int

    def __str__(self) -> str:
        where = f"{self.place} {self.other.name}"
        if not self.difference:
            return f"as in {where}"
        percent = f", {abs(self.difference / self.before) * 100:.2g} %" if self.before else ""
        return f"{self.difference:+,} bytes against {where} ({self.before:,} bytes{percent})"


def judge_memory(
    run: MemoryAccount | None,
    baseline: MemoryAccount | None,
    before: MemoryAccount | None,
    problem: Problem | None = None,
) -> CheckVerdict:
    """Judge the memory of a run (None: nobody looked; ``problem`` is then the run's own) against both.

    More is ``regressed``, less ``improved``. Where neither of the two can be compared with, ``inconclusive``; where
    nothing was measured that can be used, ``invalid``; for a workload without an account, ``unavailable``.
    """
    if run is None:
        found = problem or Problem("invalid_measurement", "no_memory_record", "no record says why")
        text = f"the memory of the task was not looked at: {found.message}"
        return _plain(Found(Verdict.INVALID, found.code, text), None)
    if run.problem:
        verdict = Verdict.UNAVAILABLE if run.problem.code in NOT_HERE else Verdict.INVALID
        text = f"the memory of the task could not be measured: {run.problem.message}"
        return _plain(Found(verdict, run.problem.code, text), run)
    others = [("baseline", baseline), ("the run before,", before)]
    known = [(place, other) for place, other in others if other is not None]
    judged = [_judge_figure(run, figure, known) for figure in FIGURES]
    findings = [one for one in judged if one is not None]
    return _verdict(run, findings, baseline, before)


def another_account(
    mine: MemoryConditions, other: MemoryConditions, name: str, figure: MemoryFigure
) -> tuple[str, str] | None:
    """Reason code and text where ``figure`` of the account ``name`` is not to be compared; None where it is."""
    if mine.payload_manifest_sha256 is None or mine.payload_manifest_sha256 != other.payload_manifest_sha256:
        return "baseline_other_payload", f"{name} is of another payload"
    if not figure.of_allocator:
        return None
    if mine.device != other.device:
        return "baseline_other_device", f"{name} is of {other.device}, this is {mine.device}"
    if mine.environment_class != other.environment_class:
        text = f"{name} ran in [{other.environment_class}], this run in [{mine.environment_class}]"
        return "baseline_other_environment", text
    changed = other_settings(mine.settings, other.settings)
    if changed:
        return "baseline_other_settings", f"{name} was made with other settings: {names(changed)}"
    return None


def other_settings(mine: Mapping[str, str | None], other: Mapping[str, str | None]) -> list[str]:
    """Settings that both say and that differ, in words."""
    both = sorted(mine.keys() & other.keys())
    return [f"{name} {other[name]} -> {mine[name]}" for name in both if mine[name] != other[name]]


def _judge_figure(
    run: MemoryAccount, figure: MemoryFigure, others: Sequence[tuple[str, MemoryAccount]]
) -> Found | None:
    """What one figure shows; None where this device has none, and never had."""
    value = run.figures.get(figure.name)
    if value is None:
        return _without(run, figure, others)
    if value < 0:
        text = f"{figure.words}: {value:,} bytes cannot be"
        return Found(Verdict.INVALID, "impossible_figure", text, details={"figure": figure.name, "value": value})
    compared, obstacles = [], []
    for place, other in others:
        obstacle = another_account(run.conditions, other.conditions, f"{place} {other.name}", figure)
        theirs = other.figures.get(figure.name)
        if obstacle is None and theirs is None:
            obstacle = "baseline_without_figure", f"{place} {other.name} has none"
        if obstacle is not None and (figure.of_allocator or theirs != value):
            obstacles.append(obstacle)
        elif theirs is not None:
            compared.append(_compare(value, theirs, figure, other, place))
    if not compared:
        code, why = obstacles[0] if obstacles else ("no_baseline", "no accepted baseline, and no good run before")
        details = {"figure": figure.name, "value": value}
        return Found(Verdict.INCONCLUSIVE, code, f"{figure.words} {value:,} bytes not judged: {why}", details=details)
    return _found(run, figure, value, compared)


def _without(run: MemoryAccount, figure: MemoryFigure, others: Sequence[tuple[str, MemoryAccount]]) -> Found | None:
    details = {"figure": figure.name, "value": None}
    if not (figure.of_allocator and run.no_allocator):
        text = f"{figure.words}: no figure, and no record says why"
        return Found(Verdict.INVALID, "figure_missing", text, details=details)
    had = [
        other.name
        for _, other in others
        if other.conditions.uuid == run.conditions.uuid and other.figures.get(figure.name) is not None
    ]
    if not had:
        return None
    text = f"{figure.words} is gone ({run.no_allocator.message}): {had[0]} of the same device has it"
    return Found(Verdict.INVALID, "memory_vanished", text, details=details)


def _compare(value: int, theirs: int, figure: MemoryFigure, other: MemoryAccount, place: str) -> _Compared:
    difference = value - theirs
    verdict = Verdict.OK
    if abs(difference) >= figure.least:
        verdict = Verdict.REGRESSED if difference > 0 else Verdict.IMPROVED
    return _Compared(verdict, other, place, theirs, difference)


def _found(run: MemoryAccount, figure: MemoryFigure, value: int, compared: Sequence[_Compared]) -> Found:
    """The worse of the comparisons, the baseline's first; the others are told with it."""
    order = (Verdict.REGRESSED, Verdict.IMPROVED, Verdict.OK)
    worst = min(compared, key=lambda found: order.index(found.verdict))
    told = [worst, *(found for found in compared if found is not worst)]
    direction, code = None, "same_memory"
    if worst.verdict is not Verdict.OK:
        direction = "higher" if worst.difference > 0 else "lower"
        code = f"memory_{direction}"
    elif worst.difference:
        code = "below_least_difference"
    text = f"{figure.words} {value:,} bytes, {', '.join(map(str, told))}"
    if figure is NAMED and worst.difference:
        text += _tensors(run.tensors, worst.other.tensors)
    elif code == "below_least_difference":
        text += f"; a difference counts from {figure.least:,} bytes on"
    details = {
        "figure": figure.name,
        "value": value,
        "baseline_value": worst.before,
        "compared": [{"with": f"{c.place} {c.other.name}", "bytes": c.before} for c in compared],
    }
    return Found(worst.verdict, code, text, direction, details)


def _tensors(mine: Mapping[str, int], theirs: Mapping[str, int]) -> str:
    """The tensors that account for the most of it; a tensor that shares its storage is told like any other."""
    if not mine or not theirs:
        return ""
    moved = {name: mine.get(name, 0) - theirs.get(name, 0) for name in mine.keys() | theirs.keys()}
    by_size = sorted((name for name, difference in moved.items() if difference), key=lambda n: (-abs(moved[n]), n))
    told = [f"{name} {moved[name]:+,}{_is_new(name, mine, theirs)}" for name in by_size]
    return f"; tensors: {names(told)}" if told else ""


def _is_new(name: str, mine: Mapping[str, int], theirs: Mapping[str, int]) -> str:
    return " (new)" if name not in theirs else " (gone)" if name not in mine else ""


def _verdict(
    run: MemoryAccount, findings: list[Found], baseline: MemoryAccount | None, before: MemoryAccount | None
) -> CheckVerdict:
    deciding = worst_of(findings)
    text = text_of(findings, len(FIGURES))
    if run.no_allocator and deciding.verdict is not Verdict.INVALID:
        text += f"; nothing else is counted here: {run.no_allocator.message}"
    figure = deciding.details["figure"]
    return CheckVerdict(
        check=CHECK,
        verdict=deciding.verdict,
        metric=figure,
        unit=UNIT,
        reason_code=deciding.code,
        reason=text,
        value=deciding.details.get("value"),
        baseline_value=deciding.details.get("baseline_value"),
        direction=deciding.direction,
        details={
            "figures": {f.details["figure"]: {**f.as_json(), "reason_code": f.code} for f in findings},
            "unavailable": run.no_allocator.code if run.no_allocator else None,
            "baseline": baseline.name if baseline else None,
            "run_before": before.name if before else None,
        },
    )


def _plain(found: Found, run: MemoryAccount | None) -> CheckVerdict:
    details: dict[str, Any] = {"figures": {}, "account": run.name if run else None}
    return CheckVerdict(CHECK, found.verdict, PEAK_ALLOCATED.name, UNIT, found.code, found.text, details=details)
