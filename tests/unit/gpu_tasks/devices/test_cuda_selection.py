"""Which device ``auto`` is, and why a GPU is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from gpu_tasks.devices.cuda.errors import CudaFailure, NoDevice
from gpu_tasks.devices.cuda.selection import TorchMissing, auto_means_cuda, find_gpu, load_torch
from gpu_tasks.records import BadInput
from tests.unit.gpu_tasks.devices.cuda_fake_library import FakeLibrary
from tests.unit.gpu_tasks.devices.cuda_fakes import FakeGpu, fake_torch


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return FakeGpu()


@pytest.fixture
def torch_name(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that stands in for torch, under a name that nothing else imports."""
    module = ModuleType("torch_of_a_test")
    module.__dict__.update(vars(fake_torch(gpu)))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module.__name__


def test_a_gpu_and_a_torch_that_uses_it(gpu: FakeGpu, torch_name: str) -> None:
    assert auto_means_cuda(FakeLibrary(gpu), torch_name) is True


def test_hidden_or_absent_gpus_leave_the_cpu(gpu: FakeGpu, torch_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu.count = 0
    assert auto_means_cuda(FakeLibrary(gpu), torch_name) is False
    gpu.count, gpu.failing = 1, {"cuInit": 100}
    assert auto_means_cuda(FakeLibrary(gpu), torch_name) is False
    for hidden in ("", "-1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert auto_means_cuda(FakeLibrary(gpu), torch_name) is False


def test_a_gpu_that_was_asked_for_and_is_not_there_is_an_error(
    gpu: FakeGpu, torch_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-98d9")
    gpu.count = 0
    with pytest.raises(NoDevice, match="CUDA_VISIBLE_DEVICES='GPU-98d9'"):
        auto_means_cuda(FakeLibrary(gpu), torch_name)


def test_an_environment_without_torch_is_said_not_to_use_the_gpu(
    gpu: FakeGpu, capsys: pytest.CaptureFixture[str]
) -> None:
    assert auto_means_cuda(FakeLibrary(gpu), "torch_that_nobody_has") is False
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("a GPU is here, but it is not used: torch: expected")
    with pytest.raises(TorchMissing):
        load_torch("torch_that_nobody_has")


def test_a_broken_driver_is_no_reason_to_use_the_cpu(gpu: FakeGpu, torch_name: str) -> None:
    gpu.failing = {"cuInit": 803}
    with pytest.raises(CudaFailure, match="CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"):
        auto_means_cuda(FakeLibrary(gpu), torch_name)


@pytest.mark.parametrize(
    "source",
    ["raise OSError('libcudnn.so.9: cannot open shared object file')", "import a_part_that_torch_needs_and_lacks"],
)
def test_a_broken_torch_beside_a_gpu_is_an_error(
    gpu: FakeGpu, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch_in_pieces.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(CudaFailure, match="expected to be imported, found") as caught:
        auto_means_cuda(FakeLibrary(gpu), "torch_in_pieces")
    assert caught.value.code == "torch_broken"
    assert not isinstance(caught.value, TorchMissing)


def test_a_torch_that_cannot_use_the_gpu_is_an_error(gpu: FakeGpu, torch_name: str) -> None:
    torch = sys.modules[torch_name]
    torch.cuda.is_available = lambda: False
    with pytest.raises(CudaFailure) as caught:
        auto_means_cuda(FakeLibrary(gpu), torch_name)
    assert caught.value.code == "torch_sees_no_gpu"
    torch.version.cuda = None
    with pytest.raises(CudaFailure) as caught:
        auto_means_cuda(FakeLibrary(gpu), torch_name)
    assert caught.value.code == "torch_without_cuda"


@pytest.mark.parametrize("visible", ["MIG-98d97ad6-4528-7be9-28a9-1508130aa10e", "mig-GPU-98d97ad6/1/0", "0,MIG-1"])
def test_a_slice_of_a_gpu_is_refused_before_anything_is_asked_of_it(
    gpu: FakeGpu, visible: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(BadInput, match="expected a whole GPU") as caught:
        auto_means_cuda(FakeLibrary(gpu))
    assert caught.value.code == "mig_not_supported"
    assert gpu.calls == []


def test_a_slice_that_cuda_chose_by_itself_is_refused(gpu: FakeGpu) -> None:
    gpu.name = "NVIDIA A100-SXM4-40GB MIG 3g.20gb"
    with pytest.raises(BadInput, match="switch MIG off"):
        find_gpu(FakeLibrary(gpu))
