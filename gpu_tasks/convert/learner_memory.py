"""What follows from what in the memory figures of a measurement: tensors, the storages behind them, the allocator."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from gpu_tasks.convert.checking import Fact, rule
from gpu_tasks.convert.learner_form import Measurement
from gpu_tasks.convert.learner_memory_form import Inventory

ITEM_BYTES = {"torch.float32": 4, "torch.float64": 8, "torch.int64": 8}
CACHE_UNIT_BYTES = 1024 * 1024


def memory_facts(where: str, result: Measurement) -> Iterator[Fact]:
    """Of allocator, inventory and cache reference."""
    memory, inventory = result.memory, result.buffer_inventory
    entry, peak = memory.allocated_before_prepare_bytes, memory.prepare_and_invoke_peak_allocated_bytes
    yield Fact(
        f"{where}.memory.added_peak_over_entry_allocated_bytes",
        peak - entry,
        memory.added_peak_over_entry_allocated_bytes,
    )
    for name in ("allocated_after_prepare_bytes", "allocated_after_invoke_bytes"):
        yield rule(f"{where}.memory.{name}", 0 <= getattr(memory, name) <= peak, f"0 to {peak}", getattr(memory, name))
    reserved = memory.prepare_and_invoke_peak_reserved_bytes
    yield rule(f"{where}.memory.prepare_and_invoke_peak_reserved_bytes", reserved >= peak, f"{peak} or more", reserved)
    yield Fact(
        f"{where}.buffer_inventory.allocator_allocated_bytes",
        memory.allocated_after_invoke_bytes,
        inventory.allocator_allocated_bytes,
    )
    yield from _inventory(f"{where}.buffer_inventory", inventory)
    cache = result.cache_reference
    yield Fact(f"{where}.cache_reference.unit", f"{cache.bytes // CACHE_UNIT_BYTES} MiB", cache.unit)


def _inventory(where: str, inventory: Inventory) -> Iterator[Fact]:
    aliases: dict[int, list[str]] = {}
    for index, tensor in enumerate(inventory.named_tensors):
        here = f"{where}.named_tensors[{index}]"
        yield rule(f"{here}.dtype", tensor.dtype in ITEM_BYTES, f"one of {sorted(ITEM_BYTES)}", tensor.dtype)
        yield Fact(f"{here}.logical_bytes", prod(tensor.shape) * ITEM_BYTES[tensor.dtype], tensor.logical_bytes)
        strides = [prod(tensor.shape[axis + 1 :]) for axis in range(len(tensor.shape))]
        yield Fact(f"{here}.stride", strides, tensor.stride)
        aliases.setdefault(tensor.storage_id, []).append(tensor.name)
    storages = inventory.unique_storages
    yield Fact(f"{where}.unique_storages", sorted(aliases), sorted(storage.storage_id for storage in storages))
    for index, storage in enumerate(storages):
        yield Fact(f"{where}.unique_storages[{index}].aliases", aliases[storage.storage_id], storage.aliases)
        needed = max(t.logical_bytes for t in inventory.named_tensors if t.storage_id == storage.storage_id)
        yield rule(
            f"{where}.unique_storages[{index}].bytes", storage.bytes >= needed, f"{needed} or more", storage.bytes
        )
    named = sum(storage.bytes for storage in storages)
    yield Fact(f"{where}.unique_named_storage_bytes", named, inventory.unique_named_storage_bytes)
    rest = inventory.allocator_allocated_bytes - named
    yield Fact(
        f"{where}.allocated_bytes_without_named_storage_reference",
        rest,
        inventory.allocated_bytes_without_named_storage_reference,
    )
