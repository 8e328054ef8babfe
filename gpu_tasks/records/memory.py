"""The record of where the memory of a task is: allocator, named tensors and their storages, and what is unassigned."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_tasks.records.outcomes import Outcome
from gpu_tasks.records.reason import Reason


@dataclass(frozen=True)
class NamedTensor:
    """A tensor as a view of a storage. ``stride`` and ``storage_offset`` count elements."""

    name: str
    storage_id: int
    shape: list[int]
    stride: list[int]
    dtype: str
    storage_offset: int
    logical_bytes: int


@dataclass(frozen=True)
class Storage:
    """Memory that one or more tensors share; ``aliases`` names them."""

    storage_id: int
    device: str
    address: int
    bytes: int
    aliases: list[str]


@dataclass(frozen=True)
class Inventory:
    """Named tensors and their storages, each storage counted once.

    The last two are null on a CPU, whose allocator keeps no count: what it has allocated in all, and how much of that
    is behind no named tensor (pools of graphs, workspaces of libraries).
    """

    named_tensors: list[NamedTensor]
    unique_storages: list[Storage]
    unique_named_storage_bytes: int
    allocator_allocated_bytes: int | None
    allocated_bytes_without_named_storage_reference: int | None


@dataclass(frozen=True)
class DeviceMemory:
    """What torch's allocator of a GPU had, in bytes, around making a task and running it once.

    Only tensors: a driver's context is not in it. The peaks are of both, making and running. What an original record
    does not have is null; the programs write all of it.
    """

    allocated_before_prepare_bytes: int
    reserved_before_prepare_bytes: int | None
    allocated_after_prepare_bytes: int | None
    prepare_and_invoke_peak_allocated_bytes: int
    allocated_after_invoke_bytes: int
    reserved_after_invoke_bytes: int
    prepare_and_invoke_peak_reserved_bytes: int | None
    added_peak_over_entry_allocated_bytes: int


@dataclass(frozen=True)
class ProfiledKernel:
    """All launches of one kernel in a profile; null where the profiler did not say.

    ``duration_ns`` and ``dram_bytes`` are sums, ``l2_hit_percent`` is the mean over the launches.
    """

    name: str
    launches: int
    duration_ns: float | None
    dram_bytes: float | None
    l2_hit_percent: float | None


@dataclass(frozen=True)
class KernelProfile:
    """What Nsight Compute saw of the first ``launches`` kernels of a task: per kernel, longest first."""

    version: str
    launches: int
    kernels: list[ProfiledKernel]


@dataclass(frozen=True)
class MemoryRecord:
    """One task made and run in a fresh process; ``outcome`` is ``regression`` when it does not repeat itself.

    ``memory`` is null with ``memory_reason`` where no allocator counts. ``cache_bytes`` is the size of the device's
    L2 cache, for reference: nothing says that anything stays in it. ``state_hashes`` are of the first of
    ``invocations`` runs, and ``hashes_matched`` names those that were the same after the last. ``predictions_file``
    is where ``predictions_sha256`` (``numpy.save`` of the int64 classes) was written, null for nowhere. ``profile`` is
    null with ``profile_reason`` where none was made.
    """

    kind: str  # "memory"
    created_at: str
    outcome: Outcome
    reason: Reason | None
    workload: str
    payload: str
    device_uuid: str | None
    draw: int | None
    memory: DeviceMemory | None
    memory_reason: Reason | None
    inventory: Inventory | None
    cache_bytes: int | None
    cache_reason: Reason | None
    state_hashes: dict[str, str] | None
    invocations: int | None
    hashes_matched: list[str]
    total: int | None
    agreed: int | None
    predictions_sha256: str | None
    predictions_file: str | None
    profile: KernelProfile | None
    profile_reason: Reason | None
    duration_s: float | None
