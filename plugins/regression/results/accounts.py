"""Stored accounts of the memory of a task in the form the memory detector takes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, exists, select

from regression.detectors import Problem
from regression.detectors.memory import (
    FIGURES,
    NAMED,
    PEAK_ALLOCATED,
    PEAK_RESERVED,
    UNASSIGNED,
    MemoryAccount,
    MemoryConditions,
    another_account,
    judge_memory,
)
from regression.results import tables
from regression.results.checks import Finding
from regression.results.earlier import earlier_runs, settings_of
from regression.results.history import (
    SIMULATED,
    StoredBaseline,
    closest_of_device_kind,
    name_of,
    problem_of,
    run_by_id,
)
from regression.results.surroundings import beside_changes

COLUMNS = {
    PEAK_ALLOCATED.name: "prepare_and_invoke_peak_allocated_bytes",
    PEAK_RESERVED.name: "prepare_and_invoke_peak_reserved_bytes",
    NAMED.name: "named_storage_bytes",
    UNASSIGNED.name: "unassigned_bytes",
}


def memory_findings(connection: Connection, run: Row[Any]) -> list[Finding]:
    """The memory of a run against its baseline and the run before; what else changed is said beside."""
    account = memory_account(connection, run)
    baseline, stored = memory_baseline(connection, run)
    before, before_id = _run_before(connection, run, account) if account else (None, None)
    found = judge_memory(account, baseline, before, problem_of(run))
    found = beside_changes(connection, run, found, stored.run_id if stored else before_id)
    return [Finding(found, stored.baseline_id if stored else None)]


def memory_account(connection: Connection, run: Row[Any]) -> MemoryAccount | None:
    """The account of a run as the detector takes it; None where nobody looked."""
    memory, tensor = tables.task_memory, tables.memory_tensor.c
    row = connection.execute(select(memory).where(memory.c.run_id == run.run_id)).one_or_none()
    if row is None:
        return None
    tensors = connection.execute(select(tensor.name, tensor.logical_bytes).where(tensor.run_id == run.run_id))
    reason = row.memory_reason_code
    return MemoryAccount(
        name=name_of(run),
        conditions=MemoryConditions(
            device=f"{run.device_name} ({run.uuid})",
            uuid=run.uuid or "",
            payload_manifest_sha256=run.manifest_sha256,
            environment_class=None if run.kind == SIMULATED else run.environment_class,
            settings=settings_of(connection, run.run_id),
        ),
        figures={name: getattr(row, column) for name, column in COLUMNS.items()},
        tensors={stored.name: stored.logical_bytes for stored in tensors},
        no_allocator=Problem("ok", reason, row.memory_reason_message or reason) if reason else None,
        problem=problem_of(row),
    )


def memory_baseline(connection: Connection, run: Row[Any]) -> tuple[MemoryAccount | None, StoredBaseline | None]:
    """The closest accepted run that has an account, for whatever purpose it was accepted."""
    has_account = exists().where(
        tables.task_memory.c.run_id == tables.baseline.c.run_id, tables.task_memory.c.named_storage_bytes.is_not(None)
    )
    found = closest_of_device_kind(connection, run, has_account, (has_account,))
    account = memory_account(connection, run_by_id(connection, found.run_id)) if found else None
    if account is None or account.problem:
        return None, None
    return account, found


def _run_before(
    connection: Connection, run: Row[Any], account: MemoryAccount
) -> tuple[MemoryAccount | None, str | None]:
    """The latest earlier run that everything can be compared with; else the latest, for what can be."""
    memory = tables.task_memory.c
    measured = exists().where(memory.run_id == tables.run.c.run_id, memory.named_storage_bytes.is_not(None))
    latest: tuple[MemoryAccount | None, str | None] = (None, None)
    for earlier in earlier_runs(connection, run, measured):
        found = memory_account(connection, earlier)
        if found is None or found.problem:
            continue
        if not any(another_account(account.conditions, found.conditions, found.name, f) for f in FIGURES):
            return found, earlier.run_id
        latest = latest if latest[0] else (found, earlier.run_id)
    return latest
