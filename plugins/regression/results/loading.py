"""Load run records: one transaction a record, the same record twice changes nothing.

A run that was judged is history: another record of it is refused. Until then (and after an infrastructure
failure, which says nothing about the kernel) a later record of the same run replaces the earlier one, because
Airflow may run a task again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine, Table, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, InterfaceError, OperationalError

from gpu_tasks.records import (
    FORMAT,
    BadInput,
    InfrastructureFailure,
    RunRecord,
    read_record_bytes,
    record_from_bytes,
    run_id_for,
)
from regression.results import comparison_rows, energy_rows, rows, state_rows, tables

PARTS = (
    tables.validation,
    tables.round_,
    tables.round_energy,
    tables.round_trace,
    tables.run_energy,
    tables.telemetry,
    tables.telemetry_trace,
    tables.telemetry_gate,
    tables.comparison,
    tables.comparison_block,
    tables.comparison_difference,
    tables.run_setting,
    tables.qualification,
    tables.qualification_case,
    tables.task_memory,
    tables.memory_storage,
    tables.memory_tensor,
)
"""Tables with the parts of a run, in an order that every foreign key allows."""
LIMITS = "54"  # class of PostgreSQL's codes for what is too long or too deep for it: it will be tomorrow, too


class LoadStatus(str, Enum):
    """What loading a record did."""

    STORED = "stored"
    UNCHANGED = "unchanged"
    REPLACED = "replaced"


@dataclass(frozen=True)
class LoadResult:
    """Run and what happened to it; ``rows`` counts what was written, by table."""

    run_id: str
    status: LoadStatus
    rows: Mapping[str, int] = field(default_factory=dict)


def read_run_record(path: Path) -> tuple[RunRecord, str]:
    """A run record file and the sha256 of its bytes; raises ``BadInput`` naming file and field."""
    content = read_record_bytes(path)
    return parse_run_record(content, str(path)), hashlib.sha256(content).hexdigest()


def parse_run_record(content: bytes, source: str) -> RunRecord:
    """The run record in the bytes of a file called ``source``; raises ``BadInput`` naming file and field.

    Its format is looked at before its fields: those of a newer one would only be called unknown.
    """
    fields = record_from_bytes(content, dict[str, Any], source)
    kind, found = fields.get("kind"), fields.get("format")
    if kind != "run":
        raise BadInput("bad_record", f"{source}: $.kind: expected 'run', found {kind!r:.80}")
    if found != FORMAT:
        newer = isinstance(found, str) and found.rpartition("/")[0] == FORMAT.rpartition("/")[0]
        why = ", of another version of Kernel Nightly, which has to read it" if newer else ""
        raise BadInput("other_format", f"{source}: $.format: expected {FORMAT!r}, found {found!r:.80}{why}")
    return record_from_bytes(content, RunRecord, source)


def load_run(engine: Engine, record: RunRecord, record_sha256: str) -> LoadResult:
    """Store ``record`` in one transaction; concurrent loaders of one run wait for each other.

    Raises ``BadInput`` (the record contradicts itself or the stored run, nothing changed) and
    ``InfrastructureFailure`` (``results_unavailable``: the database is away, try again).
    """
    with refusals(record), engine.begin() as connection:
        lock_run(connection, record.request.run_id)
        return store_run(connection, record, record_sha256)


@contextmanager
def refusals(record: RunRecord) -> Iterator[None]:
    """What the database says against a record, as the errors that ``load_run`` raises."""
    run_id = record.request.run_id
    try:
        yield
    except (IntegrityError, DataError) as error:
        raise BadInput("record_refused", f"run {run_id}: {_first_line(error)}") from error
    except ValueError as error:  # psycopg2's word for a NUL character in a text
        raise BadInput("record_refused", f"run {run_id}: {error}") from error
    except (OperationalError, InterfaceError) as error:
        if str(getattr(error.orig, "pgcode", None) or "").startswith(LIMITS):
            raise BadInput("record_refused", f"run {run_id}: {_first_line(error)}") from error
        raise InfrastructureFailure("results_unavailable", f"results database: {_first_line(error)}") from error


def lock_run(connection: Connection, run_id: str) -> None:
    """Wait for other loaders of this run, and keep them waiting until the transaction ends."""
    connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:run_id, 0))"), {"run_id": run_id})


def _check_identity(record: RunRecord) -> None:
    request = record.request
    try:
        UUID(request.run_id)
    except ValueError:
        raise BadInput("bad_run_id", f"run_id: expected a UUID, found {request.run_id!r}") from None
    expected = run_id_for(request.dag_id, request.dag_run_id)
    if request.run_id != expected:
        message = f"run_id of {request.dag_id}/{request.dag_run_id}: expected {expected}, found {request.run_id}"
        raise BadInput("bad_run_id", message)


def store_run(connection: Connection, record: RunRecord, record_sha256: str) -> LoadResult:
    """Store ``record`` in the caller's transaction, which holds the run's lock; raises what the database does."""
    _check_identity(record)
    run_id = record.request.run_id
    stored = connection.execute(
        select(tables.run.c.record_sha256, tables.run.c.verdict).where(tables.run.c.run_id == run_id)
    ).one_or_none()
    if stored and stored.record_sha256 == record_sha256:
        return LoadResult(run_id, LoadStatus.UNCHANGED)
    if stored and stored.verdict not in {None, "infrastructure_failure"}:
        message = f"run {run_id} ({record.request.dag_run_id}) was judged {stored.verdict} on another record"
        raise BadInput("run_already_judged", f"{message}; trigger a new run instead of repeating its tasks")
    values = {**rows.run_row(record, record_sha256), **_references(connection, record)}
    if stored:
        _clear(connection, run_id)
        connection.execute(
            tables.run.update()
            .where(tables.run.c.run_id == run_id)
            .values(**values, verdict=None, exit_code=None, loaded_at=func.now())
        )
    else:
        connection.execute(tables.run.insert().values(**values))
    parts = _parts(record)
    for table in PARTS:
        if parts[table]:
            connection.execute(table.insert(), parts[table])
    status = LoadStatus.REPLACED if stored else LoadStatus.STORED
    return LoadResult(run_id, status, {"run": 1} | {t.name: len(parts[t]) for t in PARTS if parts[t]})


def _parts(record: RunRecord) -> dict[Table, list[rows.Row]]:
    """Rows of a run beside its own."""
    run_id, telemetry, compared = record.request.run_id, record.telemetry, record.comparison
    qualified, looked = record.qualification, record.memory
    rounds = [*record.rounds, *(compared.rounds if compared else [])]
    return {
        tables.validation: rows.validation_rows(record),
        tables.round_: rows.round_rows(record),
        tables.round_energy: [row for r in rounds for row in energy_rows.round_energy_rows(run_id, r)],
        tables.round_trace: [row for r in rounds for row in energy_rows.round_trace_rows(run_id, r)],
        tables.run_energy: energy_rows.run_energy_rows(record),
        tables.telemetry: [energy_rows.telemetry_row(run_id, part) for part in telemetry],
        tables.telemetry_trace: [row for part in telemetry for row in energy_rows.telemetry_trace_rows(run_id, part)],
        tables.telemetry_gate: [energy_rows.gate_row(run_id, gate) for gate in record.gates],
        tables.comparison: [comparison_rows.comparison_row(run_id, compared)] if compared else [],
        tables.comparison_block: comparison_rows.block_rows(run_id, compared) if compared else [],
        tables.comparison_difference: comparison_rows.difference_rows(run_id, compared) if compared else [],
        tables.run_setting: state_rows.setting_rows(record),
        tables.qualification: [state_rows.qualification_row(run_id, qualified)] if qualified else [],
        tables.qualification_case: state_rows.case_rows(run_id, qualified) if qualified else [],
        tables.task_memory: [state_rows.memory_row(run_id, looked)] if looked else [],
        tables.memory_storage: state_rows.storage_rows(run_id, looked) if looked else [],
        tables.memory_tensor: state_rows.tensor_rows(run_id, looked) if looked else [],
    }


def _clear(connection: Connection, run_id: str) -> None:
    """Take out the parts of an earlier record of a run that was not judged, with the checks made on them."""
    used = select(tables.baseline.c.baseline_id).where(tables.baseline.c.run_id == run_id)
    if connection.execute(used).first():
        raise BadInput("run_is_baseline", f"run {run_id} is a baseline: its record cannot be replaced")
    for table in (tables.check_result, *reversed(PARTS)):
        connection.execute(table.delete().where(table.c.run_id == run_id))


def _references(connection: Connection, record: RunRecord) -> rows.Row:
    """Keys of the rows a run refers to, made where new, always in this order so that loaders never deadlock."""
    device = record.provision.device if record.provision else None
    environment = record.provision.environment if record.provision else None
    sources = record.verify_sources if record.verify_sources and record.verify_sources.sources else None
    payload = record.verify_payload.payload if record.verify_payload else None
    payload_id = None
    device_id = _key_of(connection, tables.device, rows.device_row(device)) if device else None
    environment_id = _key_of(connection, tables.environment, rows.environment_row(environment)) if environment else None
    source_state_id = _key_of(connection, tables.source_state, rows.source_state_row(sources)) if sources else None
    if payload:
        payload_id = _key_of(connection, tables.payload, rows.payload_row(payload))
        draws = rows.payload_draw_rows(payload, payload_id)
        if draws:
            connection.execute(insert(tables.payload_draw).on_conflict_do_nothing(), draws)
    return {
        "device_id": device_id,
        "environment_id": environment_id,
        "source_state_id": source_state_id,
        "payload_id": payload_id,
    }


IDENTITIES = {
    "device": ("kind", "uuid", "name"),
    "environment": ("fingerprint_sha256",),
    "source_state": ("fingerprint_sha256",),
    "payload": ("name", "manifest_sha256"),
}


def _key_of(connection: Connection, table: Table, values: rows.Row) -> int:
    (key,) = table.primary_key.columns
    wanted = select(key).where(*(table.c[name] == values[name] for name in IDENTITIES[table.name]))
    found = connection.execute(wanted).scalar_one_or_none()
    if found is None:
        connection.execute(insert(table).values(**values).on_conflict_do_nothing())
        found = connection.execute(wanted).scalar_one()
    return int(found)


def _first_line(error: DBAPIError) -> str:
    lines = str(error.orig).strip().splitlines()
    return lines[0] if lines else type(error).__name__
