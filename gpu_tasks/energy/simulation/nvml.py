"""NVML as ``pynvml`` (nvidia-ml-py) offers it, over simulated GPUs: same names, arguments, constants and errors.

Only what an adapter needs; a name that is not here is an ``AttributeError``, as with a binding that is too old.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

from gpu_tasks.energy.simulation.constants import NvmlConstants
from gpu_tasks.energy.simulation.events import EventSet
from gpu_tasks.energy.simulation.gpu import HW_THERMAL, SW_POWER_CAP, SimulatedGpu

CALL_S = 5e-5
"""What a call other than reading the counter takes."""

CUDA_DRIVER_VERSION = 13000


class FakeNVMLError(Exception):
    """``pynvml.NVMLError``: NVML's number in ``value``."""

    def __init__(self, value: int) -> None:
        super().__init__(f"NVML Error with code {value}")
        self.value = value


class _Handle:
    """What NVML gives out for a device: opaque, and good for this library object alone."""

    def __init__(self, gpu: SimulatedGpu) -> None:
        self.gpu = gpu


class FakeNvml(NvmlConstants):
    """The library over ``gpus``, in NVML's order. ``bytes_strings``: text comes as bytes, as from old bindings.

    Calls need ``nvmlInit`` before, as many times as ``nvmlShutdown``. Time passes with each call.
    """

    NVMLError: ClassVar[type[FakeNVMLError]] = FakeNVMLError

    def __init__(self, *gpus: SimulatedGpu, bytes_strings: bool = False) -> None:
        self._gpus = gpus
        self._handles = [_Handle(gpu) for gpu in gpus]
        self._bytes = bytes_strings
        self._initialised = 0
        self._event_sets: list[EventSet] = []

    def nvmlInit(self) -> None:
        self._initialised += 1

    def nvmlShutdown(self) -> None:
        self._require_initialised()
        self._initialised -= 1

    def nvmlSystemGetDriverVersion(self) -> str | bytes:
        self._require_initialised()
        return self._text(self._gpus[0].driver)

    def nvmlSystemGetCudaDriverVersion(self) -> int:
        self._require_initialised()
        return CUDA_DRIVER_VERSION

    def nvmlDeviceGetCount(self) -> int:
        self._require_initialised()
        return len(self._gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> _Handle:
        self._require_initialised()
        if not 0 <= index < len(self._handles):
            raise self.NVMLError(self.NVML_ERROR_INVALID_ARGUMENT)
        return self._found(self._handles[index])

    def nvmlDeviceGetHandleByUUID(self, uuid: str | bytes) -> _Handle:
        self._require_initialised()
        wanted = uuid.decode() if isinstance(uuid, bytes) else uuid
        return self._found(*(handle for handle in self._handles if handle.gpu.uuid == wanted))

    def nvmlDeviceGetHandleByPciBusId(self, pciBusId: str | bytes) -> _Handle:
        self._require_initialised()
        wanted = _pci(pciBusId.decode() if isinstance(pciBusId, bytes) else pciBusId)
        return self._found(*(handle for handle in self._handles if _pci(handle.gpu.pci_bus_id) == wanted))

    def nvmlDeviceGetIndex(self, handle: _Handle) -> int:
        self._gpu(handle)
        return self._handles.index(handle)

    def nvmlDeviceGetUUID(self, handle: _Handle) -> str | bytes:
        return self._text(self._gpu(handle).uuid)

    def nvmlDeviceGetName(self, handle: _Handle) -> str | bytes:
        return self._text(self._gpu(handle).profile.name)

    def nvmlDeviceGetPciInfo(self, handle: _Handle) -> SimpleNamespace:
        bus_id = self._gpu(handle).pci_bus_id
        domain, bus, device = _pci(bus_id)
        legacy = f"{domain:04X}:{bus:02X}:{device:02X}.0"
        return SimpleNamespace(
            busId=self._text(bus_id), busIdLegacy=self._text(legacy), domain=domain, bus=bus, device=device
        )

    def nvmlDeviceGetCudaComputeCapability(self, handle: _Handle) -> tuple[int, int]:
        return self._gpu(handle).profile.capability

    def nvmlDeviceGetArchitecture(self, device: _Handle) -> int:
        self._gpu(device)
        return self.NVML_DEVICE_ARCH_AMPERE

    def nvmlDeviceGetMemoryInfo(self, handle: _Handle, version: int | None = None) -> SimpleNamespace:
        del version
        gpu = self._gpu(handle)
        total, used = gpu.profile.memory_bytes, sum(gpu.processes().values())
        return SimpleNamespace(total=total, used=used, free=total - used)

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: _Handle) -> int:
        """mJ since the driver was loaded, as the counter stands in the middle of the call."""
        gpu = self._device(handle)
        if gpu.effects.no_counter:
            raise self.NVMLError(self.NVML_ERROR_NOT_SUPPORTED)
        clock, latency = gpu.clock, gpu.read_latency_s()
        clock.sleep(latency / 2)
        value = gpu.counter.value_mj(clock.now())
        clock.sleep(latency / 2)
        number, gpu.counter_reads = gpu.counter_reads, gpu.counter_reads + 1
        if number in gpu.refused_reads:
            raise self.NVMLError(self.NVML_ERROR_NOT_READY)
        return value

    def nvmlDeviceGetPowerUsage(self, handle: _Handle) -> int:
        """mW, of this moment: an A100 does not average."""
        gpu = self._gpu(handle)
        return round(1000 * gpu.measured_power_w(gpu.clock.now()))

    def nvmlDeviceGetFieldValues(self, handle: _Handle, fieldIds: list[Any]) -> list[SimpleNamespace]:
        gpu = self._gpu(handle)
        return [self._field(gpu, field if isinstance(field, int) else field[0]) for field in fieldIds]

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: _Handle) -> int:
        return round(1000 * self._gpu(handle).power_limit_w)

    def nvmlDeviceGetPowerManagementLimit(self, handle: _Handle) -> int:
        return round(1000 * self._gpu(handle).power_limit_w)

    def nvmlDeviceGetPowerManagementDefaultLimit(self, handle: _Handle) -> int:
        return round(1000 * self._gpu(handle).profile.power_limit_w)

    def nvmlDeviceGetClockInfo(self, handle: _Handle, type: int) -> int:
        gpu = self._gpu(handle)
        if type == self.NVML_CLOCK_MEM:
            return gpu.profile.memory_clock_mhz
        if type in (self.NVML_CLOCK_SM, self.NVML_CLOCK_GRAPHICS):
            return gpu.sm_clock_mhz.at(gpu.clock.now())
        raise self.NVMLError(self.NVML_ERROR_NOT_SUPPORTED)

    def nvmlDeviceGetMaxClockInfo(self, handle: _Handle, type: int) -> int:
        profile = self._gpu(handle).profile
        if type == self.NVML_CLOCK_MEM:
            return profile.memory_clock_mhz
        if type in (self.NVML_CLOCK_SM, self.NVML_CLOCK_GRAPHICS):
            return profile.sm_clock_mhz
        raise self.NVMLError(self.NVML_ERROR_NOT_SUPPORTED)

    def nvmlDeviceGetPerformanceState(self, handle: _Handle) -> int:
        self._gpu(handle)
        return self.NVML_PSTATE_0

    def nvmlDeviceGetTemperature(self, handle: _Handle, sensor: int) -> int:
        gpu = self._gpu(handle)
        if sensor != self.NVML_TEMPERATURE_GPU:
            raise self.NVMLError(self.NVML_ERROR_INVALID_ARGUMENT)
        return round(gpu.temperature.value(gpu.clock.now()))

    def nvmlDeviceGetUtilizationRates(self, handle: _Handle) -> SimpleNamespace:
        gpu = self._gpu(handle)
        return SimpleNamespace(gpu=round(gpu.utilisation.value(gpu.clock.now())), memory=0)

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: _Handle) -> int:
        gpu = self._gpu(handle)
        return gpu.throttle_reasons(gpu.clock.now())

    nvmlDeviceGetCurrentClocksThrottleReasons = nvmlDeviceGetCurrentClocksEventReasons

    def nvmlDeviceGetViolationStatus(self, device: _Handle, perfPolicyType: int) -> SimpleNamespace:
        """``violationTime`` in ns; the reference time, in us, is this moment."""
        gpu = self._gpu(device)
        now = gpu.clock.now()
        bits = {
            self.NVML_PERF_POLICY_POWER: SW_POWER_CAP,
            self.NVML_PERF_POLICY_THERMAL: HW_THERMAL,
            self.NVML_PERF_POLICY_TOTAL_APP_CLOCKS: SW_POWER_CAP | HW_THERMAL,
        }
        seconds = gpu.throttle.seconds_with(bits.get(perfPolicyType, 0), now)
        return SimpleNamespace(referenceTime=round(1e6 * now), violationTime=round(1e9 * seconds))

    def nvmlDeviceGetComputeRunningProcesses(self, handle: _Handle) -> list[SimpleNamespace]:
        return [_process(pid, used) for pid, used in self._gpu(handle).processes().items()]

    nvmlDeviceGetComputeRunningProcesses_v2 = nvmlDeviceGetComputeRunningProcesses
    nvmlDeviceGetComputeRunningProcesses_v3 = nvmlDeviceGetComputeRunningProcesses

    def nvmlDeviceGetPersistenceMode(self, handle: _Handle) -> int:
        return int(self._gpu(handle).persistence_mode)

    def nvmlDeviceGetMigMode(self, device: _Handle) -> list[int]:
        mode = int(self._gpu(device).mig_mode)
        return [mode, mode]

    def nvmlDeviceGetEccMode(self, handle: _Handle) -> list[int]:
        self._gpu(handle)
        return [self.NVML_FEATURE_ENABLED, self.NVML_FEATURE_ENABLED]

    def nvmlDeviceGetTotalEccErrors(self, handle: _Handle, errorType: int, counterType: int) -> int:
        del counterType
        gpu = self._gpu(handle)
        return gpu.uncorrected_ecc_errors if errorType == self.NVML_MEMORY_ERROR_TYPE_UNCORRECTED else 0

    def nvmlDeviceGetRemappedRows(self, device: _Handle) -> tuple[int, int, int, int]:
        """Corrected, uncorrected, pending, failed."""
        pending = int(self._gpu(device).row_remap_pending)
        return (0, pending, pending, 0)

    def nvmlDeviceGetSupportedEventTypes(self, handle: _Handle) -> int:
        self._gpu(handle)
        return self.nvmlEventTypeXidCriticalError | self.nvmlEventTypeClock

    def nvmlEventSetCreate(self) -> EventSet:
        self._require_initialised()
        self._event_sets.append(EventSet())
        return self._event_sets[-1]

    def nvmlEventSetFree(self, eventSet: EventSet) -> None:
        self._require(eventSet)
        self._event_sets.remove(eventSet)

    def nvmlDeviceRegisterEvents(self, handle: _Handle, eventTypes: int, eventSet: EventSet) -> None:
        """Xid errors only are ever delivered; the clocks change too often for anybody's good."""
        self._require(eventSet)
        gpu = self._gpu(handle)
        if eventTypes & ~self.nvmlDeviceGetSupportedEventTypes(handle):
            raise self.NVMLError(self.NVML_ERROR_NOT_SUPPORTED)
        if eventTypes & self.nvmlEventTypeXidCriticalError:
            eventSet.register(handle, gpu)

    def nvmlEventSetWait_v2(self, eventSet: EventSet, timeoutms: int) -> SimpleNamespace:
        """Nothing happens while it waits: whatever could, works on the same clock."""
        self._require(eventSet)
        found = eventSet.next()
        if found is None:
            self._gpus[0].clock.sleep(timeoutms / 1000)
            raise self.NVMLError(self.NVML_ERROR_TIMEOUT)
        handle, number = found
        return SimpleNamespace(device=handle, eventType=self.nvmlEventTypeXidCriticalError, eventData=number)

    def _field(self, gpu: SimulatedGpu, field: int) -> SimpleNamespace:
        now = gpu.clock.now()
        watts = None
        if field == self.NVML_FI_DEV_POWER_INSTANT:
            watts = gpu.measured_power_w(now)
        elif field == self.NVML_FI_DEV_POWER_CURRENT_LIMIT:
            watts = gpu.power_limit_w
        elif field == self.NVML_FI_DEV_POWER_DEFAULT_LIMIT:
            watts = gpu.profile.power_limit_w
        found = SimpleNamespace(fieldId=field, scopeId=0, timestamp=round(1e6 * now), latencyUsec=0)
        found.valueType = self.NVML_VALUE_TYPE_UNSIGNED_INT
        found.nvmlReturn = self.NVML_ERROR_NOT_SUPPORTED if watts is None else self.NVML_SUCCESS
        found.value = SimpleNamespace(uiVal=0 if watts is None else round(1000 * watts))
        return found

    def _gpu(self, handle: _Handle) -> SimulatedGpu:
        gpu = self._device(handle)
        gpu.clock.sleep(CALL_S)
        return gpu

    def _device(self, handle: _Handle) -> SimulatedGpu:
        self._require_initialised()
        if handle not in self._handles:
            raise self.NVMLError(self.NVML_ERROR_INVALID_ARGUMENT)
        if handle.gpu.lost:
            raise self.NVMLError(self.NVML_ERROR_GPU_IS_LOST)
        return handle.gpu

    def _found(self, *handles: _Handle) -> _Handle:
        if not handles:
            raise self.NVMLError(self.NVML_ERROR_NOT_FOUND)
        self._device(handles[0])
        return handles[0]

    def _require(self, events: EventSet) -> None:
        self._require_initialised()
        if events not in self._event_sets:
            raise self.NVMLError(self.NVML_ERROR_INVALID_ARGUMENT)

    def _require_initialised(self) -> None:
        if not self._initialised:
            raise self.NVMLError(self.NVML_ERROR_UNINITIALIZED)

    def _text(self, text: str) -> str | bytes:
        return text.encode() if self._bytes else text


def _process(pid: int, used_bytes: int) -> SimpleNamespace:
    nowhere = 0xFFFFFFFF  # of an instance of MIG
    return SimpleNamespace(pid=pid, usedGpuMemory=used_bytes, gpuInstanceId=nowhere, computeInstanceId=nowhere)


def _pci(bus_id: str) -> tuple[int, int, int]:
    """Domain, bus and device of ``00000000:07:00.0``, of any length and case."""
    domain, bus, rest = bus_id.split(":")
    return int(domain, 16), int(bus, 16), int(rest.partition(".")[0], 16)
