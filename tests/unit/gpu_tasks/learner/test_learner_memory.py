"""Where the memory of a task is, and the order of things in a capture; GPUs are played by a script here."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpu_tasks.convert.learner_memory_form import Inventory as RecordedInventory
from gpu_tasks.records import BadInput, DeviceMemory, Inventory, from_json, to_json
from gpu_tasks.workloads.learner import frozen
from gpu_tasks.workloads.learner.config import RECORDED
from gpu_tasks.workloads.learner.initial import parameter_shapes
from gpu_tasks.workloads.learner.inputs import Inputs
from tests.unit.gpu_tasks.learner import small

torch = pytest.importorskip("torch")

from gpu_tasks.workloads.learner import graphs, memory  # noqa: E402 - after the skip
from gpu_tasks.workloads.learner.memory import inventory_of, take_inventory  # noqa: E402
from gpu_tasks.workloads.learner.task import LearnerTask  # noqa: E402

NAMES = ["weights.0", "weights.1", "weights.2", "weights.3", "head.weight", "head.bias"]
REST = ["raw", "raw_query", "labels", "x", "q", "orders", "order", "predictions", "scores"]


@pytest.mark.usefixtures("repeatable")
def test_the_inventory_is_the_recorded_one() -> None:
    """Names and order, 33 storages of one tensor each, and their bytes to the last."""
    rng = np.random.default_rng(0)
    pixels = rng.random((10_000, 81), dtype=np.float32)
    task = LearnerTask(RECORDED, Inputs(pixels, rng.integers(0, 10, 10_000), pixels), frozen.initial_parameters())
    found = inventory_of(task)
    names = [f"{kind}.{name}" for name in NAMES for kind in ("parameters", "gradients")]
    names += [f"{kind}.{number}" for kind in ("initial", "velocity") for number in range(6)]
    assert [tensor.name for tensor in found.named_tensors] == names + REST
    assert [tensor.storage_id for tensor in found.named_tensors] == list(range(33))
    assert found.unique_named_storage_bytes == 13_960_864
    assert found.allocated_bytes_without_named_storage_reference is None
    by_name = {tensor.name: tensor for tensor in found.named_tensors}
    assert (by_name["raw"].shape, by_name["raw"].stride) == ([10_000, 81], [81, 1])
    assert (by_name["x"].shape, by_name["x"].logical_bytes) == ([10_000, 82], 3_280_000)
    assert (by_name["orders"].dtype, by_name["orders"].logical_bytes) == ("torch.int64", 160_000)
    assert from_json(to_json(found), Inventory, "again") == found


def test_our_inventory_reads_as_a_recorded_one() -> None:
    content = vars(take_inventory({"a": torch.zeros(2, 3)}, 512)) | {
        "scope": "",
        "is_per_kernel_working_set": False,
        "cache_residency_established": False,
    }
    text = to_json(RecordedInventory(**content))
    assert from_json(text, RecordedInventory, "ours").allocated_bytes_without_named_storage_reference == 512 - 24


def test_a_storage_is_counted_once_whatever_looks_at_it() -> None:
    whole = torch.zeros(4, 6, dtype=torch.float64)
    found = take_inventory({"whole": whole, "other": torch.zeros(2), "part": whole[1:, ::2]}, 1000)
    part = found.named_tensors[2]
    assert (part.storage_id, part.storage_offset, part.stride, part.logical_bytes) == (0, 6, [6, 2], 72)
    assert [storage.aliases for storage in found.unique_storages] == [["whole", "part"], ["other"]]
    assert found.unique_named_storage_bytes == 4 * 6 * 8 + 8
    assert found.allocated_bytes_without_named_storage_reference == 1000 - 200


def test_a_cpu_has_no_allocator_to_ask() -> None:
    with pytest.raises(BadInput, match="expected a GPU, whose allocator counts, found cpu") as caught:
        memory.measure_device_memory(pytest.fail, "cpu")
    assert caught.value.code == "no_device_memory"


class Allocator:
    """A GPU's allocator: what was asked for, and the most of it so far."""

    def __init__(self) -> None:
        self.now, self.peak = 100, 900

    def take(self, size: int) -> None:
        self.now += size
        self.peak = max(self.peak, self.now)

    def synchronize(self, _: str) -> None:
        pass

    def reset_peak_memory_stats(self, _: str) -> None:
        self.peak = self.now

    def memory_allocated(self, _: str) -> int:
        return self.now

    def memory_reserved(self, _: str) -> int:
        return 10 * self.now

    def max_memory_allocated(self, _: str) -> int:
        return self.peak

    def max_memory_reserved(self, _: str) -> int:
        return 10 * self.peak


def test_memory_around_making_and_running(monkeypatch: pytest.MonkeyPatch) -> None:
    allocator = Allocator()
    monkeypatch.setattr(memory, "torch", SimpleNamespace(cuda=allocator))

    def run() -> None:
        allocator.take(300)
        allocator.take(-250)

    def prepare() -> Any:
        allocator.take(70)
        allocator.take(-10)
        return SimpleNamespace(run=run)

    _, found = memory.measure_device_memory(prepare, "cuda")
    assert found == DeviceMemory(
        allocated_before_prepare_bytes=100,
        reserved_before_prepare_bytes=1000,
        allocated_after_prepare_bytes=160,
        prepare_and_invoke_peak_allocated_bytes=460,
        allocated_after_invoke_bytes=210,
        reserved_after_invoke_bytes=2100,
        prepare_and_invoke_peak_reserved_bytes=4600,
        added_peak_over_entry_allocated_bytes=360,
    )


class ScriptedCuda:
    """Says what was done, in order."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.CUDAGraph = lambda: SimpleNamespace(replay=lambda: self.told.append("replay"))

    def graph_pool_handle(self) -> str:
        return "pool"

    def Stream(self) -> Any:
        return SimpleNamespace(wait_stream=lambda _: self.told.append("side waits"))

    def current_stream(self) -> Any:
        return SimpleNamespace(wait_stream=lambda _: self.told.append("main waits"))

    def synchronize(self) -> None:
        self.told.append("synchronize")

    @contextmanager
    def stream(self, _: Any) -> Any:
        self.told.append("side")
        yield
        self.told.append("main")

    @contextmanager
    def graph(self, _: Any, pool: str) -> Any:
        self.told.append(f"capture into {pool}")
        yield
        self.told.append("captured")


def test_a_step_is_warmed_up_aside_and_captured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = ScriptedCuda()
    monkeypatch.setattr(graphs, "torch", SimpleNamespace(cuda=cuda))
    replay = graphs.Graphs().capture(lambda: cuda.told.append("step"))
    warm = ["side waits", "side", *["step"] * graphs.WARM_UPS, "main", "main waits", "synchronize"]
    assert cuda.told == [*warm, "capture into pool", "step", "captured"]
    cuda.told.clear()
    replay()
    replay()
    assert cuda.told == ["replay", "replay"]


@pytest.mark.usefixtures("repeatable")
def test_a_trace_has_every_step_of_an_epoch_and_is_no_named_tensor() -> None:
    config = small.config()
    initial = {name: np.zeros(shape, np.float32) for name, shape in parameter_shapes(config.depth, 10).items()}
    plain, traced = (LearnerTask(config, small.inputs(), initial, traced=choice) for choice in (False, True))
    assert plain.trace == []
    assert len(traced.trace) == 3
    assert list(traced.tensors()) == list(plain.tensors())
