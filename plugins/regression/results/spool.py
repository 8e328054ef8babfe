"""Kept record files and the spool: nothing measured is lost while PostgreSQL is away.

``RECORDS/<run_id>.json`` is kept for ever. An empty file ``RECORDS/pending/<run_id>`` says that the record is not
in the database yet; it is made before the record is written and removed after the load was committed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Engine

from gpu_tasks.records import RunRecord, TaskError, write_record
from regression.results.loading import LoadResult, load_run, read_run_record

PENDING = "pending"
log = logging.getLogger(__name__)


def keep_record(record: RunRecord, folder: Path) -> Path:
    """Write the record among the kept ones, marked as not loaded; returns its path."""
    run_id = record.request.run_id
    marker = folder / PENDING / run_id
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()
    path = folder / f"{run_id}.json"
    write_record(record, path)
    return path


def load_kept(engine: Engine, folder: Path, run_id: str) -> LoadResult:
    """Load the kept record of ``run_id``, after every older one that still waits, oldest first.

    An older record that is refused is logged and stays marked: it must not keep tonight's from being stored.
    Raises what ``load_run`` raises for this record.
    """
    for path in waiting(folder):
        if path.stem != run_id:
            _load_older(engine, path)
    return _load(engine, folder / f"{run_id}.json")


def waiting(folder: Path) -> list[Path]:
    """Record files that are not in the database yet, oldest first."""
    return sorted(_pending(folder), key=lambda path: (path.stat().st_mtime_ns, path.name))


def _pending(folder: Path) -> Iterator[Path]:
    marked = folder / PENDING
    for marker in marked.iterdir() if marked.is_dir() else ():
        path = folder / f"{marker.name}.json"
        if path.exists():
            yield path


def _load_older(engine: Engine, path: Path) -> None:
    try:
        result = _load(engine, path)
    except TaskError as error:
        log.warning("%s: still not loaded: %s: %s", path.name, error.code, error.message)
    else:
        log.info("%s: loaded late (%s)", path.name, result.status.value)


def _load(engine: Engine, path: Path) -> LoadResult:
    record, record_sha256 = read_run_record(path)
    result = load_run(engine, record, record_sha256)
    (path.parent / PENDING / path.stem).unlink(missing_ok=True)
    return result
