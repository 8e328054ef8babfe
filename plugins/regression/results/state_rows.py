"""From states, settings, qualification and memory in a run record to the values of their rows; no database here."""

from __future__ import annotations

import dataclasses
from typing import Any

from gpu_tasks.records import MemoryRecord, QualificationRecord, RunRecord, ValidationRecord, parse_utc
from regression.results.energy_rows import reason
from regression.results.memory_tables import ALLOCATOR

Row = dict[str, Any]

MEMORY_COLUMNS = (
    *("draw", "cache_bytes", "state_hashes", "invocations", "hashes_matched", "total", "agreed", "predictions_sha256"),
    *("predictions_file", "duration_s"),
)


def state_columns_of(validation: ValidationRecord) -> Row:
    """What ``validation`` has of states."""
    reference = validation.reference_state
    return {
        "state_hashes": validation.state_hashes,
        "replay_states_equal": validation.replay_states_equal,
        "reference_state_name": reference.name if reference else None,
        "reference_state_expected_sha256": reference.expected_sha256 if reference else None,
        "reference_state_found_sha256": reference.found_sha256 if reference else None,
    }


def setting_rows(record: RunRecord) -> list[Row]:
    """Values of ``run_setting``."""
    settings = record.provision.settings if record.provision else []
    return [{"run_id": record.request.run_id, **dataclasses.asdict(setting)} for setting in settings]


def qualification_row(run_id: str, qualified: QualificationRecord) -> Row:
    """Values of ``qualification``."""
    names = ("computed_on", "captured", "passed", "checks", "maximum_abs_error", "tolerance", "duration_s")
    return {
        "run_id": run_id,
        "outcome": qualified.outcome.value,
        **reason(qualified.reason),
        **{name: getattr(qualified, name) for name in names},
        "created_at": parse_utc(qualified.created_at),
    }


def case_rows(run_id: str, qualified: QualificationRecord) -> list[Row]:
    """Values of ``qualification_case``."""
    rows = []
    for case in qualified.cases:
        fields = dataclasses.asdict(case)
        rows.append({"run_id": run_id, "case_name": fields.pop("name"), **fields})
    return rows


def memory_row(run_id: str, looked: MemoryRecord) -> Row:
    """Values of ``task_memory``."""
    inventory = looked.inventory
    return {
        "run_id": run_id,
        "outcome": looked.outcome.value,
        **reason(looked.reason),
        **{name: getattr(looked.memory, name) if looked.memory else None for name in ALLOCATOR},
        **reason(looked.memory_reason, "memory_"),
        "named_storage_bytes": inventory.unique_named_storage_bytes if inventory else None,
        "allocator_allocated_bytes": inventory.allocator_allocated_bytes if inventory else None,
        "unassigned_bytes": inventory.allocated_bytes_without_named_storage_reference if inventory else None,
        **{name: getattr(looked, name) for name in MEMORY_COLUMNS},
        **reason(looked.cache_reason, "cache_"),
        "profile": dataclasses.asdict(looked.profile) if looked.profile else None,
        **reason(looked.profile_reason, "profile_"),
        "created_at": parse_utc(looked.created_at),
    }


def storage_rows(run_id: str, looked: MemoryRecord) -> list[Row]:
    """Values of ``memory_storage``."""
    storages = looked.inventory.unique_storages if looked.inventory else []
    return [{"run_id": run_id, **dataclasses.asdict(storage)} for storage in storages]


def tensor_rows(run_id: str, looked: MemoryRecord) -> list[Row]:
    """Values of ``memory_tensor``."""
    tensors = looked.inventory.named_tensors if looked.inventory else []
    return [{"run_id": run_id, **dataclasses.asdict(tensor)} for tensor in tensors]
