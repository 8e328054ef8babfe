"""Which of NVML's GPUs is the CUDA device."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_tasks.energy.nvml.access import NvmlLibrary
from gpu_tasks.energy.nvml.gpu import NvmlGpu
from gpu_tasks.energy.nvml.matching import DeviceMismatch, gpu_uuids, resolve_uuid, visible_uuid
from gpu_tasks.records import BadInput
from tests.unit.gpu_tasks.energy.nvml_scripted import BUS_ID, OTHER_UUID, UUID, ScriptedNvml

MIG = "MIG-98d97ad6-4528-7be9-28a9-1508130aa10e"


def opened(nvml: ScriptedNvml, uuid: str = UUID, pci_bus_id: str | None = None, visible: str | None = None) -> NvmlGpu:
    return NvmlGpu(nvml, uuid=uuid, pci_bus_id=pci_bus_id, visible=visible, clock=nvml.clock, timeout_s=None)


@pytest.mark.parametrize("pci_bus_id", [None, "0000:50:00.0", "00000000:50:00.0"])
def test_the_gpu_is_found_by_uuid_and_its_bus_id_agrees_in_either_spelling(pci_bus_id: str | None) -> None:
    nvml = ScriptedNvml()
    gpu = opened(nvml, pci_bus_id=pci_bus_id)
    assert (gpu.uuid, gpu.pci_bus_id) == (UUID, BUS_ID)
    assert "nvmlDeviceGetHandleByIndex" not in nvml.calls


def test_pytorch_94568_vllm_53834_another_order_of_nvmls_still_gives_the_cuda_device() -> None:
    nvml = ScriptedNvml()
    nvml.uuids = [OTHER_UUID, UUID]
    nvml.answers["nvmlDeviceGetPersistenceMode"] = lambda handle: {"handle 0": 0, "handle 1": 1}[handle]
    gpu = opened(nvml)
    assert gpu.uuid == UUID
    assert gpu.state().persistence_mode is True, "read off index 0, which is the other GPU"


def test_pynvml_28_optimum_benchmark_47_a_cuda_device_that_nvml_does_not_have_is_no_other_one() -> None:
    nvml = ScriptedNvml()
    nvml.uuids = [OTHER_UUID]
    with pytest.raises(DeviceMismatch, match=f"expected the CUDA device {UUID} .*, found {OTHER_UUID}") as caught:
        opened(nvml)
    assert caught.value.code == "device_mismatch"
    assert nvml.calls[-1] == "nvmlShutdown"
    nvml.uuids = []
    with pytest.raises(DeviceMismatch, match="found none"):
        opened(nvml)


def test_a_handle_that_says_to_be_another_gpu_is_refused() -> None:
    nvml = ScriptedNvml()
    nvml.answers["nvmlDeviceGetUUID"] = OTHER_UUID
    with pytest.raises(DeviceMismatch, match=f"uuid: expected {UUID} of the CUDA device, found {OTHER_UUID} by NVML"):
        opened(nvml)


def test_a_gpu_at_another_bus_id_is_refused() -> None:
    nvml = ScriptedNvml()
    nvml.answers["nvmlDeviceGetPciInfo"] = SimpleNamespace(busId=b"00000000:07:00.0")
    with pytest.raises(DeviceMismatch, match=r"expected 00000000:50:00\.0 of the CUDA device, found 00000000:07:00\.0"):
        opened(nvml, pci_bus_id="0000:50:00.0")
    assert opened(nvml).pci_bus_id == "00000000:07:00.0"


def test_old_bindings_that_answer_in_bytes_match_as_well() -> None:
    nvml = ScriptedNvml()
    nvml.answers |= {
        "nvmlDeviceGetUUID": UUID.encode() + b"\0",
        "nvmlDeviceGetPciInfo": SimpleNamespace(busId=BUS_ID.encode()),
        "nvmlSystemGetDriverVersion": b"460.32.03",
    }
    gpu = opened(nvml, pci_bus_id="0000:50:00.0")
    assert (gpu.uuid, gpu.pci_bus_id, gpu.state().driver) == (UUID, BUS_ID, "460.32.03")


@pytest.mark.parametrize("value", [MIG, MIG.lower(), f"MIG-{UUID}/1/0"])
def test_zeus_109_vllm_41848_codecarbon_873_a_slice_of_a_gpu_is_refused(value: str) -> None:
    nvml = ScriptedNvml()
    for refused in (
        lambda: opened(nvml, uuid=value),
        lambda: resolve_uuid(value, [UUID]),
        lambda: visible_uuid(value, [UUID]),
        lambda: visible_uuid(f"{UUID}, {value}", [UUID]),
    ):
        with pytest.raises(BadInput, match=r"expected a whole GPU .*, found") as caught:
            refused()
        assert caught.value.code == "mig_not_supported"
    assert "nvmlDeviceGetHandleByUUID" not in nvml.calls


def test_all_gpus_in_nvmls_order() -> None:
    nvml = ScriptedNvml()
    nvml.uuids = [OTHER_UUID, UUID]
    assert gpu_uuids(NvmlLibrary(nvml, None)) == [OTHER_UUID, UUID]


@pytest.mark.parametrize("short", [UUID, "GPU-5c63c", "GPU-5C63CB6B", UUID.upper(), "gpu-5c63cb"])
def test_pytorch_90543_vllm_13815_a_full_or_short_uuid_is_resolved(short: str) -> None:
    assert resolve_uuid(short, [OTHER_UUID, UUID]) == UUID
    assert visible_uuid(short, [OTHER_UUID, UUID]) == UUID


def test_a_beginning_of_two_uuids_is_an_error_that_names_both() -> None:
    with pytest.raises(BadInput, match=f"found 'GPU-5c63' of {UUID}, {OTHER_UUID}") as caught:
        resolve_uuid("GPU-5c63", [UUID, OTHER_UUID])
    assert caught.value.code == "ambiguous_uuid"


@pytest.mark.parametrize("short", ["GPU-", "GPU", "", "5c63cb6b", "0", "1,0", "GPU-5c63cb6b-ffff", UUID + "0"])
def test_what_is_no_beginning_of_a_uuid_is_unknown(short: str) -> None:
    with pytest.raises(BadInput, match=f"uuid: expected one of {UUID}, found") as caught:
        resolve_uuid(short, [UUID])
    assert caught.value.code == "unknown_uuid"


@given(st.lists(st.uuids(), min_size=1, max_size=5, unique=True), st.data())
def test_a_beginning_resolves_to_the_only_one_that_has_it_or_not_at_all(
    uuids: list[object], data: st.DataObject
) -> None:
    known = [f"GPU-{uuid}" for uuid in uuids]
    whole = data.draw(st.sampled_from(known))
    short = whole[: data.draw(st.integers(5, len(whole)))]
    if sum(uuid.startswith(short) for uuid in known) == 1:
        assert resolve_uuid(short, known) == whole
    else:
        with pytest.raises(BadInput):
            resolve_uuid(short, known)


@pytest.mark.parametrize("visible", [None, "", "1,0", "0", "-1", "NoDevFiles"])
def test_an_index_is_left_to_cuda_whose_order_is_its_own(visible: str | None) -> None:
    assert visible_uuid(visible, [UUID, OTHER_UUID]) is None


def test_the_first_entry_is_the_device_that_is_measured() -> None:
    assert visible_uuid(f"{OTHER_UUID},{UUID}", [UUID, OTHER_UUID]) == OTHER_UUID
    assert visible_uuid(f" {OTHER_UUID} , 0", [UUID, OTHER_UUID]) == OTHER_UUID


def two() -> ScriptedNvml:
    nvml = ScriptedNvml()
    nvml.uuids = [OTHER_UUID, UUID]
    return nvml


@pytest.mark.parametrize("visible", [None, "", "0", "1,0", UUID, UUID.upper(), "GPU-5c63cb", f" {UUID} ,{OTHER_UUID}"])
def test_a_gpu_that_is_named_first_or_by_an_index_is_opened(visible: str | None) -> None:
    assert opened(two(), visible=visible).uuid == UUID


@pytest.mark.parametrize("visible", [OTHER_UUID, "GPU-5c63d", f"{OTHER_UUID},{UUID}"])
def test_another_gpu_that_is_named_first_is_a_mismatch(visible: str) -> None:
    nvml = two()
    expected = f"CUDA_VISIBLE_DEVICES: expected the CUDA device {UUID} first, found {OTHER_UUID}"
    with pytest.raises(DeviceMismatch, match=expected) as caught:
        opened(nvml, visible=visible)
    assert caught.value.code == "device_mismatch"
    assert nvml.calls[-1] == "nvmlShutdown"


@pytest.mark.parametrize(
    ("visible", "code"),
    [("GPU-5c63", "ambiguous_uuid"), ("GPU-ffff", "unknown_uuid"), (f"{UUID},{MIG}", "mig_not_supported")],
)
def test_what_is_visible_has_to_be_one_whole_gpu_of_this_machine(visible: str, code: str) -> None:
    nvml = two()
    with pytest.raises(BadInput) as caught:
        opened(nvml, visible=visible)
    assert caught.value.code == code
    assert nvml.calls[-1] == "nvmlShutdown"
