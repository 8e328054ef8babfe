"""One GPU by NVML: its state, and what of it cannot be had."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from gpu_tasks.energy.nvml.errors import CODES, NvmlGpuIsLost, NvmlNotSupported, NvmlUnavailable
from gpu_tasks.energy.nvml.queries import POLICIES
from gpu_tasks.records import GpuProcess, GpuState
from tests.unit.gpu_tasks.energy.nvml_gpus import ENERGY, FIELDS, QUESTIONS, opened
from tests.unit.gpu_tasks.energy.nvml_scripted import BUS_ID, OTHER_UUID, UUID, ScriptedNvml, field_value, process


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


@pytest.mark.parametrize(("answer", "state"), [(0, 0), (15, 15), (16, None), (32, None)])
def test_performance_states_are_p0_to_p15(nvml: ScriptedNvml, answer: int, state: int | None) -> None:
    nvml.answers["nvmlDeviceGetPerformanceState"] = answer
    assert opened(nvml).state().performance_state == state


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
