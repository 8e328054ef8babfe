"""Where the memory of a task is: every named tensor, the storages behind them, and what the allocator has beside them.

Imports torch: import this module where it is used, not at the head of one that must do without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import torch

from gpu_tasks.records import BadInput, DeviceMemory, Inventory, NamedTensor, Storage
from gpu_tasks.workloads.learner.task import LearnerTask


class Runs(Protocol):
    """A task that is ready to be run."""

    def run(self) -> None:
        """Run it once."""


Task = TypeVar("Task", bound=Runs)


def take_inventory(tensors: Mapping[str, Any], allocated_bytes: int | None = None) -> Inventory:
    """The inventory of ``tensors`` by name, in their order; storages are numbered as they come up."""
    numbers: dict[tuple[str, int], int] = {}
    storages: list[Storage] = []
    named: list[NamedTensor] = []
    for name, tensor in tensors.items():
        storage = tensor.untyped_storage()
        place = (str(tensor.device), storage.data_ptr())
        number = numbers.setdefault(place, len(numbers))
        if number == len(storages):
            storages.append(Storage(number, *place, bytes=storage.nbytes(), aliases=[]))
        storages[number].aliases.append(name)
        named.append(
            NamedTensor(
                name=name,
                storage_id=number,
                shape=list(tensor.shape),
                stride=list(tensor.stride()),
                dtype=str(tensor.dtype),
                storage_offset=tensor.storage_offset(),
                logical_bytes=tensor.numel() * tensor.element_size(),
            )
        )
    total = sum(storage.bytes for storage in storages)
    rest = None if allocated_bytes is None else allocated_bytes - total
    return Inventory(named, storages, total, allocated_bytes, rest)


def inventory_of(task: LearnerTask) -> Inventory:
    """The inventory of a task; on a GPU with what the allocator has beside it."""
    allocated = None if task.device.type == "cpu" else torch.cuda.memory_allocated(task.device)
    return take_inventory(task.tensors(), allocated)


def measure_device_memory(prepare: Callable[[], Task], device: str) -> tuple[Task, DeviceMemory]:
    """Make a task with ``prepare``, run it once, and say what that took of the GPU ``device``.

    In a fresh process the figures are the task's alone. Raises ``BadInput`` (``no_device_memory``) for a CPU; there a
    fresh process and its own peak say it (docs/learner.md).
    """
    if device.partition(":")[0] == "cpu":
        raise BadInput("no_device_memory", f"device: expected a GPU, whose allocator counts, found {device}")
    cuda = torch.cuda
    cuda.synchronize(device)
    cuda.reset_peak_memory_stats(device)
    before, reserved_before = cuda.memory_allocated(device), cuda.memory_reserved(device)
    task = prepare()
    cuda.synchronize(device)
    prepared = cuda.memory_allocated(device)
    task.run()
    cuda.synchronize(device)
    peak = cuda.max_memory_allocated(device)
    return task, DeviceMemory(
        allocated_before_prepare_bytes=before,
        reserved_before_prepare_bytes=reserved_before,
        allocated_after_prepare_bytes=prepared,
        prepare_and_invoke_peak_allocated_bytes=peak,
        allocated_after_invoke_bytes=cuda.memory_allocated(device),
        reserved_after_invoke_bytes=cuda.memory_reserved(device),
        prepare_and_invoke_peak_reserved_bytes=cuda.max_memory_reserved(device),
        added_peak_over_entry_allocated_bytes=peak - before,
    )
