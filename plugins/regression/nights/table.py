"""The verdict of a run for people."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from regression.detectors import Verdict
from regression.results.gates import GateLine
from regression.results.history import SHAM
from regression.results.outcome import CheckLine, FigureLine, Look, RunVerdict

FIRST = (
    *("agreement", "compare_predictions", "qualification", "repeatability"),
    *("energy", "compare_energy", "time", "compare_time", "memory", "environment"),
)
HISTORY = "_history"
LONGEST_LINE = 92
"""Characters of a line of a reason; what is longer goes on under it, where a terminal would break it anywhere."""


def verdict_table(verdict: RunVerdict) -> str:
    """One line a check, the energy figures and the gates that did not pass, then what ran and the verdict."""
    absent = [name for name in sorted(verdict.checks) if _looks_back_at_nothing(name, verdict.checks[name])]
    told = sorted(verdict.checks.keys() - absent, key=_place)
    checks = [row for name in told for row in _check(name, verdict.checks[name])]
    rows = [*checks, *([_histories(absent)] if absent else [])]
    lines = aligned([("check", "verdict", "reason"), *rows]) if rows else []
    if verdict.confirmation_rounds:
        more = f"{verdict.confirmation_rounds} more rounds, as the first ones left the spread of their baseline"
        lines += ["", f"confirmation: {more}"]
    if verdict.figures:
        lines += ["", *aligned([_FIGURE_HEAD, *map(_figure_row, verdict.figures)])]
    if verdict.gates and verdict.energy_trust != "unavailable":
        lines += ["", *aligned([_GATE_HEAD, *map(_gate_row, verdict.gates)])]
    agreed = "no predictions" if not verdict.total else f"{verdict.agreed} of {verdict.total} predictions agree"
    lines += ["", f"{verdict.workload or 'nothing'} on {verdict.device or 'no device'}: {agreed}, run {verdict.run_id}"]
    if verdict.variant:
        lines.append(f"kernels: {verdict.variant}, {_ptx_text(verdict.ptx_sha256)}")
    lines.append(f"verdict: {verdict.verdict.replace('_', ' ')} (exit {verdict.exit_code})")
    return "\n".join(lines).lstrip("\n")


def _place(name: str) -> tuple[int, str]:
    """What decides comes first, what looks back last."""
    return (FIRST.index(name) if name in FIRST else len(FIRST), name)


def _looks_back_at_nothing(name: str, line: CheckLine) -> bool:
    """A device without a figure has no history of it, and the check of the night itself has said why."""
    return name.endswith(HISTORY) and line.verdict == Verdict.UNAVAILABLE.value


def _histories(absent: Sequence[str]) -> tuple[str, ...]:
    metrics = ", ".join(name.removesuffix(HISTORY).replace("_", " ") for name in absent)
    return ("histories", Verdict.UNAVAILABLE.value, f"this device has none of {metrics}")


def _check(name: str, line: CheckLine) -> list[tuple[str, ...]]:
    """One row, or both looks where they say two things: that at the first rounds, and the one that counts."""
    if line.first in (None, Look(line.verdict, line.reason)):
        return [(name, line.verdict, line.reason)]
    first = (f"{name}, first rounds", line.first.verdict, line.first.reason)
    return [first, (f"{name}, all rounds", line.verdict, line.reason)]


_FIGURE_HEAD = ("energy of", "figure", "rounds", "median mJ", "sd mJ", "detectable mJ")
_GATE_HEAD = ("gate", "where", "", "reason")


def _figure_row(line: FigureLine) -> tuple[str, ...]:
    """A difference of two kernels has a sign; that of idle with idle is what the protocol reads of nothing."""
    subject = f"nothing ({SHAM})" if line.subject == SHAM else line.subject
    median = f"{line.median_mj:+.6g}" if " - " in line.subject else f"{line.median_mj:.6g}"
    return (subject, line.figure, str(line.rounds), median, _mj(line.sample_sd_mj), _mj(line.detectable_mj))


def _gate_row(line: GateLine) -> tuple[str, ...]:
    return (line.gate, line.at, "failed" if line.passed is False else "unchecked", line.reason)


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns as wide as their widest word; the last one in as many lines as it takes."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    margin = " " * (2 + sum(width + 2 for width in widths))
    lines = []
    for row in rows:
        words = [f"{word:<{width}}" for word, width in zip(row, widths, strict=False)]
        first, *more = _in_lines(row[-1])
        lines += ["  " + "  ".join([*words, first]), *(margin + line for line in more)]
    return lines


def _in_lines(reason: str) -> list[str]:
    return textwrap.wrap(reason, LONGEST_LINE, break_long_words=False, break_on_hyphens=False) or [""]


def _mj(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _ptx_text(sha256: str | None) -> str:
    return f"PTX sha256 {sha256}" if sha256 else "no PTX"
