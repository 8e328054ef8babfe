"""Adjusted energy against the round spread of the baseline: the users' rule, and what it cannot see.

The run's median over its valid rounds is compared with [min, max] of the baseline's valid rounds, on both sides:
energy below the spread means that work went missing. The spread and the distance from the baseline's median must say
the same: a median that is out of the spread but no farther from the baseline's than so few rounds differ by, and one
that is farther but within a wide spread, are inconclusive and never "no change". Figures are compared on the same
device, payload, protocol, class of environment and power limit only, and energy whose sensor is not vouched for is not
judged. A board that had an energy and has none now is never fine.

A trial (``SHARPER``) is kept for the sake of the records that have nothing else: its short windows scatter by some
percent. Its rounds have the same energy by a figure that scatters by a tenth of that, which is asked where the trials
cannot tell, and whether they have overlooked something.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from regression.detectors.conditions import (
    MeasurementConditions,
    another_measurement,
    kernel_changed,
    not_compared,
    other_surroundings,
)
from regression.detectors.rounds import LEAST_BASELINE_ROUNDS, WITHOUT_SPREAD, few_rounds, nothing_usable
from regression.detectors.spread import Comparison, SpreadRule, compare, explain, spread_verdict
from regression.detectors.verdict import CheckVerdict, Problem, Verdict, finite
from regression.detectors.window import Window, other_window

CHECK = "energy"
METRIC = "adjusted_energy_per_replay"
UNIT = "mJ"
RULE = SpreadRule(CHECK, UNIT, Verdict.REGRESSED, "with an unchanged kernel that means that work went missing")
SHARPER = {"trial": "aligned"}
"""Protocols whose own figure scatters much more than another one of the same rounds."""
VERIFIED = "verified"
FAILED = "failed"
SHOWN_GATES = 3


@dataclass(frozen=True)
class RoundEnergy:
    """One round: ``adjusted_mj`` is mJ a replay with idle energy taken off (may be negative), None when unknown.

    ``figures`` are all the round's energies by name, its own among them. ``reason_code`` says why it is not valid.
    ``window`` is how many replays it had, and the seconds of work; None: nobody said.
    """

    round: int
    valid: bool
    adjusted_mj: float | None
    figures: Mapping[str, float] = field(default_factory=dict)
    reason_code: str | None = None
    window: Window | None = None


@dataclass(frozen=True)
class FailedGate:
    """A telemetry gate that failed: its name, where (before, after, run, round-NN), and the line that says why."""

    gate: str
    at: str
    message: str


@dataclass(frozen=True)
class EnergyRun:
    """The run under judgement. ``counter_reason`` is set on a device that has no energy counter."""

    conditions: MeasurementConditions | None
    rounds: tuple[RoundEnergy, ...]
    rounds_expected: int
    trust: str
    trust_reason: str | None = None
    counter_reason: Problem | None = None
    problem: Problem | None = None
    failed_gates: tuple[FailedGate, ...] = ()


@dataclass(frozen=True)
class EnergyBaseline:
    """An accepted run; ``accepted`` says whether it was accepted for energy. ``name`` is for messages."""

    name: str
    conditions: MeasurementConditions
    rounds: tuple[RoundEnergy, ...]
    accepted: bool
    trust: str
    trust_reason: str | None = None


def judge_energy(run: EnergyRun, baseline: EnergyBaseline | None) -> CheckVerdict:
    """Judge the adjusted energy of ``run`` by the round spread of ``baseline``; all energies in mJ a replay.

    ``details["figures"]`` has every figure of the rounds with the verdict that it alone would have given.
    """
    if run.counter_reason:
        return _without_energy(run, run.counter_reason, baseline)
    if run.trust == FAILED:
        return _plain(run, Verdict.INVALID, "gate_failed", _gates_text(run))
    values = _usable(run.rounds)
    if not values or run.conditions is None:
        return _plain(run, Verdict.INVALID, *nothing_usable(run.rounds, run.problem, "adjusted energy"))
    obstacle = _obstacle(run, run.conditions, baseline)
    if obstacle or baseline is None:
        code, text = obstacle or ("no_baseline", "no accepted baseline for energy")
        median = statistics.median(values)
        text = f"adjusted energy {_mj(median)} ({_rounds_text(run)}) not judged: {text}{_trust_text(run)}"
        return _plain(run, Verdict.INCONCLUSIVE, code, text, value=median)
    return _judge_spread(run, baseline, values)


def _without_energy(run: EnergyRun, reason: Problem, baseline: EnergyBaseline | None) -> CheckVerdict:
    """A device that has no energy cannot fail for it, unless the very same one had it when a baseline was accepted."""
    uuid = run.conditions.uuid if run.conditions else None
    if baseline is None or not baseline.accepted or uuid is None or baseline.conditions.uuid != uuid:
        return _plain(run, Verdict.UNAVAILABLE, reason.code, reason.message)
    text = f"the energy of {uuid} is gone ({reason.message}): baseline {baseline.name} of the same device has one"
    return _plain(run, Verdict.INVALID, "energy_vanished", text)


def _usable(rounds: Sequence[RoundEnergy], figure: str | None = None) -> list[float]:
    """Energies of the valid rounds: the rounds' own, or those of one figure."""
    found = [r.adjusted_mj if figure is None else r.figures.get(figure) for r in rounds if r.valid]
    return [value for value in map(finite, found) if value is not None]


def _windows(rounds: Sequence[RoundEnergy]) -> list[Window]:
    return [measured.window for measured in rounds if measured.valid and measured.window is not None]


def _gates_text(run: EnergyRun) -> str:
    told = [f"{gate.gate} ({gate.at}): {gate.message}" for gate in run.failed_gates[:SHOWN_GATES]]
    more = len(run.failed_gates) - SHOWN_GATES
    told += [f"and {more} more"] if more > 0 else []
    return f"no usable energy, telemetry gate failed: {'; '.join(told) or run.trust_reason or 'no record says which'}"


def _obstacle(
    run: EnergyRun, conditions: MeasurementConditions, baseline: EnergyBaseline | None
) -> tuple[str, str] | None:
    """Why the two may not be compared: reason code and text; None when they may."""
    if baseline is None:
        return "no_baseline", "no accepted baseline for energy"
    another = another_measurement(conditions, baseline.conditions, baseline.name)
    if another:
        return another
    if not baseline.accepted:
        why = f" ({baseline.trust_reason})" if baseline.trust_reason else ""
        text = f"baseline {baseline.name} was not accepted for energy, which is {baseline.trust}{why}"
        return ("baseline_energy_not_accepted" if baseline.trust == VERIFIED else "baseline_energy_unverified"), text
    other = other_surroundings(conditions, baseline.conditions, baseline.name)
    if other:
        return other
    window = other_window(_windows(run.rounds), _windows(baseline.rounds), baseline.name)
    if window:
        return window
    if len(_usable(baseline.rounds)) < LEAST_BASELINE_ROUNDS:
        return WITHOUT_SPREAD, few_rounds(baseline.name)
    if baseline.trust == VERIFIED and run.trust != VERIFIED:
        return "energy_unverified", f"the energy of baseline {baseline.name} is verified, that of this run is not"
    return None


def _judge_spread(run: EnergyRun, baseline: EnergyBaseline, values: list[float]) -> CheckVerdict:
    changed = kernel_changed(run.conditions, baseline.conditions)
    own = compare(values, _usable(baseline.rounds), rule=RULE, kernel_changed=changed)
    found, name, beside = _sharper(run, baseline, own, changed)
    figures = f"{name} energy {_mj(found.median)} a replay ({_rounds_text(run)})"
    against = f"the round spread {found.low:.6g} to {found.high:.6g} mJ of baseline {baseline.name}{_trust_text(run)}"
    details = {
        **_details(run),
        "figure": name,
        "baseline_rounds": len(_usable(baseline.rounds)),
        "not_compared": not_compared(run.conditions, baseline.conditions) if run.conditions else [],
        "figures": {name: _figure(run, baseline, name, changed) for name in _figure_names(run)},
    }
    text = explain(found, figures, against, kernel_changed=changed) + beside
    return spread_verdict(CHECK, METRIC, found, text, details)


def _sharper(run: EnergyRun, baseline: EnergyBaseline, own: Comparison, changed: bool) -> tuple[Comparison, str, str]:
    """The comparison that is told, what its figure is called, and what is said of the other one.

    The sharper figure is asked where every round has it, on both sides. It has the word where the protocol's own is
    inconclusive, and where it alone shows a regression.
    """
    protocol = run.conditions.protocol if run.conditions else ""
    name = SHARPER.get(protocol)
    values, spread = (_usable(side, name) if name else [] for side in (run.rounds, baseline.rounds))
    complete = len(values) == len(_usable(run.rounds)) and len(spread) == len(_usable(baseline.rounds))
    if name is None or not values or not complete:
        return own, "adjusted", ""
    found = compare(values, spread, rule=RULE, kernel_changed=changed)
    overlooked = found.verdict is Verdict.REGRESSED and own.verdict is not Verdict.REGRESSED
    if own.verdict is Verdict.INCONCLUSIVE or overlooked:
        return found, name, f"; {protocol} alone: {own.verdict.value}, {_mj(own.median)}"
    percent = found.as_json()["detectable_percent"]
    sees = "" if percent is None else f", a change counts from {percent:.2g} % on"
    return own, protocol, f"; {name} alone: {found.verdict.value}, {_mj(found.median)}{sees}"


def _plain(run: EnergyRun, verdict: Verdict, code: str, text: str, value: float | None = None) -> CheckVerdict:
    """A verdict without a comparison; it holds for every figure."""
    alone = {"verdict": verdict.value, "reason_code": code}
    figures = {
        name: {**alone, "median_mj": statistics.median(values) if (values := _usable(run.rounds, name)) else None}
        for name in _figure_names(run)
    }
    details = {**_details(run), "figures": figures}
    return CheckVerdict(CHECK, verdict, METRIC, UNIT, code, text, value=value, details=details)


def _figure(run: EnergyRun, baseline: EnergyBaseline, name: str, changed: bool) -> dict[str, Any]:
    """The verdict that one figure alone would have given."""
    values, spread = _usable(run.rounds, name), _usable(baseline.rounds, name)
    if not values or len(spread) < LEAST_BASELINE_ROUNDS:
        code = "baseline_without_figure" if values else "no_valid_round"
        median = statistics.median(values) if values else None
        return {"verdict": Verdict.INCONCLUSIVE.value, "reason_code": code, "median_mj": median}
    found = compare(values, spread, rule=RULE, kernel_changed=changed)
    return {
        "verdict": found.verdict.value,
        "reason_code": found.code,
        "median_mj": found.median,
        "baseline_median_mj": found.baseline_median,
        "baseline_low_mj": found.low,
        "baseline_high_mj": found.high,
        **found.as_json(),
    }


def _figure_names(run: EnergyRun) -> list[str]:
    return sorted({name for measured in run.rounds for name in measured.figures})


def _details(run: EnergyRun) -> dict[str, Any]:
    return {
        "rounds_used": [r.round for r in run.rounds if r.valid and finite(r.adjusted_mj) is not None],
        "rounds_expected": run.rounds_expected,
        "energy_trust": run.trust,
        "failed_gates": [asdict(gate) for gate in run.failed_gates],
    }


def _rounds_text(run: EnergyRun) -> str:
    return f"median of {len(_usable(run.rounds))} of {run.rounds_expected} rounds"


def _trust_text(run: EnergyRun) -> str:
    if run.trust == VERIFIED:
        return ""
    return f" [energy of this run is {run.trust}{': ' + run.trust_reason if run.trust_reason else ''}]"


def _mj(value: float) -> str:
    return f"{value:.6g} mJ"
