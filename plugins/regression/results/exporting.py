"""Give results away: the record file of a run as it is kept, and the rows of a view as CSV or Parquet."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from sqlalchemy import Connection, Row, or_, select, text
from sqlalchemy.types import Text

from gpu_tasks.records import BadInput
from regression.results import spool, tables

SINCE_COLUMNS = ("started_at", "opened_at", "accepted_at")
"""What ``since`` is about: the first of them that a view has."""
ORDER = ("run_id", "arm", "round", "draw", "case_name")  # within the same time
DEVICE_COLUMNS = ("device", "device_uuid")
BATCH = 10_000  # rows that are in memory at a time


@dataclass(frozen=True)
class Column:
    """One column of a view; ``kind`` is PostgreSQL's name of its type."""

    name: str
    kind: str


def find_run(connection: Connection, wanted: str) -> Row[Any, Any, Any, Any]:
    """The one run whose run_id or dag_run_id is ``wanted``, or begins with it.

    Raises ``BadInput``: ``run_not_stored`` or ``run_ambiguous``.
    """
    run = tables.run.c
    run_id = run.run_id.cast(Text)
    columns = (run.run_id, run.dag_id, run.dag_run_id, run.record_sha256)
    for matches in (
        or_(run_id == wanted, run.dag_run_id == wanted),
        or_(run_id.startswith(wanted.lower(), autoescape=True), run.dag_run_id.startswith(wanted, autoescape=True)),
    ):
        found = connection.execute(select(*columns).where(matches).order_by(run.started_at.desc()).limit(6)).all()
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(f"{row.dag_id}/{row.dag_run_id} ({row.run_id})" for row in found[:5])
            more = ", ..." if len(found) > 5 else ""
            raise BadInput("run_ambiguous", f"run {wanted}: expected one run, found {names}{more}")
    raise BadInput("run_not_stored", f"run {wanted}: expected a stored run, found none")


def kept_record(connection: Connection, records: Path, wanted: str) -> bytes:
    """The record file of a run, byte for byte what the database was loaded from; raises ``BadInput``."""
    run = find_run(connection, wanted)
    path = spool.kept(records, run.run_id)
    if not path.exists():
        message = f"{path}: expected the record of run {run.run_id}, found nothing: another installation loaded it"
        raise BadInput("record_not_kept", message)
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != run.record_sha256:
        message = f"{path}: sha256: expected {run.record_sha256}, as it was loaded, found {found}"
        raise BadInput("record_changed", message)
    return content


def columns_of(connection: Connection, view: str) -> list[Column]:
    """The columns of a view, in order; raises ``BadInput`` naming the views there are."""
    names = connection.execute(
        text("SELECT viewname FROM pg_views WHERE schemaname = 'public' ORDER BY viewname")
    ).scalars()
    views = list(names)
    if view not in views:
        raise BadInput("unknown_view", f"view: expected one of {', '.join(views)}, found {view!r:.80}")
    statement = text(
        "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute "
        "WHERE attrelid = to_regclass('public.' || quote_ident(:view)) AND attnum > 0 AND NOT attisdropped "
        "ORDER BY attnum"
    )
    return [Column(*row) for row in connection.execute(statement, {"view": view})]


def read_view(
    connection: Connection, view: str, columns: Sequence[Column], *, since: datetime | None, device: str | None
) -> Iterator[list[str | None]]:
    """Rows of a view as PostgreSQL writes them (times in UTC), through a cursor of the server; oldest first.

    ``since`` and ``device`` (model or uuid) are bound, never pasted into the statement. Raises ``BadInput`` for a view
    without such a column.
    """
    names = {column.name for column in columns}
    time = next((name for name in SINCE_COLUMNS if name in names), None)
    quote = connection.dialect.identifier_preparer.quote
    wanted: list[str] = []
    values: dict[str, Any] = {}
    if since is not None:
        if time is None:
            raise BadInput("no_such_filter", f"view {view}: expected a time to filter by, found none")
        wanted.append(f"{quote(time)} >= :since")
        values["since"] = since
    if device is not None:
        present = [name for name in DEVICE_COLUMNS if name in names]
        if not present:
            raise BadInput("no_such_filter", f"view {view}: expected a device to filter by, found none")
        wanted.append("(" + " OR ".join(f"{quote(name)} = :device" for name in present) + ")")
        values["device"] = device
    shown = ", ".join(_as_text(column, quote(column.name)) for column in columns)
    statement = f"SELECT {shown} FROM {quote(view)}"  # noqa: S608 - names from the catalogue, quoted
    statement += f" WHERE {' AND '.join(wanted)}" if wanted else ""
    order = [quote(name) for name in ((time or ""), *ORDER) if name in names]
    statement += f" ORDER BY {', '.join(order)}" if order else ""
    connection.execute(text("SET LOCAL TIME ZONE 'UTC'"))
    options = {"stream_results": True, "yield_per": BATCH}
    for row in connection.execute(text(statement), values, execution_options=options):
        yield list(row)


def write_csv(stream: TextIO, columns: Sequence[Column], rows: Iterator[list[str | None]]) -> int:
    """Header and rows as CSV (RFC 4180, ``\\n``): NULL is nothing, an empty text is ``""``; returns the rows."""
    stream.write(",".join(_csv_field(column.name) for column in columns) + "\n")
    count = 0
    for row in rows:
        stream.write(",".join(map(_csv_field, row)) + "\n")
        count += 1
    return count


def _csv_field(value: str | None) -> str:
    if value is None:
        return ""
    if value == "" or any(character in value for character in ',"\n\r'):
        return '"' + value.replace('"', '""') + '"'
    return value


def _as_text(column: Column, quoted: str) -> str:
    """Arrays as JSON, which every reader of CSV can take apart."""
    return f"to_json({quoted})::text" if column.kind.endswith("[]") else f"{quoted}::text"


__all__ = ["Column", "columns_of", "find_run", "kept_record", "read_view", "write_csv"]
