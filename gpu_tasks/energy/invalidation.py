"""Why a round that was measured cannot be used: the GPU was not the same, or not at its best, all through it.

Codes: ``no_samples_of_work``, ``throttled``, ``violation_time_grew``, ``sm_clock_under_floor``, ``clock_drop``,
``power_limit_changed``, ``performance_state_changed``, ``new_process``, ``counter_backwards``, ``counter_unchanged``,
``impossible_power``, ``uncorrected_ecc_grew``, ``device_changed``, ``driver_changed``. A lost GPU is an error of the
adapter's, an Xid error one of the trace. What was not known before or after is not compared.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

from gpu_tasks.energy.trace import Sample
from gpu_tasks.records import CounterReading, GpuState, Reason

NOT_THROTTLING = {0x1: "gpu_idle", 0x2: "applications_clocks_setting"}
"""Bits that say why the clock is what it is without anything being wrong: no work, or the clock that was asked for."""

THROTTLING = {
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
"""Bits that count, as does every bit that this table does not know."""

COUNTED_POLICIES = ("power", "thermal", "sync_boost", "board_limit", "reliability")
"""Violation times that count. The others of NVML's, low_utilization and the totals under the application and base
clocks, also grow while nothing runs."""

CLOCK_DROP = 0.1
"""Part of the SM clock that it may lose in mid-run: steps of boost are 1 %, and a drop by 19 % was once missed."""

RAMP_S = 0.3
"""From the start of a window on: clocks come up, and power follows."""

END_S = 0.1
"""Before the end of a window: the last replay was over, or the driver looked at another moment."""

LONG_S = 1.0
"""A window that is longer has samples of its work, however busy the host."""

APART_S = 0.05
"""So much the moments of two readings by two processes may be off: nearer ones may be in either order."""

POWER_FACTOR = 1.2
TICK_S = 0.1


def invalid_reasons(
    before: GpuState,
    after: GpuState,
    samples: Sequence[Sample],
    readings: Sequence[CounterReading],
    *,
    active: Sequence[tuple[float, float]],
    clock_floor_mhz: float | None = None,
    tick_period_s: float = TICK_S,
) -> list[Reason]:
    """Reasons not to use a round; none if there are none.

    ``samples`` and ``readings`` in order of time, all of the round. ``active`` are its windows of work, start and end
    in monotonic s. ``clock_floor_mhz`` is the lowest SM clock that work may run at, null where none is known.
    """
    limits = [state.power_limit_w for state in (before, after) if state.power_limit_w is not None]
    working = [sample for window in active for sample in active_samples(samples, window)]
    return [
        *_identity(before, after),
        *_seen(samples, active),
        *_throttling(before, after, working),
        *_clocks(working, clock_floor_mhz),
        *_settings(before, after, working),
        *_processes(before, after, samples),
        *(_counter(readings, max(limits, default=None), tick_period_s) or _falls(samples, readings)),
    ]


def window_reasons(
    name: str, start: CounterReading, end: CounterReading, power_limit_w: float | None, tick_period_s: float = TICK_S
) -> list[Reason]:
    """What the readings around one window cannot be: falling, equal, or more than the GPU can draw.

    A window that is shorter than the counter's period may well read 0: it is no measurement. Power may be overstated
    by the energy of one period.
    """
    energy_mj, seconds = end.energy_mj - start.energy_mj, end.time_s - start.time_s
    if energy_mj < 0:
        message = f"{name}: counter: expected to rise, found to fall by {-energy_mj} mJ in {seconds:.3f} s"
        return [Reason("counter_backwards", message)]
    if energy_mj == 0:
        message = f"{name}: counter: expected to rise, found the same {end.energy_mj} mJ after {seconds:.3f} s"
        return [Reason("counter_unchanged", message)]
    if power_limit_w is not None and energy_mj / 1000 > POWER_FACTOR * power_limit_w * (seconds + tick_period_s):
        most = f"at most {POWER_FACTOR:g} times the limit of {power_limit_w:g} W"
        message = f"{name}: counter: expected {most}, found {energy_mj / 1000:.3f} J in {seconds:.3f} s"
        return [Reason("impossible_power", message)]
    return []


def active_samples(samples: Sequence[Sample], window: tuple[float, float]) -> list[Sample]:
    """Samples of a window of work, without those of its very beginning and end."""
    start_s, end_s = window
    return [sample for sample in samples if start_s + RAMP_S <= sample.time_s <= end_s - END_S]


def _seen(samples: Sequence[Sample], active: Sequence[tuple[float, float]]) -> list[Reason]:
    """Nothing is known of a long window without samples, and so it cannot be said that nothing was wrong in it."""
    unseen = [window for window in active if window[1] - window[0] > LONG_S and not active_samples(samples, window)]
    if not unseen:
        return []
    (start_s, end_s), found = unseen[0], f"none in {len(unseen)} of {len(active)}"
    message = f"samples: expected some in every window of work, found {found}, the first {start_s:.3f} to {end_s:.3f} s"
    return [Reason("no_samples_of_work", message)]


def _identity(before: GpuState, after: GpuState) -> list[Reason]:
    reasons = []
    for code, field in (("device_changed", "uuid"), ("device_changed", "pci_bus_id"), ("driver_changed", "driver")):
        old, new = getattr(before, field), getattr(after, field)
        if old != new:
            reasons.append(Reason(code, f"{field}: expected {old} all through, found {new}"))
    return reasons


def _throttling(before: GpuState, after: GpuState, working: Sequence[Sample]) -> list[Reason]:
    reasons = _held("before the round", [before.throttle_reasons]) + _held("after the round", [after.throttle_reasons])
    for policy in COUNTED_POLICIES:
        old, new = before.violation_ns.get(policy), after.violation_ns.get(policy)
        if old is not None and new is not None and new > old:
            more_ms = (new - old) / 1e6
            message = f"throttled: time under the {policy} limit: expected not to grow, found {more_ms:g} ms more"
            reasons.append(Reason("violation_time_grew", message))
    return reasons + _held("while working", [sample.throttle_reasons for sample in working])


def _held(when: str, masks: Iterable[int | None]) -> list[Reason]:
    """What has held the clocks down, whichever of the looks has seen it."""
    seen = 0
    for mask in masks:
        seen |= mask or 0
    bits = _names(seen & ~sum(NOT_THROTTLING))
    if not bits:
        return []
    return [Reason("throttled", f"clocks {when}: expected not to be held down, found {', '.join(bits)}")]


def _names(bits: int) -> list[str]:
    masks = [1 << place for place in range(bits.bit_length()) if bits >> place & 1]
    return [THROTTLING.get(mask, hex(mask)) for mask in masks]


def _clocks(samples: Sequence[Sample], floor_mhz: float | None) -> list[Reason]:
    clocks = [sample.sm_clock_mhz for sample in samples if sample.sm_clock_mhz is not None]
    reasons = []
    if floor_mhz is not None and clocks and min(clocks) < floor_mhz:
        message = f"SM clock: expected at least {floor_mhz:g} MHz while working, found {min(clocks)} MHz"
        reasons.append(Reason("sm_clock_under_floor", message))
    if clocks and min(clocks) < (1 - CLOCK_DROP) * max(clocks):
        message = f"SM clock: expected to stay near its {max(clocks)} MHz while working, found {min(clocks)} MHz"
        reasons.append(Reason("clock_drop", message))
    return reasons


def _settings(before: GpuState, after: GpuState, working: Sequence[Sample]) -> list[Reason]:
    reasons = []
    old, new = before.power_limit_w, after.power_limit_w
    if old is not None and new is not None and old != new:
        message = f"power limit: expected {old:g} W all through, found {new:g} W"
        reasons.append(Reason("power_limit_changed", message))
    states = {sample.performance_state for sample in working if sample.performance_state is not None}
    if len(states) > 1:
        shown = ", ".join(f"P{state}" for state in sorted(states))
        message = f"performance state: expected one while working, found {shown}"
        reasons.append(Reason("performance_state_changed", message))
    errors, more = before.uncorrected_ecc_errors, after.uncorrected_ecc_errors
    if errors is not None and more is not None and more > errors:
        message = f"uncorrectable ECC errors: expected to stay {errors}, found {more}"
        reasons.append(Reason("uncorrected_ecc_grew", message))
    return reasons


def _processes(before: GpuState, after: GpuState, samples: Sequence[Sample]) -> list[Reason]:
    """A process beside the own one from the start of the round, at its end a new one, or in between more than before.

    The preflight has found this process alone; one that came while it warmed up is there before the round.
    """
    if before.processes is None:
        return []
    if len(before.processes) > 1:
        message = f"processes: expected this one alone, found {len(before.processes)} before the round"
        return [Reason("new_process", message)]
    known = {process.pid for process in before.processes}
    fresh = [str(process.pid) for process in after.processes or [] if process.pid not in known]
    if fresh:
        return [Reason("new_process", f"processes: expected no new one, found {', '.join(fresh)}")]
    most = max((sample.processes for sample in samples if sample.processes is not None), default=0)
    if most > len(before.processes):
        message = f"processes: expected {len(before.processes)} all through, found {most} in between"
        return [Reason("new_process", message)]
    return []


def _counter(readings: Sequence[CounterReading], power_limit_w: float | None, tick_period_s: float) -> list[Reason]:
    """Every stretch between neighbouring readings, and the whole.

    Two readings closer than two periods may be equal, or a step apart, without anything being wrong.
    """
    for start, end in pairwise(readings):
        reasons = window_reasons(f"{start.time_s:.3f} to {end.time_s:.3f} s", start, end, power_limit_w, tick_period_s)
        far = end.time_s - start.time_s >= 2 * tick_period_s
        if reasons and (far or reasons[0].code == "counter_backwards"):
            return reasons
    if len(readings) > 1:
        return window_reasons("round", readings[0], readings[-1], power_limit_w, tick_period_s)
    return []


def _falls(samples: Sequence[Sample], readings: Sequence[CounterReading]) -> list[Reason]:
    """Any fall of the counter, by whichever process it was read: rising again within a window hides nothing."""
    by_sampler = [(sample.counter_time_s, sample.counter_mj) for sample in samples]
    sampled = [(time, energy) for time, energy in by_sampler if time is not None and energy is not None]
    times = [time for time, _ in sampled]
    neighbours = list(pairwise(sampled))
    for reading in readings:
        own = (reading.time_s, reading.energy_mj)
        earlier = sampled[: bisect_left(times, reading.time_s - APART_S)][-1:]
        later = sampled[bisect_right(times, reading.time_s + APART_S) :][:1]
        neighbours += [*((one, own) for one in earlier), *((own, one) for one in later)]
    for (_, before_mj), (time_s, after_mj) in neighbours:
        if after_mj < before_mj:
            message = f"counter: expected never to fall, found {before_mj - after_mj} mJ less at {time_s:.3f} s"
            return [Reason("counter_backwards", message)]
    return []
