"""What is learnt of the sensor before and after the rounds: the counter's period, the idle power, a known load."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from gpu_tasks.energy.bands import band_for
from gpu_tasks.energy.counter import (
    WANDER_S,
    WANDER_SEGMENT_S,
    idle_wander,
    read_latency_s,
    tick_period_s,
)
from gpu_tasks.energy.gates import reference_gate
from gpu_tasks.energy.instruments import Instruments, LoadRun
from gpu_tasks.energy.preflight import refuse_unfit
from gpu_tasks.energy.protocols import Say, idle_stretch
from gpu_tasks.energy.window_figures import edges_power_w
from gpu_tasks.records import (
    CounterEdge,
    GateResult,
    GpuState,
    IdleWander,
    PowerTrace,
    ReferenceLoad,
    TelemetryRecord,
)

LOAD_S = 5.0
LOW_DUTY, LOW_DUTY_S = 0.2, 10.0
"""A fifth of the time: what the GPU then draws above idle is of the size of the task's power, not five times it."""

SETTLE_S = 3.0
SHORT_IDLE_S = 10.0
LATENCY_READS = 50
LARGEST_ERROR = 1e-3
"""Of a float32 sum of 4096 products, relative: rounding leaves 1e-5 or so, TF32 would leave 1e-2."""

FLOATING_POINT_OPERATIONS = 2
"""A product and a sum for each of the n^3 steps."""


@dataclass(frozen=True)
class Telemetry:
    """What one look at the sensor found."""

    tick_period_s: float
    read_latency_s: float
    wander: IdleWander | None
    idle_edges: list[CounterEdge]
    reference_load: ReferenceLoad
    gates: list[GateResult]
    state_before: GpuState
    state_after: GpuState
    trace: PowerTrace


def look(
    instruments: Instruments,
    model: str,
    when: str,
    learnt_bands: Mapping[str, list[float]],
    *,
    power_limit_w: float | None,
    say: Say,
) -> Telemetry:
    """Look at the sensor; ``when`` before also learns how the idle power wanders, which takes a minute."""
    gpu, clock = instruments.gpu, instruments.clock
    refuse_unfit(instruments, power_limit_w)
    sampler = instruments.sampler()
    sampler.start()
    try:
        before = gpu.state()
        say("settle", SETTLE_S)
        clock.sleep(SETTLE_S)
        tick = tick_period_s(gpu, clock)
        latency = read_latency_s([gpu.read_counter() for _ in range(LATENCY_READS)])
        seconds = WANDER_S if when == "before" else SHORT_IDLE_S
        edges = idle_stretch(instruments, seconds, WANDER_SEGMENT_S, say)
        say("reference load", LOAD_S)
        idle_w = edges_power_w(edges)
        load = reference_load(instruments.known_load.run(LOAD_S), idle_w)
        say("reference load with pauses", LOW_DUTY_S)
        low = reference_load(instruments.known_load.run(LOW_DUTY_S, LOW_DUTY), idle_w)
        load = dataclasses.replace(load, low_duty_joules_per_1e12_operations=low.joules_per_1e12_operations)
        say("settle", SETTLE_S)
        clock.sleep(SETTLE_S)
        after = gpu.state()
    finally:
        trace = sampler.stop()
    return Telemetry(
        tick_period_s=tick,
        read_latency_s=latency,
        wander=idle_wander(edges),
        idle_edges=edges,
        reference_load=load,
        gates=[reference_gate(load, band_for(model, learnt_bands), model, when)],
        state_before=before,
        state_after=after,
        trace=trace,
    )


def reference_load(run: LoadRun, idle_w: float) -> ReferenceLoad:
    """Energy above idle an operation, from a stretch of products and the idle power before it."""
    seconds = run.end.time_s - run.start.time_s
    energy_j = (run.end.energy_mj - run.start.energy_mj) / 1000
    return _load(run.size, run.repeats, run.largest_error, seconds=seconds, energy_j=energy_j, idle_w=idle_w)


def with_load_figures(record: TelemetryRecord) -> TelemetryRecord:
    """``record`` with everything computed again that follows from its counter steps and its energies.

    The load with pauses has nothing left that its figure could be made of.
    """
    edges, load = record.idle_edges, record.reference_load
    if not edges or load is None:
        return record
    low = load.low_duty_joules_per_1e12_operations
    again = _load(
        load.size,
        load.repeats,
        load.largest_error,
        seconds=load.duration_s,
        energy_j=load.energy_j,
        idle_w=edges_power_w(edges),
    )
    again = dataclasses.replace(again, low_duty_joules_per_1e12_operations=low)
    return dataclasses.replace(record, wander=idle_wander(edges), reference_load=again)


def _load(
    size: int, repeats: int, largest_error: float, *, seconds: float, energy_j: float, idle_w: float
) -> ReferenceLoad:
    operations = float(FLOATING_POINT_OPERATIONS * size**3 * repeats)
    above_j = energy_j - idle_w * seconds
    return ReferenceLoad(
        size=size,
        repeats=repeats,
        operations=operations,
        duration_s=seconds,
        energy_j=energy_j,
        idle_w=idle_w,
        above_idle_w=above_j / seconds,
        joules_per_1e12_operations=above_j / operations * 1e12,
        tera_operations_per_s=operations / seconds / 1e12,
        largest_error=largest_error,
        result_verified=largest_error <= LARGEST_ERROR,
    )


def as_fields(found: Telemetry) -> dict[str, object]:
    """The fields of a telemetry record that ``found`` fills."""
    return {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
