"""Runs before the one under judgement, of the same device and payload: what a task left, and what it took, there."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, exists, select, tuple_

from regression.results import tables
from regression.results.good_runs import was_good
from regression.results.history import run_by_id

LOOK_BACK = 60
"""Runs that are gone through for one that was made alike: two months of nights."""
WITHDRAWN = "all"


def earlier_runs(connection: Connection, run: Row[Any], with_what: ColumnElement[bool]) -> list[Row[Any]]:
    """The latest first, as ``history.find_run`` gives them; ``with_what`` is what they must have.

    Each was good by itself (``good_runs``). Neither candidates nor what was withdrawn, and no injected faults unless
    the run under judgement has one itself.
    """
    stored, withdrawal = tables.run.c, tables.withdrawal.c
    withdrawn = exists().where(withdrawal.run_id == stored.run_id, withdrawal.scope == WITHDRAWN)
    wanted = [
        stored.workload == run.workload,
        stored.device_id == run.device_id,
        stored.payload_id == run.payload_id,
        tuple_(stored.started_at, stored.run_id) < tuple_(run.started_at, run.run_id),
        ~stored.candidate,
        ~withdrawn,
        was_good(),
        with_what,
    ]
    if not run.inject:
        wanted.append(stored.inject.is_(None))
    order = (stored.started_at.desc(), stored.run_id.desc())
    found = connection.execute(select(stored.run_id).where(and_(*wanted)).order_by(*order).limit(LOOK_BACK))
    return [run_by_id(connection, run_id) for run_id in found.scalars()]


def settings_of(connection: Connection, run_id: str) -> dict[str, str | None]:
    """Settings of the library that a run computed with, by name."""
    setting = tables.run_setting.c
    stored = connection.execute(select(setting.name, setting.value).where(setting.run_id == run_id))
    return {row.name: row.value for row in stored}


def workload_sources(connection: Connection, run: Row[Any]) -> dict[str, str]:
    """The files that the workload of a run is made of, with their sha256; none where they were not verified.

    The rest of the programs is the same for all workloads, and no reason for other results: it is named beside them.
    """
    source = tables.source_state.c
    sources = connection.execute(
        select(source.sources).where(source.source_state_id == run.source_state_id)
    ).scalar_one_or_none()
    folder = f"gpu_tasks/workloads/{run.workload}/"
    return {path: sha256 for path, sha256 in (sources or {}).items() if path.startswith(folder)}
