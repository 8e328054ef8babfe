"""A round between two states of a GPU, and the codes of what makes it invalid."""

from __future__ import annotations

import dataclasses

from gpu_tasks.energy.invalidation import invalid_reasons
from gpu_tasks.energy.nvml.queries import POLICIES
from gpu_tasks.energy.trace import Sample
from gpu_tasks.records import CounterReading, GpuProcess, GpuState

BEFORE = GpuState(
    time_s=100.0,
    uuid="GPU-5c63cb6b",
    pci_bus_id="00000000:50:00.0",
    driver="580.105.08",
    power_w=57.7,
    power_kind="instantaneous",
    power_limit_w=400.0,
    default_power_limit_w=400.0,
    sm_clock_mhz=1410,
    memory_clock_mhz=1215,
    performance_state=0,
    temperature_c=31,
    utilisation_percent=0,
    throttle_reasons=0x1,
    violation_ns=dict.fromkeys(POLICIES, 1000),
    processes=[GpuProcess(1285, 450 << 20)],
    persistence_mode=True,
    mig_mode=False,
    uncorrected_ecc_errors=0,
    row_remap_pending=False,
    unavailable={},
)
AFTER = dataclasses.replace(BEFORE, time_s=126.0, temperature_c=36)


def reading(time_s: float, energy_mj: int) -> CounterReading:
    return CounterReading(energy_mj, time_s, 0.003)


WORK = [(104.0, 125.0)]
READINGS = [reading(100.0, 0), reading(105.0, 300_000), reading(121.0, 1_800_000), reading(121.01, 1_800_000)]


def working(clocks: list[int], state: int = 0, start_s: float = 105.0, **values: int | None) -> list[Sample]:
    """A sample every 50 ms while kernels run."""
    return [
        Sample(start_s + number / 20, 90.0, sm_clock_mhz=clock, performance_state=state, **values)  # type: ignore[arg-type]
        for number, clock in enumerate(clocks)
    ]


def counted(*energies_mj: int, start_s: float = 105.0) -> list[Sample]:
    """Samples of the counter, every 50 ms."""
    times = [start_s + number / 20 for number in range(len(energies_mj))]
    return [
        Sample(time, counter_time_s=time, counter_mj=energy) for time, energy in zip(times, energies_mj, strict=True)
    ]


def codes(
    before: GpuState = BEFORE,
    after: GpuState = AFTER,
    samples: list[Sample] | None = None,
    readings: list[CounterReading] | None = None,
    *,
    clock_floor_mhz: float | None = None,
    active: list[tuple[float, float]] | None = None,
) -> list[str]:
    reasons = invalid_reasons(
        before,
        after,
        working([1410] * 300) if samples is None else samples,
        READINGS if readings is None else readings,
        active=WORK if active is None else active,
        clock_floor_mhz=clock_floor_mhz,
    )
    assert all(": expected " in reason.message and ", found " in reason.message for reason in reasons)
    return [reason.code for reason in reasons]
