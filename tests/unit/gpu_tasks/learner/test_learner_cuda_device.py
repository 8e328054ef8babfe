"""The learner's GPU device over a GPU that is not there: the order of things, and how it fails. torch computes here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_tasks.devices.cuda import instruments
from gpu_tasks.devices.cuda.driver import Driver
from gpu_tasks.devices.cuda.errors import CaptureFailed
from gpu_tasks.energy.simulation.nvml import FakeNvml
from gpu_tasks.payload.draws import Draw, Payload
from gpu_tasks.records import BadInput, DeviceMemory, InfrastructureFailure, Reason
from gpu_tasks.workloads.base import Workload
from tests.unit.gpu_tasks.devices.cuda_board import UUID, Board
from tests.unit.gpu_tasks.devices.cuda_fake_library import FakeLibrary
from tests.unit.gpu_tasks.devices.cuda_fakes import FakeGpu, fake_torch

pytest.importorskip("torch")

from gpu_tasks.workloads.learner import cuda_device as module
from gpu_tasks.workloads.learner.task import LearnerTask

TASK_MS = 38.0


@pytest.fixture
def draw(one_draw: Path, learner: Workload, monkeypatch: pytest.MonkeyPatch) -> Draw:
    monkeypatch.setenv("NIGHTLY_PAYLOADS", str(one_draw.parent))
    return Payload("spring", learner).load(0)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, repeatable: None) -> FakeGpu:
    """Tasks are on the CPU and take 38 ms of the fake GPU's time; a capture records that it was made."""
    found = FakeGpu()
    run = LearnerTask.run

    def timed(task: LearnerTask) -> None:
        run(task)
        found.called("task")
        found.current.put(lambda: setattr(found, "time_ms", found.time_ms + TASK_MS))

    monkeypatch.setattr(module, "DEVICE", "cpu")
    monkeypatch.setattr(LearnerTask, "capture", lambda _: found.called("capture"))
    monkeypatch.setattr(LearnerTask, "run", timed)
    monkeypatch.setattr(instruments, "load_nvml", lambda: FakeNvml(Board(found)))
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    return found


@pytest.fixture
def device(gpu: FakeGpu, learner: Workload) -> Iterator[Any]:
    with closing(module.CudaLearner(learner, driver=Driver(FakeLibrary(gpu)), torch=fake_torch(gpu))) as opened:
        yield opened


def test_graphs_once_replays_between_events_and_poison(device: Any, gpu: FakeGpu, draw: Draw) -> None:
    device.load(draw.x, draw.labels, draw.q)
    device.capture()
    with pytest.raises(BadInput, match=r"predictions\[0\]: expected a class 0..9 at the end, found -1") as caught:
        device.predictions()
    assert caught.value.code == "unwritten_output"
    timing = device.replay(2)
    assert gpu.calls.count("capture") == 1
    assert gpu.calls.count("task") == 2
    assert timing.device_ms_per_replay == TASK_MS
    state = device.state_hashes()
    device.poison_scratch()
    device.eager()
    assert gpu.calls.count("task") == 2  # without graphs
    assert device.state_hashes() == state
    assert int(np.sum(device.predictions() == draw.frozen_predictions)) >= 9_990


def test_a_task_that_writes_no_output_is_no_result(device: Any, draw: Draw, monkeypatch: pytest.MonkeyPatch) -> None:
    device.load(draw.x, draw.labels, draw.q)
    device.capture()
    monkeypatch.setattr(LearnerTask, "run", lambda _: None)
    with pytest.raises(BadInput, match="expected a class"):
        device.replay()


def test_a_capture_that_fails_leaves_no_graph(device: Any, draw: Draw, monkeypatch: pytest.MonkeyPatch) -> None:
    device.load(draw.x, draw.labels, draw.q)
    device.capture()

    def fail(_: LearnerTask) -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nmore lines")

    monkeypatch.setattr(LearnerTask, "capture", fail)
    with pytest.raises(CaptureFailed, match=r"expected three graphs of the learner, found operation not permitted"):
        device.capture()
    with pytest.raises(InfrastructureFailure, match="expected a captured graph, found none"):
        device.replay()


def test_the_board_and_its_cache(device: Any, gpu: FakeGpu) -> None:
    fingerprint = device.fingerprint()
    assert (fingerprint.kind, fingerprint.uuid, fingerprint.energy_counter) == ("cuda", UUID, True)
    assert device.cache_bytes() == 40 * 1024**2
    assert device.kernel().variant == "torch-graphs"
    assert not isinstance(device.instruments(), Reason)


def test_memory_is_asked_around_loading_capturing_and_one_replay(
    device: Any, gpu: FakeGpu, draw: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = DeviceMemory(*range(8))

    def measure(prepare: Any, where: str) -> tuple[Any, DeviceMemory]:
        assert where == "cpu"
        assert gpu.calls.count("capture") == 0
        prepare().run()
        assert (gpu.calls.count("capture"), gpu.calls.count("task")) == (1, 1)
        return None, found

    monkeypatch.setattr(module, "measure_device_memory", measure)
    assert device.prepare_and_invoke(draw.x, draw.labels, draw.q) == found
    assert device.inventory().unique_named_storage_bytes == 13_960_864


def test_nothing_after_it_was_closed(device: Any, draw: Draw) -> None:
    device.close()
    device.close()
    with pytest.raises(InfrastructureFailure, match="load: expected an open device, found a closed one"):
        device.load(draw.x, draw.labels, draw.q)
    with pytest.raises(InfrastructureFailure, match="expected loaded inputs"):
        device.eager()


@pytest.mark.parametrize("workspace", [":0:0", "4096"])
def test_a_workspace_with_which_bits_may_change_is_refused(
    gpu: FakeGpu, learner: Workload, draw: Draw, monkeypatch: pytest.MonkeyPatch, workspace: str
) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", workspace)
    with pytest.raises(BadInput, match=f"CUBLAS_WORKSPACE_CONFIG: expected one of .*, found {workspace}") as caught:
        module.CudaLearner(learner, driver=Driver(FakeLibrary(gpu)), torch=fake_torch(gpu))
    assert caught.value.code == "not_repeatable"
