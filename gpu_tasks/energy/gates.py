"""The telemetry gates: whether anything vouches for the sensor that a run's energy came from.

Rounds that agree with each other prove nothing: a sensor at a hundredth of scale repeats itself as well as a good one.
Each gate is one figure against bounds; unchecked is not passed.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from gpu_tasks.energy.bands import Band, band_for
from gpu_tasks.energy.conditions import same_conditions
from gpu_tasks.energy.derive import span_s
from gpu_tasks.energy.interleaved import SHAM
from gpu_tasks.energy.trace import largest_gap_s, read_samples
from gpu_tasks.records import GATES, TRIAL, GateResult, Reason, ReferenceLoad, RoundRecord, TelemetryRecord

METERS_AGREE_WITHIN = 0.03
ABOVE_IDLE_WITHIN, ABOVE_IDLE_W = 0.05, 0.2
"""Energy above idle by either meter: what a meter shows too much of idle power is not seen while the GPU works. Less
power than this is the noise of the sampled one."""

SHAM_SHARE = 0.05
ROUND_SPREAD = 0.10
SHAM_UNCERTAINTIES, SPREAD_UNCERTAINTIES = 4.0, 6.0
"""What windows of seconds read for nothing, and rounds apart from each other, by their plain readings alone: so many
standard uncertainties of a round's figure. Long windows are far below the shares above; a trial's are not."""

FEWEST_ROUNDS = 3
LONGEST_GAP_S = 0.5
LOADS_AGREE_WITHIN = 0.10
LOW_DUTY_SHARE = (0.8, 3.0)
MOST = 1e6
"""Of a ratio to what may be nothing: larger ones are no larger."""

JOULES = "J per 10^12 operations"


def reference_gate(load: ReferenceLoad, band: Band | None, model: str, where: str) -> GateResult:
    """The reference load's energy an operation, speed and result; unchecked for a model without a band."""
    value = load.joules_per_1e12_operations
    if band is None:
        message = f"{model}: no band of the reference load is known; here it costs {value:.3g} {JOULES}"
        return GateResult(
            "reference_load", where, None, value, JOULES, None, None, Reason("no_reference_band", message)
        )
    low, high = band.joules
    wrong = []
    if not load.result_verified:
        wrong.append(f"its result is off by {load.largest_error:.3g}")
    if not low <= value <= high:
        wrong.append(f"expected {low:.3g} to {high:.3g} {JOULES}, found {value:.3g}")
    speed = load.tera_operations_per_s
    slow, fast = band.tera_operations_per_s
    if not slow <= speed <= fast:
        wrong.append(f"expected {slow:.3g} to {fast:.3g} TFLOP/s, found {speed:.3g}")
    wrong += _low_duty(load)
    reason = Reason("reference_load_off", f"reference load: {'; '.join(wrong)}") if wrong else None
    return GateResult("reference_load", where, not wrong, value, JOULES, low, high, reason)


def _low_duty(load: ReferenceLoad) -> list[str]:
    """The same products with pauses cost as much, or more for a GPU that stays awake between them; never less."""
    low = load.low_duty_joules_per_1e12_operations
    if low is None:
        return []
    share = low / load.joules_per_1e12_operations if load.joules_per_1e12_operations else 0.0
    if LOW_DUTY_SHARE[0] <= share <= LOW_DUTY_SHARE[1]:
        return []
    bounds = f"{LOW_DUTY_SHARE[0]:g} to {LOW_DUTY_SHARE[1]:g}"
    return [f"with pauses expected {bounds} of the energy without, found {share:.2f}: wrong near idle"]


def run_gates(
    telemetry: Sequence[TelemetryRecord],
    rounds: Sequence[RoundRecord],
    model: str,
    learnt_bands: Mapping[str, list[float]],
) -> list[GateResult]:
    """All gates of a run, in the order of their list: those of ``telemetry``, and those over its rounds.

    Only rounds that were measured count, and but for the outputs only valid ones. ``model`` and ``learnt_bands`` say
    what the reference load must cost: it is judged here, from its figures, whatever its record says.
    """
    valid = [record for record in rounds if record.valid and record.energy is not None]
    loads = [(record.when, record.reference_load) for record in telemetry if record.reference_load is not None]
    found = [reference_gate(load, band_for(model, learnt_bands), model, when) for when, load in loads]
    if len(loads) > 1:
        found.append(_loads_agree([load for _, load in loads]))
    moments = {record.when for record in telemetry if record.reference_load is not None}
    for missing in [moment for moment in ("before", "after") if moment not in moments]:
        reason = Reason("gate_not_made", f"reference load: not measured {missing} the rounds")
        found.append(GateResult("reference_load", missing, None, None, JOULES, None, None, reason))
    found += [_meters(valid), _sham(valid), _spread(valid), _sampling(telemetry, valid)]
    found += [_exclusive(telemetry, valid), _output(rounds)]
    found.append(same_conditions(telemetry, valid))
    return sorted(found, key=lambda gate: GATES.index(gate.gate))


def failed(gates: Sequence[GateResult]) -> list[GateResult]:
    """Those that did not pass because of what they found."""
    return [gate for gate in gates if gate.passed is False]


def unchecked(gates: Sequence[GateResult]) -> list[GateResult]:
    """Those that could not be judged."""
    return [gate for gate in gates if gate.passed is None]


def _loads_agree(loads: Sequence[ReferenceLoad]) -> GateResult:
    """The reference load before the rounds against the one after: what moves in between moved in the rounds too."""
    values = [load.joules_per_1e12_operations for load in loads]
    apart = abs(values[-1] / values[0] - 1) if values[0] else MOST
    limit = LOADS_AGREE_WITHIN
    message = f"reference load before and after: expected to agree within {limit:.0%}, found {apart:.1%} apart"
    return _judged(
        "reference_load", min(apart, MOST), "ratio - 1", (0.0, limit), Reason("reference_loads_apart", message)
    )


def _meters(rounds: Sequence[RoundRecord]) -> GateResult:
    compared = [r.energy.meters for r in rounds if r.energy and r.energy.meters]
    if not rounds or len(compared) < len(rounds):
        missing = f"both meters were compared in {len(compared)} of {len(rounds)} valid rounds"
        return _not_made("meters_agree", "ratio - 1", missing)
    worst = max((m.relative_difference for m in compared), key=abs)
    limit = METERS_AGREE_WITHIN
    apart = max((found for r in rounds if (found := _above_idle_apart(r)) is not None), key=abs, default=0.0)
    if abs(worst) <= limit and abs(apart) > ABOVE_IDLE_WITHIN:
        message = f"energy above idle by counter and by sampled power: expected to agree within {ABOVE_IDLE_WITHIN:.0%}"
        reason = Reason("meters_disagree", f"{message}, found {apart:+.2%}: one of them is wrong near idle")
        bounds = (-ABOVE_IDLE_WITHIN, ABOVE_IDLE_WITHIN)
        return _judged("meters_agree", apart, "ratio - 1", bounds, reason)
    message = f"counter and sampled power: expected to agree within {limit:.0%}, found {worst:+.2%}"
    return _judged("meters_agree", worst, "ratio - 1", (-limit, limit), Reason("meters_disagree", message))


def _above_idle_apart(record: RoundRecord) -> float | None:
    """How far the sampled power's energy above idle is from the aligned figure; null where there is nothing to see."""
    energy, start, end = record.energy, record.measurement_start, record.measurement_end
    sampled_mj = energy.meters.power_integral_mj if energy and energy.meters else None
    figure = next((f for f in energy.figures if f.figure == "aligned"), None) if energy else None
    if sampled_mj is None or figure is None or start is None or end is None or not record.repeats:
        return None
    watts = (sampled_mj - figure.adjusted_mj) * record.repeats / 1000 / (end.time_s - start.time_s)
    if abs(watts) <= ABOVE_IDLE_W:
        return 0.0
    return max(-MOST, min(sampled_mj / figure.adjusted_mj - 1, MOST)) if figure.adjusted_mj else MOST


def _sham(rounds: Sequence[RoundRecord]) -> GateResult:
    shams = [sham for r in rounds if (sham := _sham_mj(r)) is not None]
    adjusted = [r.adjusted_mj for r in rounds if r.adjusted_mj is not None]
    if not shams or not adjusted:
        return _not_made("sham_window", "ratio", "no valid round has a window without work")
    median = statistics.median(adjusted)
    share = max(map(abs, shams)) / abs(median) if median else float("inf")
    shown, limit = min(share, MOST), _limit(SHAM_SHARE, SHAM_UNCERTAINTIES, rounds, median)
    message = f"a window without work: expected at most {limit:.0%} of the task's energy, found {shown:.1%}"
    return _judged("sham_window", shown, "ratio", (0.0, limit), Reason("sham_window_not_empty", message))


def _sham_mj(record: RoundRecord) -> float | None:
    """What a round read where nothing was done: its sham window, or idle segments against each other."""
    if record.energy is None:
        return None
    if record.energy.sham is not None:
        return record.energy.sham.adjusted_mj
    return next((f.adjusted_mj for f in record.energy.figures if f.subject == SHAM), None)


def _spread(rounds: Sequence[RoundRecord]) -> GateResult:
    adjusted = [r.adjusted_mj for r in rounds if r.adjusted_mj is not None]
    if len(adjusted) < FEWEST_ROUNDS:
        missing = f"{len(adjusted)} valid rounds have an energy, {FEWEST_ROUNDS} are needed for a spread"
        return _not_made("round_spread", "ratio", missing)
    median = statistics.median(adjusted)
    spread = min((max(adjusted) - min(adjusted)) / abs(median), MOST) if median else MOST
    limit = _limit(ROUND_SPREAD, SPREAD_UNCERTAINTIES, rounds, median)
    message = f"rounds: expected a spread of at most {limit:.0%} of the median, found {spread:.1%}"
    return _judged("round_spread", spread, "ratio", (0.0, limit), Reason("rounds_spread", message))


def _limit(share: float, uncertainties: float, rounds: Sequence[RoundRecord], median_mj: float) -> float:
    """``share``, or what a trial's short windows are known to read by themselves, where that is more."""
    sigmas = [
        figure.uncertainty.combined_mj
        for record in rounds
        for figure in (record.energy.figures if record.energy else [])
        if figure.figure == record.protocol == TRIAL
    ]
    return max(share, uncertainties * statistics.median(sigmas) / abs(median_mj)) if sigmas and median_mj else share


def _sampling(telemetry: Sequence[TelemetryRecord], rounds: Sequence[RoundRecord]) -> GateResult:
    """Gaps in the rounds, and errors of the sampler (an Xid error is one) beside the known load as well."""
    sampled = [(r.energy.trace, span_s(r.energy)) for r in rounds if r.energy and r.energy.trace]
    if not rounds or len(sampled) < len(rounds):
        return _not_made("sampling", "s", f"power was sampled in {len(sampled)} of {len(rounds)} valid rounds")
    traces = [*(record.trace for record in telemetry if record.trace), *(trace for trace, _ in sampled)]
    error = next((trace.error for trace in traces if trace.error), None)
    if error:
        return GateResult("sampling", "run", False, None, "s", 0.0, LONGEST_GAP_S, error)
    gap = max(largest_gap_s(read_samples(trace), *span) for trace, span in sampled)
    message = f"samples of power: expected no gap over {LONGEST_GAP_S} s, found {gap:.2f} s"
    return _judged("sampling", gap, "s", (0.0, LONGEST_GAP_S), Reason("sampling_gap", message))


def _exclusive(telemetry: Sequence[TelemetryRecord], rounds: Sequence[RoundRecord]) -> GateResult:
    """Processes before and after each round and each look at the known load, and those in between beside the load.

    One that came and went within a round makes that round invalid; a look at the load has nobody to say so but this.
    """
    states = [state for r in rounds if r.energy for state in (r.energy.state_before, r.energy.state_after)]
    if not states:
        return _not_made("exclusive", "processes", "no valid round has an energy")
    states += [state for t in telemetry for state in (t.state_before, t.state_after) if state is not None]
    seen = [len(state.processes) for state in states if state.processes is not None]
    if len(seen) < len(states):
        return _not_made("exclusive", "processes", "the processes on the GPU could not be listed")
    samples = [sample for t in telemetry if t.trace for sample in read_samples(t.trace)]
    others = max(0, max([*seen, *(sample.processes for sample in samples if sample.processes is not None)]) - 1)
    message = f"processes on the GPU beside the measuring one: expected 0, found {others}"
    return _judged("exclusive", float(others), "processes", (0.0, 0.0), Reason("other_process", message))


def _output(rounds: Sequence[RoundRecord]) -> GateResult:
    wrong = [r for r in rounds if r.reason is not None and r.reason.code == "output_not_verified"]
    if not rounds:
        return _not_made("output_verified", "rounds", "no round was measured")
    message = wrong[0].reason.message if wrong and wrong[0].reason else ""
    return _judged("output_verified", float(len(wrong)), "rounds", (0.0, 0.0), Reason("output_not_verified", message))


def _not_made(gate: str, unit: str, message: str) -> GateResult:
    return GateResult(gate, "run", None, None, unit, None, None, Reason("gate_not_made", f"{gate}: {message}"))


def _judged(gate: str, value: float, unit: str, bounds: tuple[float, float], otherwise: Reason) -> GateResult:
    low, high = bounds
    passed = low <= value <= high
    return GateResult(gate, "run", passed, value, unit, low, high, None if passed else otherwise)
