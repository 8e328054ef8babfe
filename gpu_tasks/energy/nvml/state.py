"""Everything that NVML says of a GPU at one moment, each value asked for by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from gpu_tasks.energy.nvml.errors import NvmlUnavailable
from gpu_tasks.energy.nvml.queries import POLICIES, Power, Queries
from gpu_tasks.energy.trace import Sample
from gpu_tasks.records import CounterReading, GpuState

T = TypeVar("T")
COUNTER = "energy_counter"
"""Key of ``GpuState.unavailable`` for the energy counter, which is no field of the state."""


class Probe:
    """Asks for values one by one and keeps why those that are missing are missing.

    What this GPU, driver or process cannot have is null. Everything else is raised: a lost GPU, a driver that is not
    ready or a call that hangs says nothing about what the GPU can do.
    """

    def __init__(self) -> None:
        self.unavailable: dict[str, str] = {}

    def ask(self, field: str, question: Callable[[], T]) -> T | None:
        """The answer, or null with the reason kept under ``field``."""
        try:
            return question()
        except NvmlUnavailable as error:
            self.unavailable[field] = error.message
            return None


def read_state(gpu: Queries, pci_bus_id: str, time_s: float) -> GpuState:
    """The state of the GPU, which began to be asked for at ``time_s``."""
    probe = Probe()
    power: Power | None = probe.ask("power_w", gpu.power)
    violations = {policy: _violation(probe, gpu, policy) for policy in POLICIES}
    counter: CounterReading | None = probe.ask(COUNTER, gpu.counter)
    del counter  # asked for only so that the state says why there is none
    return GpuState(
        time_s=time_s,
        uuid=gpu.uuid(),
        pci_bus_id=pci_bus_id,
        driver=gpu.driver(),
        power_w=power.watts if power else None,
        power_kind=power.kind if power else None,
        power_limit_w=probe.ask("power_limit_w", gpu.power_limit_w),
        default_power_limit_w=probe.ask("default_power_limit_w", gpu.default_power_limit_w),
        sm_clock_mhz=probe.ask("sm_clock_mhz", gpu.sm_clock_mhz),
        memory_clock_mhz=probe.ask("memory_clock_mhz", gpu.memory_clock_mhz),
        performance_state=probe.ask("performance_state", gpu.performance_state),
        temperature_c=probe.ask("temperature_c", gpu.temperature_c),
        utilisation_percent=probe.ask("utilisation_percent", gpu.utilisation_percent),
        throttle_reasons=probe.ask("throttle_reasons", gpu.throttle_reasons),
        violation_ns={policy: time for policy, time in violations.items() if time is not None},
        processes=probe.ask("processes", gpu.processes),
        persistence_mode=probe.ask("persistence_mode", gpu.persistence_mode),
        mig_mode=probe.ask("mig_mode", gpu.mig_mode),
        uncorrected_ecc_errors=probe.ask("uncorrected_ecc_errors", gpu.uncorrected_ecc_errors),
        row_remap_pending=probe.ask("row_remap_pending", gpu.row_remap_pending),
        unavailable=probe.unavailable,
    )


def take_sample(gpu: Queries, now_s: float, *, processes: bool) -> tuple[Sample, str | None]:
    """One sample of a trace and the kind of its power; of ``now_s`` where there is no power to have a time of.

    ``processes``: whether they are counted too.
    """
    probe = Probe()
    power: Power | None = probe.ask("power_w", gpu.power)
    counter: CounterReading | None = probe.ask(COUNTER, gpu.counter)
    sample = Sample(
        time_s=power.time_s if power else now_s,
        power_w=power.watts if power else None,
        counter_time_s=counter.time_s if counter else None,
        counter_mj=counter.energy_mj if counter else None,
        sm_clock_mhz=probe.ask("sm_clock_mhz", gpu.sm_clock_mhz),
        memory_clock_mhz=probe.ask("memory_clock_mhz", gpu.memory_clock_mhz),
        temperature_c=probe.ask("temperature_c", gpu.temperature_c),
        utilisation_percent=probe.ask("utilisation_percent", gpu.utilisation_percent),
        performance_state=probe.ask("performance_state", gpu.performance_state),
        throttle_reasons=probe.ask("throttle_reasons", gpu.throttle_reasons),
        processes=probe.ask("processes", lambda: len(gpu.processes())) if processes else None,
    )
    return sample, power.kind if power else None


def _violation(probe: Probe, gpu: Queries, policy: str) -> int | None:
    return probe.ask(f"violation_ns.{policy}", lambda: gpu.violation_ns(policy))
