"""One GPU by NVML: its power, of which kind it is, and from which field."""

from __future__ import annotations

from types import SimpleNamespace

import pynvml
import pytest

from gpu_tasks.energy.nvml.errors import NvmlGpuIsLost
from tests.unit.gpu_tasks.energy.nvml_gpus import FIELDS, opened
from tests.unit.gpu_tasks.energy.nvml_scripted import ScriptedNvml, field_value


def test_pyjoules_23_the_counter_is_in_mj_and_power_becomes_w_once(nvml: ScriptedNvml) -> None:
    nvml.energy_mj = 123_456_789
    gpu = opened(nvml)
    state = gpu.state()
    assert gpu.read_counter().energy_mj == 123_456_789
    assert (state.power_w, state.power_limit_w, state.default_power_limit_w) == (57.7, 400.0, 400.0)
    assert gpu.sample()[0].power_w == 57.7


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


def test_a_field_of_a_lost_gpu_is_a_lost_gpu_and_no_other_power(nvml: ScriptedNvml) -> None:
    nvml.answers[FIELDS] = field_value(0, code=pynvml.NVML_ERROR_GPU_IS_LOST)
    with pytest.raises(NvmlGpuIsLost, match="NVML_FI_DEV_POWER_INSTANT"):
        opened(nvml).state()
