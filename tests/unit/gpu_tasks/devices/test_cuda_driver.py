"""The driver's wrapper on a fake libcuda: what it passes on, and what it makes of every code."""

from __future__ import annotations

import os

import pytest

from gpu_tasks.devices.cuda import errors
from gpu_tasks.devices.cuda.driver import Driver
from gpu_tasks.records import BadInput, InfrastructureFailure, Outcome, TaskError
from tests.unit.gpu_tasks.devices import cuda_fakes
from tests.unit.gpu_tasks.devices.cuda_fake_library import FakeLibrary
from tests.unit.gpu_tasks.devices.cuda_fakes import FakeGpu


@pytest.fixture
def gpu() -> FakeGpu:
    return FakeGpu()


def test_the_device_is_described_as_nvidia_smi_does(gpu: FakeGpu) -> None:
    driver = Driver(FakeLibrary(gpu))
    assert driver.device_name() == "NVIDIA A100-SXM4-40GB"
    assert driver.device_uuid() == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert driver.device_pci_bus_id() == "00000000:07:00.0"  # which the fake writes as CUDA does, 0000:07:00.0
    assert driver.device_memory_bytes() == 42405855232
    assert (driver.multiprocessors(), driver.compute_capability(), driver.version()) == (108, [8, 0], "12.4")
    assert gpu.calls[0] == "cuInit"


def load(gpu: FakeGpu) -> TaskError:
    with pytest.raises(TaskError) as caught:
        Driver(FakeLibrary(gpu)).load_module("text", "file.ptx")
    return caught.value


def test_refused_text_comes_with_the_compilers_log_on_one_line(gpu: FakeGpu) -> None:
    gpu.failing = {"cuModuleLoadData": 218, "cuModuleLoadDataEx": 218}
    gpu.log = b"ptxas application ptx input, line 7;\n error: Unknown symbol 'rd99'"
    error = load(gpu)
    assert isinstance(error, errors.RefusedKernel)
    assert error.code == "cuda_error_invalid_ptx"
    assert error.message == (
        "file.ptx: cuModuleLoadData: expected success, found CUDA_ERROR_INVALID_PTX (218): "
        "ptxas application ptx input, line 7; error: Unknown symbol 'rd99'"
    )


def test_without_a_log_the_drivers_own_words_are_used(gpu: FakeGpu) -> None:
    gpu.failing = {"cuModuleLoadData": 218, "cuModuleLoadDataEx": 218}
    assert load(gpu).message.endswith("(218): a PTX JIT compilation failed")


MACHINE = (2, 3, 4, 34, 46, 100, 101, 201, 214, 220, 221, 304, 400, 702, 709, 802, 803, 900, 901, 906, 999)
KERNEL = (1, 200, 209, 218, 222, 300, 500, 700, 701, 710, 714, 715, 716, 717, 718, 719)


@pytest.mark.parametrize("code", [*MACHINE, 4242])
def test_a_failure_of_the_machine_is_never_the_kernels(gpu: FakeGpu, code: int) -> None:
    gpu.failing = {"cuModuleLoadData": code}
    error = load(gpu)
    assert isinstance(error, InfrastructureFailure)
    name = errors.CODES[code][0] if code in errors.CODES else "CUDA_ERROR_4242"
    assert error.code == name.lower()
    assert f"found {name} ({code})" in error.message


@pytest.mark.parametrize("code", KERNEL)
def test_what_is_wrong_with_the_kernel_is_bad_input(gpu: FakeGpu, code: int) -> None:
    gpu.failing = {"cuModuleLoadData": code}
    error = load(gpu)
    assert isinstance(error, BadInput)
    assert error.code == errors.CODES[code][0].lower()


def test_no_code_of_the_driver_is_a_regression() -> None:
    assert sorted([*MACHINE, *KERNEL]) == sorted(errors.CODES)
    assert {error.outcome for _, error in errors.CODES.values()} == {
        Outcome.INFRASTRUCTURE_FAILURE,
        Outcome.BAD_INPUT,
    }


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (2, errors.OutOfDeviceMemory),
        (46, errors.DeviceBusy),
        (100, errors.NoDevice),
        (214, errors.DeviceLost),
        (700, errors.KernelFault),
    ],
)
def test_what_callers_tell_apart(gpu: FakeGpu, code: int, error: type[TaskError]) -> None:
    gpu.failing = {"cuInit": code}
    with pytest.raises(error):
        Driver(FakeLibrary(gpu))


def test_torchs_messages_are_recognised_by_the_drivers_words(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cuda_fakes.CODES, 3, ("CUDA_ERROR_NOT_INITIALIZED", "memory"))  # the longest words count
    driver = Driver(FakeLibrary(gpu))
    assert driver.code_in("CUDA error: an illegal memory access was encountered\nCUDA kernel errors ...") == 700
    assert driver.code_in("CUDA out of memory. Tried to allocate 2.00 GiB") == 2
    assert driver.code_in("expected scalar type Float but found Double") is None


def test_a_driver_without_a_function_is_too_old(gpu: FakeGpu) -> None:
    library = FakeLibrary(gpu)
    del library.cuStreamIsCapturing
    with pytest.raises(errors.CudaFailure, match="cuStreamIsCapturing") as caught:
        Driver(library)
    assert caught.value.code == "driver_too_old"


def test_a_machine_without_the_driver_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpu_tasks.devices.cuda import driver

    monkeypatch.setattr(driver, "LIBRARY", "libcuda-of-nobody.so.1")
    with pytest.raises(errors.NoDevice, match="libcuda-of-nobody") as caught:
        Driver()
    assert caught.value.code == "no_cuda_driver"


def test_a_forked_child_may_not_use_what_it_inherited(gpu: FakeGpu) -> None:
    driver = Driver(FakeLibrary(gpu))
    driver.check_process()
    child = os.fork()
    if child == 0:
        try:
            driver.check_process()
        except errors.CudaFailure as error:
            os._exit(42 if error.code == "cuda_after_fork" else 1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 42
