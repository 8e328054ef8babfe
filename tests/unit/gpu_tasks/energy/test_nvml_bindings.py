"""The adapter over the installed nvidia-ml-py: its own functions and structures, with a driver below that is not there.

The bindings look up each C function by name in the driver's library; here they find Python functions that fill what
they are given as a driver would.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pynvml
import pytest

from gpu_tasks.energy.nvml.errors import NvmlFunctionNotFound, NvmlGpuIsLost, NvmlNewerCode, NvmlNotSupported
from gpu_tasks.energy.nvml.gpu import NvmlGpu
from gpu_tasks.energy.nvml.queries import POLICIES
from gpu_tasks.records import GpuProcess
from tests.unit.gpu_tasks.energy.nvml_scripted import BUS_ID, OTHER_UUID, UUID, StepClock

MIB = 1 << 20


def _filled(*values: Any) -> Callable[..., int]:
    """A C function that writes its values to its last arguments."""

    def function(*arguments: Any) -> int:
        for target, value in zip(arguments[-len(values) :], values, strict=True):
            target._obj.value = value
        return 0

    return function


class Driver:
    """C functions by name; ``codes`` are returned in place of a call."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self.absent: set[str] = set()
        self.processes = [(1285, 450 * MIB), (9, 2**64 - 1)]
        self.registered: list[int] = []
        self.xids: list[int] = []
        self.power: tuple[int, int, int] = (0, 1, 57_700)  # code, type, value
        self.functions: dict[str, Callable[..., int]] = {
            "nvmlInitWithFlags": lambda flags: 0,
            "nvmlShutdown": lambda: 0,
            "nvmlErrorString": lambda code: b"some words",
            "nvmlSystemGetDriverVersion": self._driver_version,
            "nvmlDeviceGetHandleByUUID": self._handle,
            "nvmlDeviceGetCount_v2": _filled(1),
            "nvmlDeviceGetHandleByIndex_v2": lambda index, handle: 0,
            "nvmlDeviceGetUUID": self._uuid,
            "nvmlDeviceGetPciInfo_v3": self._pci,
            "nvmlDeviceGetTotalEnergyConsumption": _filled(123_456_789_012),
            "nvmlDeviceGetFieldValues": self._fields,
            "nvmlDeviceGetPowerUsage": _filled(40_000),
            "nvmlDeviceGetArchitecture": _filled(pynvml.NVML_DEVICE_ARCH_HOPPER),
            "nvmlDeviceGetName": self._name,
            "nvmlDeviceGetEnforcedPowerLimit": _filled(400_000),
            "nvmlDeviceGetPowerManagementDefaultLimit": _filled(500_000),
            "nvmlDeviceGetClockInfo": lambda handle, kind, clock: _filled({1: 1410, 2: 1215}[kind.value])(clock),
            "nvmlDeviceGetPerformanceState": _filled(0),
            "nvmlDeviceGetTemperature": _filled(31),
            "nvmlDeviceGetUtilizationRates": self._utilisation,
            "nvmlDeviceGetCurrentClocksEventReasons": _filled(0x44),
            "nvmlDeviceGetViolationStatus": self._violation,
            "nvmlDeviceGetComputeRunningProcesses_v3": self._processes,
            "nvmlDeviceGetComputeRunningProcesses_v2": self._processes,
            "nvmlDeviceGetPersistenceMode": _filled(1),
            "nvmlDeviceGetMigMode": _filled(0, 0),
            "nvmlDeviceGetTotalEccErrors": _filled(0),
            "nvmlDeviceGetRemappedRows": _filled(0, 0, 1, 0),
            "nvmlDeviceGetSupportedEventTypes": _filled(pynvml.nvmlEventTypeXidCriticalError),
            "nvmlEventSetCreate": lambda events: 0,
            "nvmlDeviceRegisterEvents": self._register,
            "nvmlEventSetWait_v2": self._event,
            "nvmlEventSetFree": lambda events: 0,
        }

    def find(self, name: str) -> Callable[..., int]:
        """What the bindings call in place of looking into the library."""
        if name in self.absent:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        function = self.functions[name]

        def call(*arguments: Any) -> int:
            return self.codes.get(name) or function(*arguments)

        return call

    def _handle(self, uuid: ctypes.c_char_p, handle: Any) -> int:
        return 0 if uuid.value == UUID.encode() else pynvml.NVML_ERROR_NOT_FOUND

    def _uuid(self, handle: Any, text: Any, size: Any) -> int:
        text.value = UUID.encode()
        return 0

    def _name(self, handle: Any, text: Any, size: Any) -> int:
        text.value = b"NVIDIA H200"
        return 0

    def _driver_version(self, text: Any, size: Any) -> int:
        text.value = b"580.105.08"
        return 0

    def _pci(self, handle: Any, info: Any) -> int:
        info._obj.busId = BUS_ID.encode()
        return 0

    def _fields(self, handle: Any, number: Any, fields: Any) -> int:
        (field,) = fields._obj
        assert field.fieldId == pynvml.NVML_FI_DEV_POWER_INSTANT
        assert field.scopeId == 0
        field.nvmlReturn, field.valueType, value = self.power
        field.value.ullVal = value
        return 0

    def _utilisation(self, handle: Any, rates: Any) -> int:
        rates._obj.gpu, rates._obj.memory = 98, 3
        return 0

    def _violation(self, handle: Any, policy: Any, time: Any) -> int:
        time._obj.referenceTime, time._obj.violationTime = 1, policy.value
        return 0

    def _register(self, handle: Any, types: Any, events: Any) -> int:
        self.registered.append(types.value)
        return 0

    def _event(self, events: Any, data: Any, timeout_ms: Any) -> int:
        assert timeout_ms.value == 0
        if not self.xids:
            return pynvml.NVML_ERROR_TIMEOUT
        data._obj.eventType, data._obj.eventData = pynvml.nvmlEventTypeXidCriticalError, self.xids.pop(0)
        return 0

    def _processes(self, handle: Any, number: Any, infos: Any) -> int:
        if infos is None:
            number._obj.value = len(self.processes)
            return pynvml.NVML_ERROR_INSUFFICIENT_SIZE if self.processes else 0
        number._obj.value = len(self.processes)
        for info, (pid, used) in zip(infos, self.processes, strict=False):
            info.pid, info.usedGpuMemory = pid, used
        return 0


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    found = Driver()
    monkeypatch.setattr(pynvml, "nvmlLib", object())
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer", found.find)
    return found


def opened(timeout_s: float | None = 5.0) -> NvmlGpu:
    return NvmlGpu(pynvml, uuid=UUID, pci_bus_id="0000:50:00.0", clock=StepClock(), timeout_s=timeout_s)


def test_every_value_comes_through_the_bindings(driver: Driver) -> None:
    with opened() as gpu:
        state = gpu.state()
        assert gpu.read_counter().energy_mj == 123_456_789_012
        assert gpu.process_memory() == {9: None, 1285: 450 * MIB}
    assert state.unavailable == {}
    assert (state.uuid, state.pci_bus_id, state.driver) == (UUID, BUS_ID, "580.105.08")
    assert (state.power_w, state.power_kind) == (57.7, "instantaneous")
    assert (state.power_limit_w, state.default_power_limit_w) == (400.0, 500.0)
    assert (state.sm_clock_mhz, state.memory_clock_mhz, state.performance_state) == (1410, 1215, 0)
    assert (state.temperature_c, state.utilisation_percent, state.throttle_reasons) == (31, 98, 0x44)
    assert state.violation_ns == POLICIES
    assert state.processes == [GpuProcess(9, None), GpuProcess(1285, 450 * MIB)]
    assert (state.persistence_mode, state.mig_mode) == (True, False)
    assert (state.uncorrected_ecc_errors, state.row_remap_pending) == (0, True)


def test_xid_errors_come_through_the_bindings(driver: Driver) -> None:
    with opened() as gpu, gpu.watch_xids() as xids:
        assert driver.registered == [pynvml.nvmlEventTypeXidCriticalError]
        driver.xids = [79, 2**40]
        assert [xids.next(), xids.next(), xids.next()] == [79, 2**40, None]
        driver.codes["nvmlEventSetWait_v2"] = pynvml.NVML_ERROR_GPU_IS_LOST
        with pytest.raises(NvmlGpuIsLost):
            xids.next()


def test_a_driver_without_events_is_not_watched(driver: Driver) -> None:
    driver.absent = {"nvmlDeviceGetSupportedEventTypes", "nvmlEventSetWait_v2"}
    with opened(None) as gpu, gpu.watch_xids() as xids:
        assert xids.next() is None


def test_a_gpu_without_processes_is_an_empty_list(driver: Driver) -> None:
    driver.processes = []
    assert opened(None).state().processes == []


@pytest.mark.parametrize("power", [(pynvml.NVML_ERROR_NOT_SUPPORTED, 1, 0), (0, 1, 2**32 - 1), (0, 3, 2**64 - 1)])
def test_a_field_without_a_value_gives_way_to_the_average_of_a_hopper(
    driver: Driver, power: tuple[int, int, int]
) -> None:
    driver.power = power
    state = opened(None).state()
    assert (state.power_w, state.power_kind) == (40.0, "average")


def test_a_symbol_that_the_driver_lacks_costs_its_own_value_only(driver: Driver) -> None:
    driver.absent = {
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetRemappedRows",
        "nvmlDeviceGetFieldValues",
        "nvmlDeviceGetTotalEnergyConsumption",
    }
    gpu = opened(None)
    state = gpu.state()
    assert state.unavailable.keys() == {"row_remap_pending", "energy_counter"}
    assert [process.pid for process in state.processes or []] == [9, 1285]
    assert state.power_kind == "average"
    with pytest.raises(NvmlFunctionNotFound):
        gpu.read_counter()


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (pynvml.NVML_ERROR_NOT_SUPPORTED, NvmlNotSupported),
        (pynvml.NVML_ERROR_GPU_IS_LOST, NvmlGpuIsLost),
        (77, NvmlNewerCode),
    ],
)
def test_codes_come_through_the_bindings(driver: Driver, code: int, error: type[Exception]) -> None:
    gpu = opened()
    driver.codes["nvmlDeviceGetTotalEnergyConsumption"] = code
    with pytest.raises(error, match=rf"nvmlDeviceGetTotalEnergyConsumption: .*\({code}\)"):
        gpu.read_counter()
    gpu.close()


def test_a_uuid_of_no_gpu_is_not_found_by_the_bindings_either(driver: Driver) -> None:
    with pytest.raises(Exception, match=f"found {UUID}") as caught:
        NvmlGpu(pynvml, uuid=OTHER_UUID, clock=StepClock(), timeout_s=None)
    assert getattr(caught.value, "code", None) == "device_mismatch"
