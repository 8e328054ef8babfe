"""The constants of nvml.h that the fake NVML knows."""

from __future__ import annotations

from gpu_tasks.energy.simulation.gpu import GPU_IDLE, HW_POWER_BRAKE, HW_SLOWDOWN, HW_THERMAL, SW_POWER_CAP


class NvmlConstants:
    """As class attributes; the tests compare them with those of nvidia-ml-py."""

    NVML_SUCCESS = 0
    NVML_ERROR_UNINITIALIZED = 1
    NVML_ERROR_INVALID_ARGUMENT = 2
    NVML_ERROR_NOT_SUPPORTED = 3
    NVML_ERROR_NO_PERMISSION = 4
    NVML_ERROR_NOT_FOUND = 6
    NVML_ERROR_DRIVER_NOT_LOADED = 9
    NVML_ERROR_TIMEOUT = 10
    NVML_ERROR_FUNCTION_NOT_FOUND = 13
    NVML_ERROR_GPU_IS_LOST = 15
    NVML_ERROR_RESET_REQUIRED = 16
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25
    NVML_ERROR_NOT_READY = 27
    NVML_ERROR_UNKNOWN = 999
    NVML_FEATURE_DISABLED = 0
    NVML_FEATURE_ENABLED = 1
    NVML_DEVICE_MIG_DISABLE = 0
    NVML_DEVICE_MIG_ENABLE = 1
    NVML_CLOCK_GRAPHICS = 0
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_CLOCK_VIDEO = 3
    NVML_TEMPERATURE_GPU = 0
    NVML_PSTATE_0 = 0
    NVML_PSTATE_UNKNOWN = 32
    NVML_MEMORY_ERROR_TYPE_CORRECTED = 0
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_VOLATILE_ECC = 0
    NVML_AGGREGATE_ECC = 1
    NVML_PERF_POLICY_POWER = 0
    NVML_PERF_POLICY_THERMAL = 1
    NVML_PERF_POLICY_SYNC_BOOST = 2
    NVML_PERF_POLICY_BOARD_LIMIT = 3
    NVML_PERF_POLICY_LOW_UTILIZATION = 4
    NVML_PERF_POLICY_RELIABILITY = 5
    NVML_PERF_POLICY_TOTAL_APP_CLOCKS = 10
    NVML_PERF_POLICY_TOTAL_BASE_CLOCKS = 11
    NVML_VALUE_TYPE_UNSIGNED_INT = 1
    NVML_DEVICE_ARCH_AMPERE = 7
    NVML_FI_DEV_POWER_AVERAGE = 185
    NVML_FI_DEV_POWER_INSTANT = 186
    NVML_FI_DEV_POWER_DEFAULT_LIMIT = 189
    NVML_FI_DEV_POWER_CURRENT_LIMIT = 190
    nvmlEventTypeXidCriticalError = 8
    nvmlEventTypeClock = 0x10
    nvmlClocksEventReasonGpuIdle = nvmlClocksThrottleReasonGpuIdle = GPU_IDLE
    nvmlClocksEventReasonSwPowerCap = nvmlClocksThrottleReasonSwPowerCap = SW_POWER_CAP
    nvmlClocksEventReasonHwSlowdown = nvmlClocksThrottleReasonHwSlowdown = HW_SLOWDOWN
    nvmlClocksEventReasonSyncBoost = nvmlClocksThrottleReasonSyncBoost = 0x10
    nvmlClocksEventReasonSwThermalSlowdown = nvmlClocksThrottleReasonSwThermalSlowdown = 0x20
    nvmlClocksEventReasonHwThermalSlowdown = nvmlClocksThrottleReasonHwThermalSlowdown = HW_THERMAL
    nvmlClocksEventReasonHwPowerBrakeSlowdown = nvmlClocksThrottleReasonHwPowerBrakeSlowdown = HW_POWER_BRAKE
