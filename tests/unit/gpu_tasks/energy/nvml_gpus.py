"""A GPU by a scripted NVML, and what NVML is asked for each value of it."""

from __future__ import annotations

from gpu_tasks.energy.nvml.gpu import NvmlGpu
from tests.unit.gpu_tasks.energy.nvml_scripted import UUID, ScriptedNvml

ENERGY = "nvmlDeviceGetTotalEnergyConsumption"
FIELDS = "nvmlDeviceGetFieldValues"


def opened(nvml: ScriptedNvml) -> NvmlGpu:
    return NvmlGpu(nvml, uuid=UUID, clock=nvml.clock, timeout_s=None)


QUESTIONS = {
    "power_w": (FIELDS, "nvmlDeviceGetPowerUsage"),
    "power_limit_w": ("nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit"),
    "default_power_limit_w": ("nvmlDeviceGetPowerManagementDefaultLimit",),
    "performance_state": ("nvmlDeviceGetPerformanceState",),
    "temperature_c": ("nvmlDeviceGetTemperature",),
    "utilisation_percent": ("nvmlDeviceGetUtilizationRates",),
    "throttle_reasons": ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"),
    "processes": ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetComputeRunningProcesses_v2"),
    "persistence_mode": ("nvmlDeviceGetPersistenceMode",),
    "mig_mode": ("nvmlDeviceGetMigMode",),
    "uncorrected_ecc_errors": ("nvmlDeviceGetTotalEccErrors",),
    "row_remap_pending": ("nvmlDeviceGetRemappedRows",),
}
