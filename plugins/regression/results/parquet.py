"""Rows of a view as a Parquet file, written by DuckDB from their CSV: typed, compressed, a group of rows at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb

from regression.results.exporting import Column

TYPES = {
    "smallint": "SMALLINT",
    "integer": "INTEGER",
    "bigint": "BIGINT",
    "double precision": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp with time zone": "TIMESTAMPTZ",
    "uuid": "UUID",
    "text[]": "VARCHAR[]",
    "boolean[]": "BOOLEAN[]",
}
"""PostgreSQL's types and DuckDB's; all others, JSON among them, stay the text that PostgreSQL writes."""
LONGEST_LINE = 64 * 1024 * 1024
MEMORY = "512MB"


def write_parquet(csv: Path, columns: Sequence[Column], target: Path) -> None:
    """Turn the CSV of ``write_csv`` into Parquet at ``target``."""
    with duckdb.connect(":memory:", config={"memory_limit": MEMORY, "threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET preserve_insertion_order = true")
        rows = connection.read_csv(
            str(csv),
            header=True,
            auto_detect=False,
            delimiter=",",
            quotechar='"',
            escapechar='"',
            all_varchar=True,
            columns={column.name: "VARCHAR" for column in columns},
            allow_quoted_nulls=False,
            max_line_size=LONGEST_LINE,
            parallel=False,
        )
        shown = ", ".join(f"{_typed(column)} AS {_quoted(column.name)}" for column in columns)
        rows.project(shown).write_parquet(str(target), compression="zstd")


def _typed(column: Column) -> str:
    name, kind = _quoted(column.name), TYPES.get(column.kind)
    if kind is None:
        return name
    return f"CAST(CAST({name} AS JSON) AS {kind})" if kind.endswith("[]") else f"CAST({name} AS {kind})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
