"""The memory figures in the original records of the learner, key by key."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class QualifiedMemory:
    """Allocator bytes of a qualification."""

    allocated_before_prepare_bytes: int
    prepare_and_invoke_peak_allocated_bytes: int
    allocated_after_invoke_bytes: int
    reserved_after_invoke_bytes: int
    scope: str


@dataclass(frozen=True)
class MeasuredMemory:
    """Allocator bytes of a measurement."""

    allocated_before_prepare_bytes: int
    reserved_before_prepare_bytes: int
    allocated_after_prepare_bytes: int
    prepare_and_invoke_peak_allocated_bytes: int
    allocated_after_invoke_bytes: int
    reserved_after_invoke_bytes: int
    prepare_and_invoke_peak_reserved_bytes: int
    scope: str
    added_peak_over_entry_allocated_bytes: int


@dataclass(frozen=True)
class NamedTensor:
    """A tensor of the learner, as a view of a storage."""

    name: str
    storage_id: int
    shape: list[int]
    stride: list[int]
    dtype: str
    storage_offset: int
    logical_bytes: int


@dataclass(frozen=True)
class Storage:
    """Memory that one or more tensors share."""

    storage_id: int
    device: str
    address: int
    bytes: int
    aliases: list[str]


@dataclass(frozen=True)
class Inventory:
    """Every named tensor and the memory behind it."""

    named_tensors: list[NamedTensor]
    unique_storages: list[Storage]
    unique_named_storage_bytes: int
    allocator_allocated_bytes: int
    allocated_bytes_without_named_storage_reference: int
    scope: str
    is_per_kernel_working_set: bool
    cache_residency_established: bool


@dataclass(frozen=True)
class CacheReference:
    """The size of a cache, for reference."""

    bytes: int
    unit: str
    meaning: str
