"""Adjusted energy against the round spread of the baseline: the users' rule, to the letter.

The run's median over its valid rounds is compared with [min, max] of the baseline's valid rounds, on both sides:
energy below the spread means that work went missing. Figures are compared on the same device, payload, protocol
and class of environment only.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from regression.detectors.verdict import CheckVerdict, Problem, Verdict, finite

CHECK = "energy"
METRIC = "adjusted_energy_per_replay"
UNIT = "mJ"
VERIFIED = "verified"
MIN_BASELINE_ROUNDS = 2  # one round has no spread: every other value would be out of it


@dataclass(frozen=True)
class RoundEnergy:
    """One round: ``adjusted_mj`` is mJ a replay with idle energy taken off (may be negative), None when unknown."""

    round: int
    valid: bool
    adjusted_mj: float | None


@dataclass(frozen=True)
class EnergyConditions:
    """What must be the same before two energies may be compared; ``kernel_sha256`` may differ, and is said."""

    device: str
    payload_manifest_sha256: str | None
    protocol: str
    environment_class: str | None
    kernel_sha256: str | None = None


@dataclass(frozen=True)
class EnergyRun:
    """The run under judgement. ``counter_reason`` is set on a device that has no energy counter."""

    conditions: EnergyConditions | None
    rounds: tuple[RoundEnergy, ...]
    rounds_expected: int
    trust: str
    trust_reason: str | None = None
    counter_reason: Problem | None = None
    problem: Problem | None = None


@dataclass(frozen=True)
class EnergyBaseline:
    """An accepted run; ``accepted`` says whether it was accepted for energy. ``name`` is for messages."""

    name: str
    conditions: EnergyConditions
    rounds: tuple[RoundEnergy, ...]
    accepted: bool
    trust: str
    trust_reason: str | None = None


def judge_energy(run: EnergyRun, baseline: EnergyBaseline | None) -> CheckVerdict:
    """Judge the adjusted energy of ``run`` by the round spread of ``baseline``; all energies in mJ a replay."""
    if run.counter_reason:
        return _without_figures(Verdict.UNAVAILABLE, run.counter_reason.code, run.counter_reason.message)
    values = _usable(run.rounds)
    if not run.rounds or not values or run.conditions is None:
        return _nothing_usable(run)
    median = statistics.median(values)
    obstacle = _obstacle(run.conditions, baseline)
    if obstacle or baseline is None:
        code, text = obstacle or ("no_baseline", "no accepted baseline for energy")
        text = f"adjusted energy {_mj(median)} ({_rounds_text(run)}) not judged: {text}{_trust_text(run)}"
        return _with_figures(run, Verdict.INCONCLUSIVE, code, text, median=median, spread=None)
    return _judge_spread(run, run.conditions, baseline, median)


def _without_figures(verdict: Verdict, code: str, text: str) -> CheckVerdict:
    return CheckVerdict(CHECK, verdict, METRIC, UNIT, code, text)


def _usable(rounds: Sequence[RoundEnergy]) -> list[float]:
    return [value for r in rounds if r.valid and (value := finite(r.adjusted_mj)) is not None]


def _nothing_usable(run: EnergyRun) -> CheckVerdict:
    if run.problem:
        return _without_figures(Verdict.INVALID, run.problem.code, f"no usable round: {run.problem.message}")
    if not run.rounds:
        return _without_figures(Verdict.INVALID, "no_rounds", "no round was measured and no record says why")
    text = f"none of {len(run.rounds)} rounds has a valid adjusted energy"
    return _without_figures(Verdict.INVALID, "no_valid_round", text)


def _obstacle(run: EnergyConditions, baseline: EnergyBaseline | None) -> tuple[str, str] | None:
    """Why the two may not be compared: reason code and text; None when they may."""
    if baseline is None:
        return "no_baseline", "no accepted baseline for energy"
    other = baseline.conditions
    if run.payload_manifest_sha256 is None or other.payload_manifest_sha256 != run.payload_manifest_sha256:
        return "baseline_other_payload", f"baseline {baseline.name} is of another payload"
    if other.device != run.device:
        return "baseline_other_device", f"baseline {baseline.name} is of {other.device}, this is {run.device}"
    if other.protocol != run.protocol:
        return "baseline_other_protocol", f"baseline {baseline.name} used {other.protocol}, this run {run.protocol}"
    if not baseline.accepted:
        why = f" ({baseline.trust_reason})" if baseline.trust_reason else ""
        text = f"baseline {baseline.name} was not accepted for energy, which is {baseline.trust}{why}"
        return ("baseline_energy_not_accepted" if baseline.trust == VERIFIED else "baseline_energy_unverified"), text
    if other.environment_class != run.environment_class:
        text = f"baseline {baseline.name} ran in [{other.environment_class}], this run in [{run.environment_class}]"
        return "baseline_other_environment", text
    if len(_usable(baseline.rounds)) < MIN_BASELINE_ROUNDS:
        return "baseline_without_spread", f"baseline {baseline.name} has fewer than {MIN_BASELINE_ROUNDS} valid rounds"
    return None


def _judge_spread(
    run: EnergyRun, conditions: EnergyConditions, baseline: EnergyBaseline, median: float
) -> CheckVerdict:
    spread = _usable(baseline.rounds)
    low, high = min(spread), max(spread)
    figures = f"adjusted energy {_mj(median)} a replay ({_rounds_text(run)})"
    against = f"the round spread {low:.6g} to {high:.6g} mJ of baseline {baseline.name}{_trust_text(run)}"
    if low <= median <= high:
        text = f"{figures} is within {against}"
        return _with_figures(run, Verdict.OK, "within_spread", text, median=median, spread=spread)
    changed = None not in (conditions.kernel_sha256, baseline.conditions.kernel_sha256) and (
        conditions.kernel_sha256 != baseline.conditions.kernel_sha256
    )
    kernel = "; the kernel is another one than the baseline's" if changed else ""
    if median > high:
        text = f"{figures} is {_distance(median, high)} above {against}{kernel}"
        return _with_figures(
            run, Verdict.REGRESSED, "energy_above_spread", text, median=median, spread=spread, direction="higher"
        )
    text = f"{figures} is {_distance(median, low)} below {against}"
    if changed:
        code, text = "energy_below_spread_kernel_changed", text + kernel
        return _with_figures(run, Verdict.IMPROVED, code, text, median=median, spread=spread, direction="lower")
    text += "; with an unchanged kernel that means that work went missing"
    return _with_figures(
        run, Verdict.REGRESSED, "energy_below_spread", text, median=median, spread=spread, direction="lower"
    )


def _with_figures(
    run: EnergyRun,
    verdict: Verdict,
    code: str,
    text: str,
    *,
    median: float,
    spread: list[float] | None,
    direction: str | None = None,
) -> CheckVerdict:
    return CheckVerdict(
        check=CHECK,
        verdict=verdict,
        metric=METRIC,
        unit=UNIT,
        reason_code=code,
        reason=text,
        value=median,
        baseline_value=statistics.median(spread) if spread else None,
        baseline_low=min(spread) if spread else None,
        baseline_high=max(spread) if spread else None,
        direction=direction,
        details={
            "rounds_used": [r.round for r in run.rounds if r.valid and finite(r.adjusted_mj) is not None],
            "rounds_expected": run.rounds_expected,
            "baseline_rounds": len(spread) if spread else 0,
            "energy_trust": run.trust,
        },
    )


def _rounds_text(run: EnergyRun) -> str:
    return f"median of {len(_usable(run.rounds))} of {run.rounds_expected} rounds"


def _trust_text(run: EnergyRun) -> str:
    if run.trust == VERIFIED:
        return ""
    return f" [energy of this run is {run.trust}{': ' + run.trust_reason if run.trust_reason else ''}]"


def _mj(value: float) -> str:
    return f"{value:.6g} mJ"


def _distance(value: float, edge: float) -> str:
    """How far outside, in mJ and, where the edge is not zero, in percent of it."""
    percent = f" ({abs(value - edge) / abs(edge) * 100:.2g} %)" if edge else ""
    return f"{abs(value - edge):.3g} mJ{percent}"
