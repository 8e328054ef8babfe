"""Runs on given days, and what the reader is told of them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from gpu_tasks.records import RunRecord
from regression.results.loading import load_run
from tests.integration.regression.databases import Database
from tests.integration.regression.example_records import run_record, sha256_of


def asked(database: Database, statement: str) -> list[tuple[Any, ...]]:
    """Rows that a statement gives to the reader."""
    with database.reader.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def night(day: int, name: str | None = None, of: Any = run_record, **changes: Any) -> RunRecord:
    """A run on that day of December."""
    moments = {"started_at": f"2026-12-{day:02d}T02:00:00Z", "completed_at": f"2026-12-{day:02d}T02:05:00Z"}
    record: RunRecord = of(name or f"scheduled__{day:02d}", **moments, **changes)
    return record


def store(database: Database, *records: RunRecord) -> None:
    for record in records:
        load_run(database.writer, record, sha256_of(record))
