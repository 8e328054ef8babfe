"""One GPU by NVML: counter, state, processes, samples."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from gpu_tasks.energy.nvml.errors import (
    CODES,
    NvmlBlankValue,
    NvmlError,
    NvmlFailure,
    NvmlGpuIsLost,
    NvmlNotReady,
    NvmlNotSupported,
    NvmlUnavailable,
)
from gpu_tasks.energy.nvml.gpu import NvmlGpu
from gpu_tasks.energy.nvml.queries import POLICIES
from gpu_tasks.energy.trace import Sample
from gpu_tasks.records import CounterReading, GpuProcess, GpuState
from tests.unit.gpu_tasks.energy.nvml_scripted import (
    BUS_ID,
    LATENCY_S,
    OTHER_UUID,
    UUID,
    ScriptedNvml,
    field_value,
    process,
)

ENERGY = "nvmlDeviceGetTotalEnergyConsumption"
FIELDS = "nvmlDeviceGetFieldValues"


@pytest.fixture
def nvml() -> ScriptedNvml:
    return ScriptedNvml()


def opened(nvml: ScriptedNvml) -> NvmlGpu:
    return NvmlGpu(nvml, uuid=UUID, clock=nvml.clock, timeout_s=None)


def test_a_reading_is_stamped_at_the_middle_of_its_call(nvml: ScriptedNvml) -> None:
    gpu = opened(nvml)
    before = nvml.clock.now()
    reading = gpu.read_counter()
    assert reading == CounterReading(5_000_000, pytest.approx(before + LATENCY_S / 2), pytest.approx(LATENCY_S))


def test_pyjoules_23_the_counter_is_in_mj_and_power_becomes_w_once(nvml: ScriptedNvml) -> None:
    nvml.energy_mj = 123_456_789
    gpu = opened(nvml)
    state = gpu.state()
    assert gpu.read_counter().energy_mj == 123_456_789
    assert (state.power_w, state.power_limit_w, state.default_power_limit_w) == (57.7, 400.0, 400.0)
    assert gpu.sample()[0].power_w == 57.7


def test_a_counter_that_is_unsupported_is_an_error_and_never_0(nvml: ScriptedNvml) -> None:
    gpu = opened(nvml)
    nvml.fail(ENERGY, pynvml.NVML_ERROR_NOT_SUPPORTED)
    with pytest.raises(NvmlNotSupported):
        gpu.read_counter()


@pytest.mark.parametrize("blank", ["[N/A]", None, 2**64 - 1, -1])
def test_a_counter_that_is_blank_is_an_error_and_never_a_number(nvml: ScriptedNvml, blank: object) -> None:
    nvml.answers[ENERGY] = blank
    with pytest.raises(NvmlBlankValue, match=ENERGY):
        opened(nvml).read_counter()


def test_codecarbon_1316_608_586_energy_unsupported_leaves_everything_else_and_a_reason(nvml: ScriptedNvml) -> None:
    gpu = opened(nvml)
    assert "energy_counter" not in gpu.state().unavailable
    nvml.fail(ENERGY, pynvml.NVML_ERROR_NOT_SUPPORTED)
    state = gpu.state()
    assert state.unavailable["energy_counter"].startswith(f"{ENERGY}: expected success, found NVML_ERROR_NOT_SUPPORTED")
    assert (state.power_w, state.sm_clock_mhz) == (57.7, 1410)
    sample, kind = gpu.sample()
    assert (sample.counter_mj, sample.counter_time_s, sample.power_w, kind) == (None, None, 57.7, "instantaneous")


def test_pynvml_54_codecarbon_578_a_counter_that_is_not_ready_may_be_asked_again(nvml: ScriptedNvml) -> None:
    gpu = opened(nvml)
    readings = iter([pynvml.NVMLError(pynvml.NVML_ERROR_NOT_READY), 5_003_720])

    def scripted(handle: str) -> int:
        answer = next(readings)
        if isinstance(answer, Exception):
            raise answer
        return answer

    nvml.answers[ENERGY] = scripted
    with pytest.raises(NvmlNotReady) as caught:
        gpu.read_counter()
    assert caught.value.transient
    assert gpu.read_counter().energy_mj == 5_003_720


@pytest.mark.parametrize("name", [ENERGY, "nvmlDeviceGetClockInfo", FIELDS, "nvmlDeviceGetComputeRunningProcesses"])
def test_nvitop_139_nvgpu_6_gpud_604_a_lost_gpu_is_raised_not_missing(nvml: ScriptedNvml, name: str) -> None:
    gpu = opened(nvml)
    nvml.fail(name, pynvml.NVML_ERROR_GPU_IS_LOST)
    with pytest.raises(NvmlGpuIsLost, match=name):
        gpu.state()


def test_the_whole_state_of_a_healthy_gpu(nvml: ScriptedNvml) -> None:
    gpu = opened(nvml)
    before = nvml.clock.now()
    assert gpu.state() == GpuState(
        time_s=before,
        uuid=UUID,
        pci_bus_id=BUS_ID,
        driver="580.105.08",
        power_w=57.7,
        power_kind="instantaneous",
        power_limit_w=400.0,
        default_power_limit_w=400.0,
        sm_clock_mhz=1410,
        memory_clock_mhz=1215,
        performance_state=0,
        temperature_c=31,
        utilisation_percent=98,
        throttle_reasons=0,
        violation_ns=POLICIES,  # the scripted violation times are the policies' numbers
        processes=[GpuProcess(1285, 450 << 20)],
        persistence_mode=True,
        mig_mode=False,
        uncorrected_ecc_errors=0,
        row_remap_pending=False,
        unavailable={},
    )


def test_each_state_asks_anew_which_gpu_and_driver_it_is_of(nvml: ScriptedNvml) -> None:
    gpu = opened(nvml)
    nvml.answers |= {"nvmlDeviceGetUUID": OTHER_UUID, "nvmlSystemGetDriverVersion": "580.126.09"}
    assert (gpu.state().uuid, gpu.state().driver) == (OTHER_UUID, "580.126.09")


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


@pytest.mark.parametrize("code", sorted(value for value, error in CODES.items() if issubclass(error, NvmlUnavailable)))
@pytest.mark.parametrize("field", QUESTIONS)
def test_what_this_gpu_cannot_say_is_null_with_the_reason_and_the_rest_is_there(
    nvml: ScriptedNvml, field: str, code: int
) -> None:
    gpu = opened(nvml)
    expected = dataclasses.asdict(gpu.state())
    for name in QUESTIONS[field]:
        nvml.fail(name, code)
    found = dataclasses.asdict(gpu.state())
    kinds = {"power_kind"} if field == "power_w" else set()
    assert {name for name in found if found[name] is None} == {field} | kinds
    assert list(found["unavailable"]) == [field]
    assert found["unavailable"][field].startswith(QUESTIONS[field][-1])
    same = found.keys() - {field, *kinds, "time_s", "unavailable"}
    assert {name: found[name] for name in same} == {name: expected[name] for name in same}


@pytest.mark.parametrize(
    ("name", "answer", "field"),
    [
        ("nvmlDeviceGetTemperature", "[Not Supported]", "temperature_c"),
        ("nvmlDeviceGetTemperature", 2**32 - 1, "temperature_c"),
        ("nvmlDeviceGetPerformanceState", 32, "performance_state"),
        ("nvmlDeviceGetUtilizationRates", SimpleNamespace(gpu="N/A"), "utilisation_percent"),
        ("nvmlDeviceGetPowerManagementDefaultLimit", 2**32 - 1, "default_power_limit_w"),
        ("nvmlDeviceGetMigMode", [2**32 - 1, 0], "mig_mode"),
        ("nvmlDeviceGetTotalEccErrors", 2**64 - 1, "uncorrected_ecc_errors"),
        ("nvmlDeviceGetPersistenceMode", "Disabled", "persistence_mode"),
    ],
)
def test_a_blank_value_is_null_with_what_was_found(nvml: ScriptedNvml, name: str, answer: object, field: str) -> None:
    nvml.answers[name] = answer
    state = opened(nvml).state()
    assert getattr(state, field) is None
    assert state.unavailable[field].startswith(f"{name}: expected a value, found")


def test_each_clock_and_each_policy_is_asked_for_by_itself(nvml: ScriptedNvml) -> None:
    def clock(handle: str, kind: int) -> int:
        if kind == pynvml.NVML_CLOCK_SM:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return 1215

    def violation(handle: str, policy: int) -> Any:
        if policy == pynvml.NVML_PERF_POLICY_BOARD_LIMIT:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return SimpleNamespace(violationTime=1, referenceTime=2)

    nvml.answers |= {"nvmlDeviceGetClockInfo": clock, "nvmlDeviceGetViolationStatus": violation}
    state = opened(nvml).state()
    assert (state.sm_clock_mhz, state.memory_clock_mhz) == (None, 1215)
    assert state.violation_ns == dict.fromkeys(POLICIES.keys() - {"board_limit"}, 1)
    assert state.unavailable.keys() == {"sm_clock_mhz", "violation_ns.board_limit"}


def test_the_numbers_of_nvmls_enumerations() -> None:
    assert {f"NVML_PERF_POLICY_{name.upper()}": number for name, number in POLICIES.items()} == {
        name: number
        for name, number in vars(pynvml).items()
        if name.startswith("NVML_PERF_POLICY_") and not name.endswith("COUNT")
    }
    asked: dict[str, tuple[Any, ...]] = {}
    nvml = ScriptedNvml()
    for name in ("nvmlDeviceGetTemperature", "nvmlDeviceGetTotalEccErrors"):
        nvml.answers[name] = lambda handle, *arguments, name=name: asked.setdefault(name, arguments) and 0
    nvml.answers[FIELDS] = lambda handle, ids: asked.setdefault(FIELDS, tuple(ids)) and field_value(1)
    opened(nvml).state()
    assert asked == {
        "nvmlDeviceGetTemperature": (pynvml.NVML_TEMPERATURE_GPU,),
        "nvmlDeviceGetTotalEccErrors": (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC),
        FIELDS: (pynvml.NVML_FI_DEV_POWER_INSTANT,),
    }


@pytest.mark.parametrize(
    ("name", "architecture", "kind"),
    [
        ("NVIDIA A100-SXM4-40GB", pynvml.NVML_DEVICE_ARCH_AMPERE, "instantaneous"),
        ("NVIDIA A100 80GB PCIe", pynvml.NVML_DEVICE_ARCH_AMPERE, "instantaneous"),
        ("NVIDIA A30", pynvml.NVML_DEVICE_ARCH_AMPERE, "instantaneous"),
        ("NVIDIA RTX A3000", pynvml.NVML_DEVICE_ARCH_AMPERE, "average"),
        ("NVIDIA RTX A1000", pynvml.NVML_DEVICE_ARCH_AMPERE, "average"),
        ("NVIDIA A10", pynvml.NVML_DEVICE_ARCH_AMPERE, "average"),
        ("NVIDIA H200", pynvml.NVML_DEVICE_ARCH_HOPPER, "average"),
        ("Tesla V100-SXM2-16GB", pynvml.NVML_DEVICE_ARCH_VOLTA, "instantaneous"),
        ("NVIDIA of tomorrow", pynvml.NVML_DEVICE_ARCH_UNKNOWN, "average"),
        (b"NVIDIA A100-SXM4-40GB", None, "instantaneous"),
    ],
)
def test_zeus_45_dcgm_157_kernel_tuner_247_the_record_says_which_power_it_is(
    nvml: ScriptedNvml, name: str, architecture: int | None, kind: str
) -> None:
    nvml.answers |= {"nvmlDeviceGetName": name, "nvmlDeviceGetArchitecture": architecture}
    if architecture is None:
        nvml.absent = {"nvmlDeviceGetArchitecture"}
    nvml.answers["nvmlDeviceGetPowerUsage"] = 40_000
    gpu = opened(nvml)
    assert (gpu.state().power_w, gpu.state().power_kind) == (57.7, "instantaneous")
    for unsupported in (
        field_value(0, code=pynvml.NVML_ERROR_NOT_SUPPORTED),
        field_value(0, code=pynvml.NVML_ERROR_INVALID_ARGUMENT),
        pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND),
        field_value(2**32 - 1),
    ):
        nvml.answers[FIELDS] = unsupported
        state = gpu.state()
        assert (state.power_w, state.power_kind) == (40.0, kind)
        assert gpu.sample()[1] == kind


@pytest.mark.parametrize(
    ("value_type", "member"), [(1, "uiVal"), (2, "ulVal"), (3, "ullVal"), (4, "sllVal"), (5, "siVal")]
)
def test_a_field_is_read_by_the_type_that_it_says_to_have(nvml: ScriptedNvml, value_type: int, member: str) -> None:
    names = ("UNSIGNED_INT", "UNSIGNED_LONG", "UNSIGNED_LONG_LONG", "SIGNED_LONG_LONG", "SIGNED_INT")
    assert getattr(pynvml, f"NVML_VALUE_TYPE_{names[value_type - 1]}") == value_type
    value = SimpleNamespace(**dict.fromkeys(("uiVal", "ulVal", "ullVal", "sllVal", "siVal"), 0))
    setattr(value, member, 57_001)
    nvml.answers[FIELDS] = [SimpleNamespace(nvmlReturn=0, valueType=value_type, value=value)]
    assert opened(nvml).state().power_w == 57.001


@pytest.mark.parametrize(("answer", "state"), [(0, 0), (15, 15), (16, None), (32, None)])
def test_performance_states_are_p0_to_p15(nvml: ScriptedNvml, answer: int, state: int | None) -> None:
    nvml.answers["nvmlDeviceGetPerformanceState"] = answer
    assert opened(nvml).state().performance_state == state


def test_a_field_of_a_lost_gpu_is_a_lost_gpu_and_no_other_power(nvml: ScriptedNvml) -> None:
    nvml.answers[FIELDS] = field_value(0, code=pynvml.NVML_ERROR_GPU_IS_LOST)
    with pytest.raises(NvmlGpuIsLost, match="NVML_FI_DEV_POWER_INSTANT"):
        opened(nvml).state()


@pytest.mark.parametrize(
    ("newer", "older", "field", "value"),
    [
        ("nvmlDeviceGetEnforcedPowerLimit", ("nvmlDeviceGetPowerManagementLimit", 320_000), "power_limit_w", 320.0),
        (
            "nvmlDeviceGetCurrentClocksEventReasons",
            ("nvmlDeviceGetCurrentClocksThrottleReasons", 4),
            "throttle_reasons",
            4,
        ),
        (
            "nvmlDeviceGetComputeRunningProcesses",
            ("nvmlDeviceGetComputeRunningProcesses_v2", [process(7, 8)]),
            "processes",
            [GpuProcess(7, 8)],
        ),
    ],
)
def test_an_older_driver_is_asked_by_the_older_name(
    nvml: ScriptedNvml, newer: str, older: tuple[str, object], field: str, value: object
) -> None:
    nvml.fail(newer, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    nvml.answers[older[0]] = older[1]
    state = opened(nvml).state()
    assert getattr(state, field) == value
    assert state.unavailable == {}


def test_processes_by_number_with_memory_where_nvml_knows_it(nvml: ScriptedNvml) -> None:
    nvml.answers["nvmlDeviceGetComputeRunningProcesses"] = [
        process(15008, 5),
        process(1, None),
        process(9, 2**64 - 1),
        process(2, 0),
    ]
    gpu = opened(nvml)
    assert gpu.process_memory() == {1: None, 2: 0, 9: None, 15008: 5}
    assert gpu.state().processes == [GpuProcess(1, None), GpuProcess(2, 0), GpuProcess(9, None), GpuProcess(15008, 5)]


def test_process_memory_of_a_gpu_that_cannot_list_processes_is_an_error_not_an_empty_gpu(nvml: ScriptedNvml) -> None:
    for name in QUESTIONS["processes"]:
        nvml.fail(name, pynvml.NVML_ERROR_NOT_SUPPORTED)
    with pytest.raises(NvmlNotSupported):
        opened(nvml).process_memory()


def test_a_sample_has_each_time_at_the_middle_of_its_call(nvml: ScriptedNvml) -> None:
    gpu = opened(nvml)
    before = nvml.clock.now()
    sample, kind = gpu.sample()
    assert kind == "instantaneous"
    assert sample == Sample(
        time_s=pytest.approx(before + LATENCY_S / 2),
        power_w=57.7,
        counter_time_s=pytest.approx(before + 3 * LATENCY_S / 2),
        counter_mj=5_000_000,
        sm_clock_mhz=1410,
        memory_clock_mhz=1215,
        temperature_c=31,
        utilisation_percent=98,
        performance_state=0,
        throttle_reasons=0,
        processes=None,
    )


def test_a_sample_has_the_bits_that_hold_the_clocks_down_and_processes_where_they_are_asked_for(
    nvml: ScriptedNvml,
) -> None:
    nvml.answers["nvmlDeviceGetCurrentClocksEventReasons"] = 0x84
    nvml.answers["nvmlDeviceGetComputeRunningProcesses"] = [process(1285, 1), process(7, None)]
    gpu = opened(nvml)
    assert gpu.sample()[0].throttle_reasons == 0x84
    assert "nvmlDeviceGetComputeRunningProcesses" not in nvml.calls
    assert gpu.sample(processes=True)[0].processes == 2
    nvml.answers["nvmlDeviceGetComputeRunningProcesses"] = []
    assert gpu.sample(processes=True)[0].processes == 0


def test_bits_and_processes_that_nvml_does_not_know_are_missing_and_the_sample_is_there(nvml: ScriptedNvml) -> None:
    for name in (*QUESTIONS["throttle_reasons"], *QUESTIONS["processes"]):
        nvml.fail(name, pynvml.NVML_ERROR_NOT_SUPPORTED)
    sample, _ = opened(nvml).sample(processes=True)
    assert (sample.throttle_reasons, sample.processes, sample.power_w) == (None, None, 57.7)


def test_a_sample_without_power_is_of_the_moment_that_it_was_asked_for(nvml: ScriptedNvml) -> None:
    for name in QUESTIONS["power_w"]:
        nvml.fail(name, pynvml.NVML_ERROR_NOT_SUPPORTED)
    gpu = opened(nvml)
    before = nvml.clock.now()
    sample, kind = gpu.sample()
    assert (sample.time_s, sample.power_w, kind) == (before, None, None)
    assert sample.counter_mj == 5_000_000


@pytest.mark.parametrize("code", sorted(value for value in CODES if issubclass(CODES[value], NvmlFailure)))
def test_a_failure_of_the_machine_is_raised_from_everywhere(nvml: ScriptedNvml, code: int) -> None:
    gpu = opened(nvml)
    nvml.fail("nvmlDeviceGetTemperature", code)
    nvml.fail(ENERGY, code)
    nvml.fail("nvmlDeviceGetComputeRunningProcesses", code)
    for call in (gpu.state, gpu.sample, gpu.read_counter, gpu.process_memory):
        with pytest.raises(NvmlError) as caught:
            call()
        assert type(caught.value) is CODES[code]


def test_with_a_time_limit_the_same_values_come_through_the_thread(nvml: ScriptedNvml) -> None:
    with NvmlGpu(nvml, uuid=UUID, clock=nvml.clock) as gpu:
        before = nvml.clock.now()
        reading = gpu.read_counter()
        assert reading == CounterReading(5_000_000, pytest.approx(before + LATENCY_S / 2), pytest.approx(LATENCY_S))
        assert gpu.state().unavailable == {}
    assert nvml.calls[-1] == "nvmlShutdown"
