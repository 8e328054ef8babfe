"""One GPU's values by NVML, each by its own call and in this project's units.

A method that cannot have its value raises the ``NvmlError`` of the call; there are no defaults. Numbers of NVML's
enumerations are those of nvml.h, which never change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpu_tasks.energy.instruments import Clock
from gpu_tasks.energy.nvml.access import NvmlLibrary, TimedValue
from gpu_tasks.energy.nvml.errors import (
    SUCCESS,
    NvmlBlankValue,
    NvmlInvalidArgument,
    NvmlUnavailable,
    nvml_error,
)
from gpu_tasks.energy.nvml.values import count, switch, text
from gpu_tasks.records import CounterReading, GpuProcess

POLICIES = {
    "power": 0,
    "thermal": 1,
    "sync_boost": 2,
    "board_limit": 3,
    "low_utilization": 4,
    "reliability": 5,
    "total_app_clocks": 10,
    "total_base_clocks": 11,
}
"""NVML_PERF_POLICY_...: what can hold the clocks down; NVML keeps the time that each did."""

INSTANTANEOUS, AVERAGE = "instantaneous", "average"

_CLOCK_SM, _CLOCK_MEMORY = 1, 2  # NVML_CLOCK_...
_TEMPERATURE_GPU = 0
_POWER_INSTANT = 186  # NVML_FI_DEV_POWER_INSTANT
_UNSIGNED = "uiVal"
_VALUE_TYPES = {1: _UNSIGNED, 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal"}  # NVML_VALUE_TYPE_... of integers
_UNCORRECTED, _SINCE_DRIVER_LOAD = 1, 0  # NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC
_LAST_STATE = 15
_AMPERE = 7  # NVML_DEVICE_ARCH_AMPERE
_GA100 = re.compile(r"\b(A100X?|A800|A30X?|PG506|CMP 170HX)\b")


@dataclass(frozen=True)
class Power:
    """Power in W, whether it is of a moment or the mean of the last second, and the middle of the call."""

    watts: float
    kind: str
    time_s: float


class Queries:
    """Calls on one handle."""

    def __init__(self, nvml: NvmlLibrary, handle: Any, clock: Clock) -> None:
        self._nvml, self._handle, self._clock = nvml, handle, clock

    def counter(self) -> CounterReading:
        """The energy counter in mJ, timed."""
        name = "nvmlDeviceGetTotalEnergyConsumption"
        timed = self._timed(name)
        return CounterReading(count(timed.value, name), timed.middle_s, timed.duration_s)

    def power(self) -> Power:
        """Power of this moment where the GPU has it as a field, else what ``nvmlDeviceGetPowerUsage`` gives."""
        try:
            return self._instantaneous_power()
        except (NvmlUnavailable, NvmlInvalidArgument):  # a driver that knows no such field calls it either
            kind = self._usage_kind()
        name = "nvmlDeviceGetPowerUsage"
        timed = self._timed(name)
        return Power(count(timed.value, name) / 1000, kind, timed.middle_s)

    def power_limit_w(self) -> float:
        """The limit in force: the lowest of all that are set; with an old driver the one set for power management."""
        try:
            return self._count("nvmlDeviceGetEnforcedPowerLimit") / 1000
        except NvmlUnavailable:
            return self._count("nvmlDeviceGetPowerManagementLimit") / 1000

    def default_power_limit_w(self) -> float:
        """The limit that the board comes with."""
        return self._count("nvmlDeviceGetPowerManagementDefaultLimit") / 1000

    def sm_clock_mhz(self) -> int:
        """Clock of the multiprocessors."""
        return self._count("nvmlDeviceGetClockInfo", _CLOCK_SM)

    def memory_clock_mhz(self) -> int:
        """Clock of the memory."""
        return self._count("nvmlDeviceGetClockInfo", _CLOCK_MEMORY)

    def performance_state(self) -> int:
        """0 (fastest) to 15; NVML has 32 for unknown."""
        name = "nvmlDeviceGetPerformanceState"
        state = self._count(name)
        if state > _LAST_STATE:
            raise NvmlBlankValue(name, state)
        return state

    def temperature_c(self) -> int:
        """Temperature of the GPU."""
        return self._count("nvmlDeviceGetTemperature", _TEMPERATURE_GPU)

    def utilisation_percent(self) -> int:
        """Share of the last sampling period of the driver (1/6 to 1 s) in which a kernel ran."""
        name = "nvmlDeviceGetUtilizationRates"
        return count(self._call(name).gpu, name)

    def throttle_reasons(self) -> int:
        """NVML's bit mask of what holds the clocks down; drivers before 535 know it by its older name."""
        try:
            return self._count("nvmlDeviceGetCurrentClocksEventReasons")
        except NvmlUnavailable:
            return self._count("nvmlDeviceGetCurrentClocksThrottleReasons")

    def violation_ns(self, policy: str) -> int:
        """Time in ns that one of ``POLICIES`` has held the clocks down since the driver was loaded."""
        name = "nvmlDeviceGetViolationStatus"
        return count(self._call(name, POLICIES[policy]).violationTime, name)

    def processes(self) -> list[GpuProcess]:
        """Processes with a compute context, by number; an old driver lists them by an older function."""
        try:
            found: Sequence[Any] = self._call("nvmlDeviceGetComputeRunningProcesses")
        except NvmlUnavailable:
            found = self._call("nvmlDeviceGetComputeRunningProcesses_v2")
        processes = [GpuProcess(count(item.pid, "pid"), _memory(item.usedGpuMemory)) for item in found]
        return sorted(processes, key=lambda process: process.pid)

    def persistence_mode(self) -> bool:
        """Whether the driver stays loaded while nobody uses the GPU."""
        return self._switch("nvmlDeviceGetPersistenceMode")

    def mig_mode(self) -> bool:
        """Whether the GPU is cut into slices."""
        name = "nvmlDeviceGetMigMode"
        current, _pending = self._call(name)
        return switch(current, name)

    def uncorrected_ecc_errors(self) -> int:
        """Errors in memory that ECC could not correct since the driver was loaded."""
        return self._count("nvmlDeviceGetTotalEccErrors", _UNCORRECTED, _SINCE_DRIVER_LOAD)

    def row_remap_pending(self) -> bool:
        """Whether bad memory rows wait for the next reset to be replaced."""
        name = "nvmlDeviceGetRemappedRows"
        return switch(self._call(name)[2], name)

    def uuid(self) -> str:
        """UUID of the GPU that the handle is of now."""
        return text(self._call("nvmlDeviceGetUUID"), "nvmlDeviceGetUUID")

    def driver(self) -> str:
        """Release of the driver, such as ``580.105.08``."""
        return text(self._nvml.call("nvmlSystemGetDriverVersion"), "nvmlSystemGetDriverVersion")

    def _instantaneous_power(self) -> Power:
        name = "nvmlDeviceGetFieldValues"
        timed = self._timed(name, [_POWER_INSTANT])
        field = timed.value[0]
        if field.nvmlReturn != SUCCESS:
            raise nvml_error(field.nvmlReturn, f"{name}(NVML_FI_DEV_POWER_INSTANT)")
        member = _VALUE_TYPES.get(field.valueType, _UNSIGNED)
        return Power(count(getattr(field.value, member), name) / 1000, INSTANTANEOUS, timed.middle_s)

    def _usage_kind(self) -> str:
        """Which power ``nvmlDeviceGetPowerUsage`` gives, which it does not say itself.

        By its documentation: the mean of one second on Ampere and newer, except GA100 (A100, A800, A30), which is
        as all older ones are: of the moment. Unknown architectures are newer ones.
        """
        try:
            if count(self._call("nvmlDeviceGetArchitecture"), "nvmlDeviceGetArchitecture") < _AMPERE:
                return INSTANTANEOUS
        except NvmlUnavailable:
            pass
        name = text(self._call("nvmlDeviceGetName"), "nvmlDeviceGetName")
        return INSTANTANEOUS if _GA100.search(name) else AVERAGE

    def _call(self, name: str, *arguments: Any) -> Any:
        return self._nvml.call(name, self._handle, *arguments)

    def _timed(self, name: str, *arguments: Any) -> TimedValue:
        return self._nvml.timed_call(self._clock, name, self._handle, *arguments)

    def _count(self, name: str, *arguments: Any) -> int:
        return count(self._call(name, *arguments), name)

    def _switch(self, name: str) -> bool:
        return switch(self._call(name), name)


def _memory(value: object) -> int | None:
    """Used bytes of a process; null where NVML does not know them, as in some containers."""
    try:
        return count(value, "usedGpuMemory")
    except NvmlBlankValue:
        return None
