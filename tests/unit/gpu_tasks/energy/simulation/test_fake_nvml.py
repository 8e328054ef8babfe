"""The fake NVML: spelled as nvidia-ml-py spells it, and true to the GPU behind it."""

from __future__ import annotations

import inspect
from typing import Any

import pynvml
import pytest

from gpu_tasks.energy.simulation.faults import BLANK_UINT, BLANK_ULONGLONG
from gpu_tasks.energy.simulation.gpu import XID, SimulatedGpu
from gpu_tasks.energy.simulation.nvml import FakeNvml, FakeNVMLError
from gpu_tasks.energy.simulation.profiles import A100_FAULTY_SENSOR
from gpu_tasks.records import parse_effects

NAMES = [name for name in dir(FakeNvml) if name.lower().startswith("nvml") and name != "NVMLError"]
FUNCTIONS = [name for name in NAMES if callable(getattr(FakeNvml, name))]
CONSTANTS = [name for name in NAMES if name not in FUNCTIONS]
RETURNED = (0, 2, 3, 4, 6, 15, 27)


def opened(inject: str = "", **named: Any) -> tuple[FakeNvml, Any, SimulatedGpu]:
    gpu = SimulatedGpu(effects=parse_effects(inject), seed=1)
    nvml = FakeNvml(gpu, **named)
    nvml.nvmlInit()
    return nvml, nvml.nvmlDeviceGetHandleByIndex(0), gpu


def code_of(call: Any, *arguments: Any) -> int:
    with pytest.raises(FakeNVMLError) as caught:
        call(*arguments)
    return caught.value.value


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_those_of_the_bindings(name: str) -> None:
    theirs = inspect.signature(getattr(pynvml, name)).parameters.values()
    ours = list(inspect.signature(getattr(FakeNvml, name)).parameters.values())[1:]
    named = [(parameter.name, parameter.default is not inspect.Parameter.empty) for parameter in ours]
    assert named == [(parameter.name, parameter.default is not inspect.Parameter.empty) for parameter in theirs]


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_are_those_of_the_bindings(name: str) -> None:
    assert getattr(FakeNvml, name) == getattr(pynvml, name)


def test_enough_of_them_are_compared() -> None:
    assert len(FUNCTIONS) > 35
    assert len(CONSTANTS) > 50
    assert pynvml.NVML_VALUE_NOT_AVAILABLE_uint.value == BLANK_UINT
    assert pynvml.NVML_VALUE_NOT_AVAILABLE_ulonglong.value == BLANK_ULONGLONG


@pytest.mark.parametrize("value", RETURNED[1:])
def test_errors_carry_their_number_as_the_bindings_do(value: int) -> None:
    assert FakeNVMLError(value).value == pynvml.NVMLError(value).value == value
    assert issubclass(FakeNvml.NVMLError, Exception)


def test_nothing_works_before_init_and_after_the_last_shutdown() -> None:
    nvml = FakeNvml(SimulatedGpu())
    assert code_of(nvml.nvmlDeviceGetCount) == nvml.NVML_ERROR_UNINITIALIZED
    assert code_of(nvml.nvmlShutdown) == nvml.NVML_ERROR_UNINITIALIZED
    nvml.nvmlInit()
    nvml.nvmlInit()
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    nvml.nvmlShutdown()
    assert nvml.nvmlDeviceGetCount() == 1
    nvml.nvmlShutdown()
    assert code_of(nvml.nvmlDeviceGetName, handle) == nvml.NVML_ERROR_UNINITIALIZED


def test_a_gpu_is_found_by_uuid_bus_and_index() -> None:
    first, second = SimulatedGpu(), SimulatedGpu(A100_FAULTY_SENSOR)
    second.pci_bus_id = "00000000:C1:00.0"
    nvml = FakeNvml(first, second)
    nvml.nvmlInit()
    wanted = nvml.nvmlDeviceGetHandleByIndex(1)
    assert nvml.nvmlDeviceGetCount() == 2
    for found in (
        nvml.nvmlDeviceGetHandleByUUID(second.uuid),
        nvml.nvmlDeviceGetHandleByUUID(second.uuid.encode()),
        nvml.nvmlDeviceGetHandleByPciBusId("0000:c1:00.0"),
        nvml.nvmlDeviceGetHandleByPciBusId(b"00000000:C1:00.0"),
    ):
        assert found is wanted
        assert nvml.nvmlDeviceGetUUID(found) == second.uuid
        assert nvml.nvmlDeviceGetIndex(found) == 1
    pci = nvml.nvmlDeviceGetPciInfo(wanted)
    assert (pci.busId, pci.busIdLegacy) == ("00000000:C1:00.0", "0000:C1:00.0")
    assert (pci.domain, pci.bus, pci.device) == (0, 0xC1, 0)
    assert code_of(nvml.nvmlDeviceGetHandleByIndex, 2) == nvml.NVML_ERROR_INVALID_ARGUMENT
    assert code_of(nvml.nvmlDeviceGetHandleByIndex, -1) == nvml.NVML_ERROR_INVALID_ARGUMENT
    assert code_of(nvml.nvmlDeviceGetHandleByUUID, second.uuid[:12]) == nvml.NVML_ERROR_NOT_FOUND
    assert code_of(nvml.nvmlDeviceGetHandleByPciBusId, "0000:c2:00.0") == nvml.NVML_ERROR_NOT_FOUND


def test_a_handle_of_another_library_object_is_none() -> None:
    nvml, _, _ = opened()
    _, foreign, _ = opened()
    assert code_of(nvml.nvmlDeviceGetName, foreign) == nvml.NVML_ERROR_INVALID_ARGUMENT


def test_old_bindings_give_bytes() -> None:
    nvml, handle, gpu = opened(bytes_strings=True)
    assert nvml.nvmlDeviceGetUUID(handle) == gpu.uuid.encode()
    assert nvml.nvmlSystemGetDriverVersion() == b"580.105.08"
    assert nvml.nvmlDeviceGetName(handle) == b"NVIDIA A100-SXM4-40GB (simulated)"
    assert nvml.nvmlDeviceGetPciInfo(handle).busId == gpu.pci_bus_id.encode()


def test_the_counter_is_read_in_the_middle_of_a_call_of_some_ms() -> None:
    nvml, handle, gpu = opened()
    lengths = []
    for _ in range(300):
        start = gpu.clock.now()
        value = nvml.nvmlDeviceGetTotalEnergyConsumption(handle)
        lengths.append(gpu.clock.now() - start)
        assert value == gpu.counter.value_mj(start + lengths[-1] / 2)
    assert 2.6e-3 <= min(lengths) < 2.65e-3
    assert 3.95e-3 < max(lengths) <= 4.0e-3 + 1e-9


def test_power_is_of_the_moment_and_in_mw() -> None:
    nvml, handle, gpu = opened()
    gpu.work(20, 20 * 160)
    now = gpu.clock.now()
    (instant, average, limit) = nvml.nvmlDeviceGetFieldValues(
        handle,
        [nvml.NVML_FI_DEV_POWER_INSTANT, (nvml.NVML_FI_DEV_POWER_AVERAGE, 0), nvml.NVML_FI_DEV_POWER_CURRENT_LIMIT],
    )
    assert instant.nvmlReturn == nvml.NVML_SUCCESS
    assert instant.value.uiVal == pytest.approx(1000 * gpu.power.power_w(now), abs=1500)
    assert average.nvmlReturn == nvml.NVML_ERROR_NOT_SUPPORTED
    assert limit.value.uiVal == nvml.nvmlDeviceGetEnforcedPowerLimit(handle) == 400_000
    usage = nvml.nvmlDeviceGetPowerUsage(handle)
    assert type(usage) is int
    assert usage == pytest.approx(1000 * gpu.power.power_w(gpu.clock.now()), abs=1500)


def test_limits() -> None:
    nvml, handle, _ = opened("power_limit=250")
    assert nvml.nvmlDeviceGetEnforcedPowerLimit(handle) == 250_000
    assert nvml.nvmlDeviceGetPowerManagementLimit(handle) == 250_000
    assert nvml.nvmlDeviceGetPowerManagementDefaultLimit(handle) == 400_000


def test_what_throttling_shows() -> None:
    nvml, handle, gpu = opened("throttle")
    gpu.work(20, 700, window=True)
    assert nvml.nvmlDeviceGetCurrentClocksEventReasons(handle) == 0
    assert nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM) == 1410
    by_policy = {p: nvml.nvmlDeviceGetViolationStatus(handle, p).violationTime for p in (0, 1, 2, 3, 4, 5, 10, 11)}
    assert by_policy.pop(1) == by_policy.pop(10) == pytest.approx(4e9 * 1410 / 1140)
    assert set(by_policy.values()) == {0}
    gpu.clock.sleep(5)
    idle = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    assert idle == nvml.nvmlClocksThrottleReasonGpuIdle


def test_clocks_state_and_temperature() -> None:
    nvml, handle, gpu = opened()
    gpu.work(60, 60 * 160)
    assert nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM) == 1215
    assert nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM) == 1410
    assert nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_MEM) == 1215
    assert nvml.nvmlDeviceGetPerformanceState(handle) == 0
    assert nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU) == 50
    assert nvml.nvmlDeviceGetUtilizationRates(handle).gpu == 100
    assert code_of(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_VIDEO) == nvml.NVML_ERROR_NOT_SUPPORTED
    assert code_of(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_VIDEO) == nvml.NVML_ERROR_NOT_SUPPORTED
    assert code_of(nvml.nvmlDeviceGetTemperature, handle, 1) == nvml.NVML_ERROR_INVALID_ARGUMENT


def test_what_the_board_is() -> None:
    nvml, handle, gpu = opened()
    assert nvml.nvmlDeviceGetCudaComputeCapability(handle) == (8, 0)
    assert nvml.nvmlDeviceGetArchitecture(handle) == nvml.NVML_DEVICE_ARCH_AMPERE
    assert nvml.nvmlSystemGetCudaDriverVersion() == 13000
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    assert memory.total == 42405855232 == memory.free + memory.used
    (process,) = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    assert (process.pid, process.usedGpuMemory) == (gpu.reported_pid, memory.used)
    assert nvml.nvmlDeviceGetEccMode(handle) == [1, 1]


def test_what_can_be_set() -> None:
    nvml, handle, gpu = opened()
    assert nvml.nvmlDeviceGetPersistenceMode(handle) == nvml.NVML_FEATURE_ENABLED
    assert nvml.nvmlDeviceGetMigMode(handle) == [0, 0]
    assert nvml.nvmlDeviceGetRemappedRows(handle) == (0, 0, 0, 0)
    assert nvml.nvmlDeviceGetTotalEccErrors(handle, 1, 0) == 0
    gpu.persistence_mode, gpu.mig_mode, gpu.row_remap_pending, gpu.uncorrected_ecc_errors = False, True, True, 3
    gpu.reported_pid, gpu.others[77] = 1, 5
    assert nvml.nvmlDeviceGetPersistenceMode(handle) == nvml.NVML_FEATURE_DISABLED
    assert nvml.nvmlDeviceGetMigMode(handle) == [1, 1]
    assert nvml.nvmlDeviceGetRemappedRows(handle) == (0, 1, 1, 0)
    assert nvml.nvmlDeviceGetTotalEccErrors(handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, 0) == 3
    assert nvml.nvmlDeviceGetTotalEccErrors(handle, nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, 0) == 0
    assert [process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses_v2(handle)] == [1, 77]


def test_effects_on_the_counter_and_the_driver() -> None:
    nvml, handle, _ = opened("no_counter")
    assert code_of(nvml.nvmlDeviceGetTotalEnergyConsumption, handle) == nvml.NVML_ERROR_NOT_SUPPORTED
    nvml, handle, _ = opened("not_ready,driver=570.86.15")
    assert nvml.nvmlDeviceGetTotalEnergyConsumption(handle) > 0
    assert code_of(nvml.nvmlDeviceGetTotalEnergyConsumption, handle) == nvml.NVML_ERROR_NOT_READY
    assert nvml.nvmlDeviceGetTotalEnergyConsumption(handle) > 0
    assert nvml.nvmlSystemGetDriverVersion() == "570.86.15"


def test_a_power_brake_grows_no_violation_time() -> None:
    nvml, handle, gpu = opened("power_brake")
    gpu.work(20, 700, window=True)
    assert {nvml.nvmlDeviceGetViolationStatus(handle, p).violationTime for p in (0, 1, 2, 3, 4, 5, 10, 11)} == {0}


def test_events_are_xid_errors_of_what_was_registered() -> None:
    nvml, handle, gpu = opened("xid")
    assert nvml.nvmlDeviceGetSupportedEventTypes(handle) & nvml.nvmlEventTypeXidCriticalError
    events, clocks = nvml.nvmlEventSetCreate(), nvml.nvmlEventSetCreate()
    nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, events)
    nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeClock, clocks)
    assert code_of(nvml.nvmlDeviceRegisterEvents, handle, 1, events) == nvml.NVML_ERROR_NOT_SUPPORTED
    assert code_of(nvml.nvmlEventSetWait_v2, events, 0) == nvml.NVML_ERROR_TIMEOUT
    gpu.work(20, 700, window=True)
    found = nvml.nvmlEventSetWait_v2(events, 0)
    assert (found.device, found.eventType, found.eventData) == (handle, pynvml.nvmlEventTypeXidCriticalError, XID)
    began = gpu.clock.now()
    assert code_of(nvml.nvmlEventSetWait_v2, events, 250) == nvml.NVML_ERROR_TIMEOUT
    assert gpu.clock.now() - began == pytest.approx(0.25)
    assert code_of(nvml.nvmlEventSetWait_v2, clocks, 0) == nvml.NVML_ERROR_TIMEOUT
    nvml.nvmlEventSetFree(events)
    for call in (lambda: nvml.nvmlEventSetWait_v2(events, 0), lambda: nvml.nvmlEventSetFree(events)):
        assert code_of(call) == nvml.NVML_ERROR_INVALID_ARGUMENT
    nvml.nvmlShutdown()
    assert code_of(nvml.nvmlEventSetCreate) == nvml.NVML_ERROR_UNINITIALIZED


def test_a_lost_gpu_says_so_to_everything() -> None:
    nvml, handle, gpu = opened()
    gpu.lost_s = gpu.clock.now()
    for name in FUNCTIONS:
        arguments = len(inspect.signature(getattr(nvml, name)).parameters)
        if name.startswith("nvmlDeviceGet") and "Handle" not in name and name not in ("nvmlDeviceGetCount",):
            assert code_of(getattr(nvml, name), handle, *[0] * (arguments - 1)) == nvml.NVML_ERROR_GPU_IS_LOST, name
    assert code_of(nvml.nvmlDeviceGetHandleByUUID, gpu.uuid) == nvml.NVML_ERROR_GPU_IS_LOST
    assert nvml.nvmlSystemGetDriverVersion() == "580.105.08"


def test_what_is_not_there_is_missing_as_in_old_bindings() -> None:
    with pytest.raises(AttributeError):
        FakeNvml(SimulatedGpu()).nvmlDeviceGetNothing  # type: ignore[attr-defined]  # noqa: B018
