"""Everything that a results database says, without the keys that it generated itself and when it was loaded."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, Table, select

from regression.results import tables
from regression.results.loading import IDENTITIES

GENERATED = {
    **IDENTITIES,
    "baseline": ("run_id", "accepted_at"),
    "alert": ("workload", "metric", "direction", "opened_at"),
    "alert_event": ("alert_id", "at", "event"),
}
"""Tables with a generated key, and what identifies their rows otherwise."""
LEFT_OUT = {"loaded_at"}
SHARED = {"device": "device_id", "environment": "environment_id", "source_state": "source_state_id"}
SHARED |= {"payload": "payload_id", "payload_draw": "payload_id"}
"""Tables of what runs have in common: rows that no run refers to (any more) say nothing."""


def natural(engine: Engine) -> dict[str, list[Any]]:
    """Rows by table, sorted, each a list of (column, value)."""
    with engine.connect() as connection:
        names = {name: _names(connection, tables.metadata.tables[name]) for name in GENERATED}
        found = {t.name: _rows(connection, t, names) for t in tables.metadata.sorted_tables}
    assert found["run"], "an empty database compares with anything"
    return found


def _names(connection: Connection, table: Table) -> dict[int, Any]:
    (key,) = table.primary_key.columns
    identity = [table.c[name] for name in GENERATED[table.name]]
    return {row[0]: tuple(map(str, row[1:])) for row in connection.execute(select(key, *identity))}


def _rows(connection: Connection, table: Table, names: dict[str, dict[int, Any]]) -> list[Any]:
    statement = select(table)
    if table.name in SHARED:
        column = SHARED[table.name]
        statement = statement.where(table.c[column].in_(select(tables.run.c[column])))
    rows = []
    for row in connection.execute(statement).mappings():
        values = []
        for name, value in row.items():
            owner = name.removesuffix("_id")
            if name in LEFT_OUT or (owner == table.name and owner in GENERATED):
                continue
            refers = owner in GENERATED and name != owner and value is not None
            values.append((name, names[owner][value] if refers else value))
        rows.append(values)
    return sorted(rows, key=repr)
