"""What must follow from what in the records of a qualification and of memory, and what follows from a validation's."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from gpu_tasks.energy.recheck import Difference
from gpu_tasks.records import Inventory, MemoryRecord, Outcome, QualificationRecord, ValidationRecord

ITEM_BYTES = {"torch.float32": 4, "torch.float64": 8, "torch.int64": 8, "torch.int32": 4}


def recomputed_qualification(record: QualificationRecord, where: str) -> Iterator[Difference]:
    """Counts and outcome from the cases. One that could not be made has nothing to follow from."""
    if record.passed is None:
        yield f"{where}.outcome", True, record.outcome is not Outcome.OK
        return
    for index, case in enumerate(record.cases):
        yield f"{where}.cases[{index}].passed", not case.failures, case.passed
    yield f"{where}.passed", all(case.passed for case in record.cases), record.passed
    yield f"{where}.checks", sum(case.checks for case in record.cases), record.checks
    yield f"{where}.outcome", Outcome.OK if record.passed else Outcome.REGRESSION, record.outcome


def recomputed_memory(record: MemoryRecord, where: str) -> Iterator[Difference]:
    """Added peak, inventory and outcome."""
    memory, inventory = record.memory, record.inventory
    if memory is not None:
        added = memory.prepare_and_invoke_peak_allocated_bytes - memory.allocated_before_prepare_bytes
        yield (
            f"{where}.memory.added_peak_over_entry_allocated_bytes",
            added,
            memory.added_peak_over_entry_allocated_bytes,
        )
        peak = memory.prepare_and_invoke_peak_allocated_bytes
        for name in ("allocated_after_prepare_bytes", "allocated_after_invoke_bytes"):
            found = getattr(memory, name)
            yield f"{where}.memory.{name}: 0 to {peak}", True, found is None or 0 <= found <= peak
        reserved = memory.prepare_and_invoke_peak_reserved_bytes
        fine = reserved is None or reserved >= peak
        yield f"{where}.memory.prepare_and_invoke_peak_reserved_bytes: {peak} or more", True, fine
    if memory is not None and inventory is not None:
        allocated = memory.allocated_after_invoke_bytes
        yield f"{where}.inventory.allocator_allocated_bytes", allocated, inventory.allocator_allocated_bytes
    if inventory is not None:
        yield from _inventory(inventory, f"{where}.inventory")
    if record.state_hashes is not None:
        strange = [name for name in record.hashes_matched if name not in record.state_hashes]
        yield f"{where}.hashes_matched: names without a hash", [], strange
        same = len(record.hashes_matched) == len(record.state_hashes) and record.agreed == record.total
        yield f"{where}.outcome", Outcome.OK if same else Outcome.REGRESSION, record.outcome


def recomputed_validation(record: ValidationRecord, where: str) -> Iterator[Difference]:
    """That nothing is called ok whose state, or whose reference, is another than it was."""
    if record.outcome is not Outcome.OK:
        return
    yield f"{where}.replay_states_equal", [True] * len(record.replay_states_equal), record.replay_states_equal
    reference = record.reference_state
    if reference is not None and reference.expected_sha256 is not None:
        yield f"{where}.reference_state.found_sha256", reference.expected_sha256, reference.found_sha256


def _inventory(inventory: Inventory, where: str) -> Iterator[Difference]:
    aliases: dict[int, list[str]] = {}
    for index, tensor in enumerate(inventory.named_tensors):
        here = f"{where}.named_tensors[{index}]"
        size = ITEM_BYTES.get(tensor.dtype)
        if size is not None:
            yield f"{here}.logical_bytes", prod(tensor.shape) * size, tensor.logical_bytes
        aliases.setdefault(tensor.storage_id, []).append(tensor.name)
    for index, storage in enumerate(inventory.unique_storages):
        yield f"{where}.unique_storages[{index}].aliases", aliases.get(storage.storage_id, []), storage.aliases
    numbers = [storage.storage_id for storage in inventory.unique_storages]
    yield f"{where}.unique_storages", sorted(aliases), sorted(numbers)
    named = sum(storage.bytes for storage in inventory.unique_storages)
    yield f"{where}.unique_named_storage_bytes", named, inventory.unique_named_storage_bytes
    allocated = inventory.allocator_allocated_bytes
    rest = None if allocated is None else allocated - named
    yield (
        f"{where}.allocated_bytes_without_named_storage_reference",
        rest,
        inventory.allocated_bytes_without_named_storage_reference,
    )
