"""Why a round that was measured cannot be used: the GPU was not the same, or not at its best, all through it.

Codes: ``throttled``, ``violation_time_grew``, ``sm_clock_under_floor``, ``clock_drop``, ``power_limit_changed``,
``performance_state_changed``, ``new_process``, ``counter_backwards``, ``counter_unchanged``, ``impossible_power``,
``uncorrected_ecc_grew``, ``device_changed``, ``driver_changed``. A lost GPU is an error of the adapter's. What was not
known before or after is not compared.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
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

BUSY_PERCENT = 50
"""Short kernels leave gaps between them, in which the driver may look."""

UTILISATION_LAG_S = 1.0
"""NVML's utilisation is that of the last 1/6 to 1 s: so far from an end of the work it is not to be relied upon."""

POWER_FACTOR = 1.2
TICK_S = 0.1


def invalid_reasons(
    before: GpuState,
    after: GpuState,
    samples: Sequence[Sample],
    readings: Sequence[CounterReading],
    *,
    clock_floor_mhz: float | None = None,
    tick_period_s: float = TICK_S,
) -> list[Reason]:
    """Reasons not to use a round; none if there are none.

    ``samples`` and ``readings`` in order of time; samples of idle times may be among them. ``clock_floor_mhz`` is the
    lowest SM clock that work may run at, null where none is known.
    """
    limits = [state.power_limit_w for state in (before, after) if state.power_limit_w is not None]
    return [
        *_identity(before, after),
        *_throttling(before, after),
        *_clocks(active_samples(samples), clock_floor_mhz),
        *_settings(before, after, active_samples(samples)),
        *_counter(readings, max(limits, default=None), tick_period_s),
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


def active_samples(samples: Sequence[Sample]) -> list[Sample]:
    """Samples of times when kernels ran: busy, and so far from idle ones that utilisation can be believed.

    Without utilisation nothing is known to be active.
    """
    idle = [sample.time_s for sample in samples if not _busy(sample)]
    return [sample for sample in samples if _busy(sample) and _distance(sample.time_s, idle) > UTILISATION_LAG_S]


def _busy(sample: Sample) -> bool:
    return sample.utilisation_percent is not None and sample.utilisation_percent >= BUSY_PERCENT


def _distance(time_s: float, others: Sequence[float]) -> float:
    """To the nearest of the others, which are in order."""
    place = bisect_left(others, time_s)
    return min((abs(time_s - other) for other in others[max(0, place - 1) : place + 1]), default=float("inf"))


def _identity(before: GpuState, after: GpuState) -> list[Reason]:
    reasons = []
    for code, field in (("device_changed", "uuid"), ("device_changed", "pci_bus_id"), ("driver_changed", "driver")):
        old, new = getattr(before, field), getattr(after, field)
        if old != new:
            reasons.append(Reason(code, f"{field}: expected {old} all through, found {new}"))
    return reasons


def _throttling(before: GpuState, after: GpuState) -> list[Reason]:
    reasons = []
    for when, state in (("before", before), ("after", after)):
        bits = _names((state.throttle_reasons or 0) & ~sum(NOT_THROTTLING))
        if bits:
            message = f"clocks {when} the round: expected not to be held down, found {', '.join(bits)}"
            reasons.append(Reason("throttled", message))
    for policy in COUNTED_POLICIES:
        old, new = before.violation_ns.get(policy), after.violation_ns.get(policy)
        if old is not None and new is not None and new > old:
            more_ms = (new - old) / 1e6
            message = f"throttled: time under the {policy} limit: expected not to grow, found {more_ms:g} ms more"
            reasons.append(Reason("violation_time_grew", message))
    return reasons


def _names(bits: int) -> list[str]:
    masks = [1 << place for place in range(bits.bit_length()) if bits >> place & 1]
    return [THROTTLING.get(mask, hex(mask)) for mask in masks]


def _clocks(samples: Sequence[Sample], floor_mhz: float | None) -> list[Reason]:
    clocks = [sample.sm_clock_mhz for sample in samples if sample.sm_clock_mhz is not None]
    reasons = []
    if floor_mhz is not None and clocks and min(clocks) < floor_mhz:
        message = f"SM clock: expected at least {floor_mhz:g} MHz while working, found {min(clocks)} MHz"
        reasons.append(Reason("sm_clock_under_floor", message))
    high = 0
    for clock in clocks:
        high = max(high, clock)
        if clock < (1 - CLOCK_DROP) * high:
            message = f"SM clock: expected to stay near its {high} MHz while working, found {clock} MHz"
            return [*reasons, Reason("clock_drop", message)]
    return reasons


def _settings(before: GpuState, after: GpuState, samples: Sequence[Sample]) -> list[Reason]:
    reasons = []
    old, new = before.power_limit_w, after.power_limit_w
    if old is not None and new is not None and old != new:
        message = f"power limit: expected {old:g} W all through, found {new:g} W"
        reasons.append(Reason("power_limit_changed", message))
    working = [sample.performance_state for sample in samples]
    for states in ([before.performance_state, after.performance_state], working):
        found = {state for state in states if state is not None}
        if len(found) > 1:
            shown = ", ".join(f"P{state}" for state in sorted(found))
            message = f"performance state: expected one all through, found {shown}"
            reasons.append(Reason("performance_state_changed", message))
    if before.processes is not None and after.processes is not None:
        known = {process.pid for process in before.processes}
        fresh = [str(process.pid) for process in after.processes if process.pid not in known]
        if fresh:
            reasons.append(Reason("new_process", f"processes: expected no new one, found {', '.join(fresh)}"))
    errors, more = before.uncorrected_ecc_errors, after.uncorrected_ecc_errors
    if errors is not None and more is not None and more > errors:
        message = f"uncorrectable ECC errors: expected to stay {errors}, found {more}"
        reasons.append(Reason("uncorrected_ecc_grew", message))
    return reasons


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
