"""Nights of a workload that trains, one a day, and what the checks of what a task takes and leaves find on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Row

from gpu_tasks.records import RunRecord
from regression.results.checks import Finding
from regression.results.history import find_run
from tests.integration.regression.databases import Database
from tests.integration.regression.example_learner import DAG, learner_run
from tests.integration.regression.many_nights import FIRST, store

SOURCES = {"gpu_tasks/workloads/learner/core.py": "1" * 64, "gpu_tasks/programs/measure.py": "2" * 64}
"""One file of the workload, and one of the frame."""
Findings = Callable[[Connection, Row[Any]], list[Finding]]


def learner_night(
    day: int,
    name: str | None = None,
    *,
    sources: Mapping[str, str] | None = None,
    environment: Mapping[str, Any] | None = None,
    trigger: str = "scheduled",
    cuda_ms: float = 38.4,
    **changes: Any,
) -> RunRecord:
    """A run of that day from the first; ``changes`` are those of ``learner_run``."""
    record = learner_run(name or f"scheduled__{day:03d}", **changes)
    assert record.provision and record.provision.environment and record.verify_sources
    started = FIRST + timedelta(days=day)
    moment, end = (f"{at:%Y-%m-%dT%H:%M:%S.%fZ}" for at in (started, started + timedelta(minutes=5)))
    figures = sorted(measured.adjusted_mj for measured in record.rounds if measured.adjusted_mj is not None)
    median = figures[len(figures) // 2] if figures else None
    return replace(
        record,
        started_at=moment,
        completed_at=end,
        created_at=end,
        request=replace(record.request, trigger=trigger),
        provision=replace(record.provision, environment=replace(record.provision.environment, **(environment or {}))),
        verify_sources=replace(record.verify_sources, sources=dict(sources or SOURCES)),
        rounds=[replace(measured, cuda_ms=cuda_ms, wall_ms=cuda_ms + 0.1) for measured in record.rounds],
        summary=replace(
            record.summary,
            adjusted_mj_median=median,
            gross_mj_median=None if median is None else median + 2400,
            cuda_ms_median=cuda_ms,
            wall_ms_median=cuda_ms + 0.1,
        ),
    )


def stored_night(connection: Connection, name: str) -> Row[Any]:
    return find_run(connection, DAG, name)


def judged(database: Database, record: RunRecord, findings: Findings) -> dict[str, Finding]:
    """Store a run, and the last step of what a check finds on it, by the name of the check."""
    store(database, record)
    with database.reader.connect() as connection:
        found = findings(connection, stored_night(connection, record.request.dag_run_id))
    return {one.verdict.check: one for one in found}
