"""What the GPU device measures energy with, over a fake driver, a fake torch and a fake NVML."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from gpu_tasks.devices.cuda import errors, instruments
from gpu_tasks.devices.cuda.device import CudaQda
from gpu_tasks.devices.cuda.driver import Driver
from gpu_tasks.energy.instruments import Instruments
from gpu_tasks.energy.nvml.errors import (
    CODES,
    NvmlDriverNotLoaded,
    NvmlError,
    NvmlGpuIsLost,
    NvmlHung,
    NvmlLibraryNotFound,
    NvmlNotReady,
    NvmlUnavailable,
)
from gpu_tasks.energy.nvml.matching import DeviceMismatch
from gpu_tasks.energy.preflight import HELD_BYTES, own_process
from gpu_tasks.energy.sampler import ProcessSampler
from gpu_tasks.energy.simulation.faults import ENERGY, FaultyNvml, failing
from gpu_tasks.energy.simulation.nvml import FakeNvml
from gpu_tasks.records import BadInput, Effects, InfrastructureFailure, Outcome, Reason
from gpu_tasks.workloads.base import Workload
from tests.unit.gpu_tasks.devices.cuda_board import BUS_ID, CONTEXT_BYTES, UUID, Board
from tests.unit.gpu_tasks.devices.cuda_fake_library import FakeLibrary
from tests.unit.gpu_tasks.devices.cuda_fakes import FakeGpu, fake_torch

FOREIGN_UUID = "GPU-ffffffff-0405-0607-0809-0a0b0c0d0e0f"


@pytest.fixture
def gpu() -> FakeGpu:
    return FakeGpu()


@pytest.fixture
def board(gpu: FakeGpu) -> Board:
    return Board(gpu)


@pytest.fixture
def nvml(board: Board, monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    return use(FakeNvml(board), monkeypatch)


def use(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    monkeypatch.setattr(instruments, "load_nvml", lambda: nvml)
    return nvml


@pytest.fixture
def device(gpu: FakeGpu, qda: Workload) -> CudaQda:
    return CudaQda(qda, driver=Driver(FakeLibrary(gpu)), torch=fake_torch(gpu))


def opened(device: CudaQda) -> Instruments:
    found = device.instruments()
    assert isinstance(found, Instruments), found
    return found


def test_they_are_of_the_board_that_computes_and_opened_once(nvml: FakeNvml, device: CudaQda) -> None:
    assert nvml._initialised == 0, "nothing is opened before it is asked for"
    found = opened(device)
    assert (found.gpu.uuid, found.gpu.pci_bus_id) == (UUID, BUS_ID)  # type: ignore[attr-defined]
    assert found.own_pid == os.getpid()
    assert found.gpu.read_counter().energy_mj >= 0
    assert found.gpu.state().uuid == UUID
    assert device.instruments() is found
    assert nvml._initialised == 1


def test_times_are_the_clocks(nvml: FakeNvml, device: CudaQda) -> None:
    found = opened(device)
    assert found.clock is device.clock
    before = found.clock.now()
    reading = found.gpu.read_counter()
    assert before <= reading.time_s <= found.clock.now()


def test_the_fingerprint_has_the_counter(nvml: FakeNvml, device: CudaQda) -> None:
    fingerprint = device.fingerprint()
    assert (fingerprint.energy_counter, fingerprint.energy_counter_reason) == (True, None)


def test_closing_shuts_nvml_down_and_may_be_repeated(nvml: FakeNvml, device: CudaQda) -> None:
    opened(device)
    device.close()
    device.close()
    assert nvml._initialised == 0
    with pytest.raises(InfrastructureFailure, match="instruments: expected an open device") as caught:
        device.instruments()
    assert caught.value.code == "device_closed"


def test_a_gpu_without_a_counter_is_no_failure(gpu: FakeGpu, device: CudaQda, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = use(FakeNvml(Board(gpu, Effects(no_counter=True))), monkeypatch)
    found = device.instruments()
    assert isinstance(found, Reason)
    assert found.code == "nvml_not_supported"
    assert found.message.startswith("nvmlDeviceGetTotalEnergyConsumption: expected success")
    fingerprint = device.fingerprint()
    assert (fingerprint.energy_counter, fingerprint.energy_counter_reason) == (False, found)
    assert nvml._initialised == 0


def missing_package() -> Any:
    raise InfrastructureFailure("nvml_package_missing", "packages: expected nvidia-ml-py, found none")


def missing_library() -> Any:
    raise NvmlLibraryNotFound("nvmlInit")


def missing_driver() -> Any:
    raise NvmlDriverNotLoaded("nvmlInit")


@pytest.mark.parametrize(
    ("load", "code"),
    [
        (missing_package, "nvml_package_missing"),
        (missing_library, "nvml_library_not_found"),
        (missing_driver, "nvml_driver_not_loaded"),
    ],
)
def test_without_nvml_the_device_works_and_says_why_there_is_no_energy(
    device: CudaQda, monkeypatch: pytest.MonkeyPatch, load: Callable[[], Any], code: str
) -> None:
    monkeypatch.setattr(instruments, "load_nvml", load)
    found = device.instruments()
    assert isinstance(found, Reason)
    assert found.code == code
    assert device.fingerprint().energy_counter_reason == found


def test_two_packages_are_a_failure_and_no_missing_counter(device: CudaQda, monkeypatch: pytest.MonkeyPatch) -> None:
    def two() -> Any:
        raise InfrastructureFailure("two_nvml_packages", "packages: expected one, found pynvml 11 and nvidia-ml-py 13")

    monkeypatch.setattr(instruments, "load_nvml", two)
    for question in (device.instruments, device.fingerprint):
        with pytest.raises(InfrastructureFailure, match="found pynvml 11 and nvidia-ml-py 13") as caught:
            question()
        assert caught.value.code == "two_nvml_packages"


MOMENTARY = [error for error in CODES.values() if not issubclass(error, (NvmlLibraryNotFound, NvmlDriverNotLoaded))]


@pytest.mark.parametrize("error", MOMENTARY)
def test_one_bad_moment_of_nvml_is_raised_and_the_next_one_may_find_the_counter(
    nvml: FakeNvml, device: CudaQda, monkeypatch: pytest.MonkeyPatch, error: type[NvmlError]
) -> None:
    """When NVML is opened; when the counter is read, what the GPU has not got is no bad moment."""
    monkeypatch.setattr(instruments, "load_nvml", lambda: FaultyNvml(nvml, failing("nvmlInit", error.value)))
    for question in (device.fingerprint, device.instruments):
        with pytest.raises(error):
            question()
    monkeypatch.setattr(instruments, "load_nvml", lambda: FaultyNvml(nvml, failing(ENERGY, error.value)))
    if issubclass(error, NvmlUnavailable):
        fingerprint = device.fingerprint()
        assert not fingerprint.energy_counter
        assert fingerprint.energy_counter_reason is not None
        assert fingerprint.energy_counter_reason.message.startswith(ENERGY)
        return
    for question in (device.fingerprint, device.instruments):
        with pytest.raises(error):
            question()
    monkeypatch.setattr(instruments, "load_nvml", lambda: nvml)
    assert device.fingerprint().energy_counter


def test_a_call_that_hangs_is_a_bad_moment(nvml: FakeNvml, device: CudaQda, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang() -> Any:
        raise NvmlHung("nvmlInit", 60.0)

    monkeypatch.setattr(instruments, "load_nvml", hang)
    with pytest.raises(NvmlHung):
        device.fingerprint()


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"uuid": "GPU-00010203-0405-0607-0809-0a0b0c0d0e00"}, "expected the CUDA device GPU-0001"),
        ({"pci_bus_id": "00000000:08:00.0"}, f"expected {BUS_ID} of the CUDA device, found 00000000:08:00.0"),
    ],
)
def test_another_board_is_never_measured_instead(
    board: Board, nvml: FakeNvml, device: CudaQda, other: dict[str, str], words: str
) -> None:
    vars(board).update(other)
    for question in (device.instruments, device.fingerprint, device.instruments):
        with pytest.raises(DeviceMismatch, match=words) as caught:
            question()
        assert caught.value.outcome is Outcome.INVALID_MEASUREMENT
    assert nvml._initialised == 0


@pytest.mark.parametrize("visible", [None, "0", "1,0", UUID, UUID[:12], f"{UUID},{FOREIGN_UUID}"])
def test_the_board_that_is_visible_first_is_measured(
    gpu: FakeGpu, board: Board, device: CudaQda, monkeypatch: pytest.MonkeyPatch, visible: str | None
) -> None:
    use(FakeNvml(foreign(gpu), board), monkeypatch)
    show(visible, monkeypatch)
    assert opened(device).gpu.state().uuid == UUID


def test_a_board_that_is_visible_and_not_the_one_that_computes_is_a_mismatch(
    gpu: FakeGpu, board: Board, device: CudaQda, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(FakeNvml(foreign(gpu), board), monkeypatch)
    show(FOREIGN_UUID, monkeypatch)
    with pytest.raises(DeviceMismatch, match=f"expected the CUDA device {UUID} first, found {FOREIGN_UUID}"):
        device.fingerprint()
    show("GPU-", monkeypatch)
    with pytest.raises(BadInput, match="found 'GPU-'"):
        device.fingerprint()


def foreign(gpu: FakeGpu) -> Board:
    board = Board(gpu)
    board.uuid, board.pci_bus_id = FOREIGN_UUID, "00000000:01:00.0"
    return board


def show(visible: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)


def test_the_computing_board_is_found_among_others_whatever_their_order(
    gpu: FakeGpu, board: Board, device: CudaQda, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(FakeNvml(foreign(gpu), board, bytes_strings=True), monkeypatch)
    assert opened(device).gpu.state().uuid == UUID


def test_a_lost_gpu_is_the_machines_failure(board: Board, nvml: FakeNvml, device: CudaQda) -> None:
    board.lost_s = 0.0
    with pytest.raises(NvmlGpuIsLost) as caught:
        device.instruments()
    assert caught.value.outcome is Outcome.INFRASTRUCTURE_FAILURE
    assert nvml._initialised == 0


def test_a_counter_that_is_not_ready_is_asked_again(board: Board, nvml: FakeNvml, device: CudaQda) -> None:
    board.refused_reads = range(2)
    for question in (device.fingerprint, device.instruments):
        with pytest.raises(NvmlNotReady) as caught:
            question()
        assert caught.value.transient
    assert device.fingerprint().energy_counter
    assert nvml._initialised == 1


def test_memory_is_held_and_gone_afterwards(nvml: FakeNvml, gpu: FakeGpu, device: CudaQda) -> None:
    found, before = opened(device), gpu.process_bytes
    with found.hold_memory(HELD_BYTES):
        assert gpu.process_bytes == before + HELD_BYTES
    assert gpu.process_bytes == before
    with pytest.raises(ZeroDivisionError), found.hold_memory(HELD_BYTES):
        raise ZeroDivisionError
    assert gpu.process_bytes == before


def test_no_memory_to_hold_is_the_drivers_error(nvml: FakeNvml, gpu: FakeGpu, device: CudaQda) -> None:
    found = opened(device)
    gpu.fault = 2
    with pytest.raises(errors.OutOfDeviceMemory), found.hold_memory(HELD_BYTES):
        pass


def test_an_error_of_the_caller_while_memory_is_held_is_not_torchs(nvml: FakeNvml, device: CudaQda) -> None:
    with pytest.raises(RuntimeError, match="the callers"), opened(device).hold_memory(1024):
        raise RuntimeError("the callers")


def test_the_process_is_known_by_its_memory_under_any_number(
    board: Board, nvml: FakeNvml, gpu: FakeGpu, device: CudaQda
) -> None:
    board.reported_pid = 15008
    board.others = {1: CONTEXT_BYTES}
    found = opened(device)
    for _ in range(2):
        assert own_process(found.gpu, found.hold_memory, found.own_pid, found.clock) == {15008}
        gpu.product_ms = 1e6
        found.known_load._size = 16  # type: ignore[attr-defined]
        found.known_load._clock = Passing(gpu)  # type: ignore[attr-defined]
        found.known_load.run(1.0)  # what the load has used does not hide what is held


class Passing:
    """The fake GPU's own time."""

    def __init__(self, gpu: FakeGpu) -> None:
        self.gpu = gpu

    def now(self) -> float:
        return self.gpu.time_ms / 1000

    def sleep(self, seconds: float) -> None:
        raise AssertionError(f"expected work and no waiting, found {seconds} s of it")


def test_what_torch_raises_in_the_load_is_the_drivers_error(nvml: FakeNvml, gpu: FakeGpu, device: CudaQda) -> None:
    found = opened(device)
    found.known_load._size = 16  # type: ignore[attr-defined]
    gpu.fault = 700
    with pytest.raises(errors.KernelFault) as caught:
        found.known_load.run(1.0)
    assert isinstance(caught.value, BadInput)


def test_each_round_has_a_sampler_of_its_own_for_the_same_board(nvml: FakeNvml, device: CudaQda) -> None:
    found = opened(device)
    first, second = found.sampler(), found.sampler()
    assert first is not second
    for sampler in (first, second):
        assert isinstance(sampler, ProcessSampler)
        assert {UUID, BUS_ID} <= set(sampler._command)
