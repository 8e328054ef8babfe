"""One made-up night, as large as a real one: generated rows are copies of it, and the loader is timed with it."""

from __future__ import annotations

from dataclasses import replace

from gpu_tasks.records import (
    AlignedReadings,
    AuditedReadings,
    CounterEdge,
    CounterReading,
    IdleWindow,
    PowerTrace,
    RoundRecord,
    RunRecord,
)
from tests.integration.regression.example_energy import STATE, energy, energy_run, figure
from tests.integration.regression.example_records import measured

FIGURES = ("classic", "aligned", "audited")
KINDS_OF_VIOLATION = (
    *("power", "thermal", "sync_boost", "board_limit", "low_utilization", "reliability"),
    *("total_app_clocks", "total_base_clocks"),
)
SAMPLES = 900
"""Of one round at 20 a second: about 60 kB of CSV."""


def edge(place: int) -> CounterEdge:
    moment = 4_183_217.25 + 2 * place
    return CounterEdge(170_000_000_000 + 76_543 * place, moment, moment + 0.0032)


def window(place: int) -> IdleWindow:
    start, end = (
        CounterReading(170_000_000_000 + 76_543 * p, 4_183_217.25 + 2 * p, 0.0032134) for p in (place, place + 5)
    )
    return IdleWindow(start, end, 38.3986207)


def round_record(number: int, adjusted_mj: float = 0.6, *, trace: bool = False) -> RoundRecord:
    """An audited round with as many readings as a real one: thirteen edges, both meters, two states of the GPU."""
    state = replace(STATE, violation_ns=dict.fromkeys(KINDS_OF_VIOLATION, 0), mig_mode=False, unavailable={})
    edges = [edge(place) for place in range(13)]
    details = energy(
        {},
        figures=[figure(name, adjusted_mj + offset) for name, offset in zip(FIGURES, (0.02, -0.01, 0.0), strict=True)],
        aligned=AlignedReadings(edges[:7], edges[6], edges[7], edges[8], edges[8:]),
        audited=AuditedReadings(window(0), window(9)),
        segments=[],
        state_before=state,
        state_after=replace(state, time_s=state.time_s + 50),
        trace=power_trace() if trace else None,
    )
    windows = {"idle_before": window(1), "idle_after": window(8)}
    start, end = windows["idle_before"].end, windows["idle_after"].start
    return measured(
        number,
        adjusted_mj,
        arm="candidate",
        protocol="audited",
        energy=details,
        measurement_start=start,
        measurement_end=end,
        **windows,
    )


def power_trace() -> PowerTrace:
    lines = ["time_s,power_w,counter_time_s,counter_mj,sm_clock_mhz,memory_clock_mhz,temperature_c,utilisation_percent"]
    for n in range(SAMPLES):
        moment, watts = 1002.638480 + n * 0.051302, 60 + (n * 7919 % 1000) / 100
        lines.append(f"{moment:.6f},{watts:.3f},{moment + 0.002:.6f},{90936871012 + n * 7036},1410,1215,32,{n % 100}")
    return PowerTrace(0.05, "instantaneous", "\n".join(lines) + "\n", None)


def night(name: str, *, traces: bool = False) -> RunRecord:
    """A verified night of eleven draws and seven rounds; with ``traces`` the power samples of every round."""
    energies = (0.59, 0.595, 0.6, 0.6, 0.601, 0.605, 0.61)
    rounds = [round_record(number, mj, trace=traces) for number, mj in enumerate(energies)]
    record = energy_run(name, rounds=rounds)
    edges = [edge(place) for place in range(13)]
    telemetry = [replace(part, idle_edges=edges, trace=None) for part in record.telemetry]
    return replace(record, telemetry=telemetry, summary=replace(record.summary, gross_mj_median=1.26))
