"""CUDA time against the round spread of the baseline: the rule of the energy, with a floor.

The run's median over its valid rounds is compared with [min, max] of the baseline's valid rounds (``spread``). Times
repeat so well that a change can be certain and of no interest: one that is smaller than ``RELATIVE_FLOOR`` of the
baseline's median, or than the timer tells apart, is fine and said. Less time is an improvement. Times are compared on
the same device, payload, protocol, class of environment and power limit only, and never those of a CPU.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from regression.detectors.conditions import (
    MeasurementConditions,
    another_measurement,
    kernel_changed,
    not_compared,
    other_surroundings,
)
from regression.detectors.rounds import LEAST_BASELINE_ROUNDS, WITHOUT_SPREAD, few_rounds, nothing_usable
from regression.detectors.spread import SpreadRule, compare, explain, spread_verdict
from regression.detectors.verdict import CheckVerdict, Problem, Verdict, finite

CHECK = "time"
METRIC = "cuda_time_per_replay"
UNIT = "ms"
RULE = SpreadRule(
    CHECK, UNIT, Verdict.IMPROVED, "with an unchanged kernel that means other clocks, or that work went missing"
)
RELATIVE_FLOOR = 0.01
"""Smallest change that anyone would act on, of the baseline's median."""
EVENT_STEP_MS = 0.0005
"""What CUDA events tell apart (half a microsecond), at each end of a window."""


@dataclass(frozen=True)
class RoundTime:
    """One round: ``cuda_ms`` is ms a replay, None when unknown, measured over ``repeats`` replays.

    ``reason_code`` says why it is not valid.
    """

    round: int
    valid: bool
    cuda_ms: float | None
    repeats: int | None = None
    reason_code: str | None = None


@dataclass(frozen=True)
class TimeRun:
    """The run under judgement. ``no_gpu_time`` is set on a device whose times are not those of a GPU."""

    conditions: MeasurementConditions | None
    rounds: tuple[RoundTime, ...]
    rounds_expected: int
    no_gpu_time: Problem | None = None
    problem: Problem | None = None


@dataclass(frozen=True)
class TimeBaseline:
    """An accepted run; ``accepted`` says whether it was accepted for time. ``name`` is for messages."""

    name: str
    conditions: MeasurementConditions
    rounds: tuple[RoundTime, ...]
    accepted: bool


def judge_time(run: TimeRun, baseline: TimeBaseline | None) -> CheckVerdict:
    """Judge the CUDA time of ``run`` by the round spread of ``baseline``; all times in ms a replay."""
    if run.no_gpu_time:
        return _plain(run, Verdict.UNAVAILABLE, run.no_gpu_time.code, run.no_gpu_time.message)
    values = _usable(run.rounds)
    if not values or run.conditions is None:
        return _plain(run, Verdict.INVALID, *nothing_usable(run.rounds, run.problem, "CUDA time"))
    obstacle = _obstacle(run.conditions, baseline)
    if obstacle or baseline is None:
        code, text = obstacle or ("no_baseline", "no accepted baseline for time")
        median = statistics.median(values)
        text = f"CUDA time {_ms(median)} ({_rounds_text(run)}) not judged: {text}"
        return _plain(run, Verdict.INCONCLUSIVE, code, text, value=median)
    return _judge_spread(run, baseline, values)


def _usable(rounds: Sequence[RoundTime]) -> list[float]:
    """Times of the valid rounds; a time of zero or less is a failed measurement."""
    found = [finite(r.cuda_ms) for r in rounds if r.valid]
    return [value for value in found if value is not None and value > 0]


def _obstacle(conditions: MeasurementConditions, baseline: TimeBaseline | None) -> tuple[str, str] | None:
    """Why the two may not be compared: reason code and text; None when they may."""
    if baseline is None:
        return "no_baseline", "no accepted baseline for time"
    another = another_measurement(conditions, baseline.conditions, baseline.name)
    if another:
        return another
    if not baseline.accepted:
        return "baseline_time_not_accepted", f"baseline {baseline.name} was not accepted for time"
    other = other_surroundings(_for_time(conditions), _for_time(baseline.conditions), baseline.name)
    if other:
        return other
    if len(_usable(baseline.rounds)) < LEAST_BASELINE_ROUNDS:
        return WITHOUT_SPREAD, few_rounds(baseline.name)
    return None


def _for_time(conditions: MeasurementConditions) -> MeasurementConditions:
    """How power was read says nothing of a time."""
    return replace(conditions, power_kinds=())


def _judge_spread(run: TimeRun, baseline: TimeBaseline, values: list[float]) -> CheckVerdict:
    changed, against = kernel_changed(run.conditions, baseline.conditions), _usable(baseline.rounds)
    found = compare(values, against, rule=RULE, kernel_changed=changed, floor=_floor(run, baseline, against))
    figures = f"CUDA time {_ms(found.median)} a replay ({_rounds_text(run)})"
    spread = f"the round spread {found.low:.6g} to {found.high:.6g} ms of baseline {baseline.name}"
    missing = not_compared(run.conditions, baseline.conditions) if run.conditions else []
    details = {
        **_details(run),
        "baseline_rounds": len(against),
        "not_compared": [name for name in missing if name != "power_kind"],
    }
    return spread_verdict(CHECK, METRIC, found, explain(found, figures, spread, kernel_changed=changed), details)


def _floor(run: TimeRun, baseline: TimeBaseline, against: list[float]) -> float:
    """The larger of both floors, ms a replay; the timer's is that of the shorter of the two measurements."""
    repeats = [r.repeats for r in (*run.rounds, *baseline.rounds) if r.valid and r.repeats]
    step = 2 * EVENT_STEP_MS / min(repeats) if repeats else 0.0
    return max(RELATIVE_FLOOR * statistics.median(against), step)


def _plain(run: TimeRun, verdict: Verdict, code: str, text: str, value: float | None = None) -> CheckVerdict:
    """A verdict without a comparison."""
    return CheckVerdict(CHECK, verdict, METRIC, UNIT, code, text, value=value, details=_details(run))


def _details(run: TimeRun) -> dict[str, Any]:
    used = [r.round for r in run.rounds if _usable([r])]
    return {"rounds_used": used, "rounds_expected": run.rounds_expected}


def _rounds_text(run: TimeRun) -> str:
    return f"median of {len(_usable(run.rounds))} of {run.rounds_expected} rounds"


def _ms(value: float) -> str:
    return f"{value:.6g} ms"
