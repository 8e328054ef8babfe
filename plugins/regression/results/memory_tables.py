"""Tables of where the memory of a task is: the allocator, named tensors, and the storages behind them."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, ForeignKeyConstraint, Integer, SmallInteger, Table, Text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

from regression.results.columns import (
    DOUBLE,
    OUTCOMES,
    TIMESTAMP,
    json_kind,
    metadata,
    not_blank,
    one_of,
    optional,
    reason_columns,
    required,
    sha256,
)

ALLOCATOR = {
    "allocated_before_prepare_bytes": "Allocated before the task was made",
    "reserved_before_prepare_bytes": "Reserved before the task was made",
    "allocated_after_prepare_bytes": "Allocated after the task was made",
    "prepare_and_invoke_peak_allocated_bytes": "Most allocated while the task was made and run",
    "allocated_after_invoke_bytes": "Allocated after the first run",
    "reserved_after_invoke_bytes": "Reserved after the first run",
    "prepare_and_invoke_peak_reserved_bytes": "Most reserved while the task was made and run",
    "added_peak_over_entry_allocated_bytes": "Most allocated, less what was allocated before",
}
"""Figures of the device's allocator, all in bytes."""
PEAK, ENTRY, AFTER = (
    *("prepare_and_invoke_peak_allocated_bytes", "allocated_before_prepare_bytes"),
    "allocated_after_invoke_bytes",
)

task_memory = Table(
    "task_memory",
    metadata,
    required("run_id", UUID(as_uuid=False), "Run", ForeignKey("run.run_id"), primary_key=True),
    required("outcome", Text, "Class of outcome: regression when the task does not repeat itself"),
    *reason_columns(),
    optional("draw", SmallInteger, "Number of the draw it ran on"),
    *(optional(name, BigInteger, f"{comment}, bytes (allocator)") for name, comment in ALLOCATOR.items()),
    optional("memory_reason_code", Text, "Why the allocator counts nothing: documented snake_case word"),
    optional("memory_reason_message", Text, "Why the allocator counts nothing: one line"),
    optional("named_storage_bytes", BigInteger, "All storages behind named tensors, each counted once, bytes"),
    optional("allocator_allocated_bytes", BigInteger, "Allocated when the tensors were counted, bytes (allocator)"),
    optional(
        "unassigned_bytes",
        BigInteger,
        "Allocated behind no named tensor: pools of graphs, workspaces of libraries, bytes",
    ),
    optional("cache_bytes", BigInteger, "Size of the device's L2 cache, bytes; nothing says what stays in it"),
    optional("cache_reason_code", Text, "Why the size of the cache is not known: documented snake_case word"),
    optional("cache_reason_message", Text, "Why the size of the cache is not known: one line"),
    optional("state_hashes", JSONB(none_as_null=True), "sha256 by name of what the first run began with and left"),
    optional("invocations", Integer, "How often the task ran"),
    required("hashes_matched", ARRAY(Text), "Names of the hashes that were the same after the last run"),
    optional("total", Integer, "Predictions made"),
    optional("agreed", Integer, "Predictions equal to the frozen ones"),
    optional("predictions_sha256", Text, "sha256 of the predictions as a file of int64 in the format of NumPy"),
    optional("predictions_file", Text, "Where that file was written; NULL: nowhere"),
    optional(
        "profile", JSONB(none_as_null=True), "What Nsight Compute saw by kernel: ns, bytes of DRAM, per cent of L2 hits"
    ),
    optional("profile_reason_code", Text, "Why there is no profile: documented snake_case word"),
    optional("profile_reason_message", Text, "Why there is no profile: one line"),
    optional("duration_s", DOUBLE, "Time it took, s"),
    required("created_at", TIMESTAMP, "When its record was written (UTC)"),
    one_of("outcome", OUTCOMES),
    CheckConstraint("outcome = 'ok' OR reason_code IS NOT NULL", name="reason"),
    CheckConstraint("draw >= 0", name="draw"),
    CheckConstraint(f"least({', '.join(ALLOCATOR)}, named_storage_bytes, cache_bytes) >= 0", name="bytes"),
    CheckConstraint(f"num_nulls({PEAK}, {ENTRY}, {AFTER}) IN (0, 3)", name="allocator"),
    CheckConstraint(f"memory_reason_code IS NULL OR {PEAK} IS NULL", name="memory_reason"),
    CheckConstraint(
        f"greatest({ENTRY}, allocated_after_prepare_bytes, {AFTER}) <= {PEAK}"
        f" AND {PEAK} <= prepare_and_invoke_peak_reserved_bytes",
        name="peak",
    ),
    CheckConstraint(f"added_peak_over_entry_allocated_bytes = {PEAK} - {ENTRY}", name="added_peak"),
    CheckConstraint(
        "unassigned_bytes IS NOT DISTINCT FROM allocator_allocated_bytes - named_storage_bytes", name="unassigned_bytes"
    ),
    CheckConstraint("cache_reason_code IS NULL OR cache_bytes IS NULL", name="cache_reason"),
    CheckConstraint("profile_reason_code IS NULL OR profile IS NULL", name="profile_reason"),
    CheckConstraint("hashes_matched = '{}' OR state_hashes IS NOT NULL", name="hashes_matched"),
    CheckConstraint("invocations > 0", name="invocations"),
    CheckConstraint("(total IS NULL) = (agreed IS NULL) AND agreed BETWEEN 0 AND total", name="agreed"),
    CheckConstraint("duration_s >= 0", name="duration_s"),
    sha256("predictions_sha256"),
    json_kind("state_hashes", "object"),
    json_kind("profile", "object"),
    comment="Memory of a task, made and run in a process of its own: one row a run that looked",
)

memory_storage = Table(
    "memory_storage",
    metadata,
    required("run_id", UUID(as_uuid=False), "Run", ForeignKey("task_memory.run_id"), primary_key=True),
    required("storage_id", Integer, "Number of the storage in its inventory", primary_key=True),
    required("device", Text, "Where it is, for example cuda:0"),
    required("address", BigInteger, "Its address; says nothing beyond its process"),
    required("bytes", BigInteger, "Its size, bytes"),
    required("aliases", ARRAY(Text), "Names of the tensors that share it"),
    CheckConstraint("least(storage_id, address, bytes) >= 0", name="numbers"),
    not_blank("device", "device"),
    comment="Storages behind the named tensors of a task",
)

memory_tensor = Table(
    "memory_tensor",
    metadata,
    required("run_id", UUID(as_uuid=False), "Run", primary_key=True),
    required("name", Text, "Name of the tensor in its task", primary_key=True),
    required("storage_id", Integer, "Storage that it is a view of"),
    required("shape", ARRAY(BigInteger), "Elements along each axis"),
    required("stride", ARRAY(BigInteger), "Elements from one to the next along each axis"),
    required("dtype", Text, "Type of an element, for example torch.float32"),
    required("storage_offset", BigInteger, "Elements of its storage before its first"),
    required("logical_bytes", BigInteger, "Its elements without its storage's others, bytes"),
    ForeignKeyConstraint(["run_id", "storage_id"], ["memory_storage.run_id", "memory_storage.storage_id"]),
    CheckConstraint("cardinality(shape) = cardinality(stride)", name="axes"),
    CheckConstraint("least(storage_offset, logical_bytes) >= 0", name="numbers"),
    not_blank("names", "name", "dtype"),
    comment="Named tensors of a task",
)

__all__ = ["memory_storage", "memory_tensor", "task_memory"]
