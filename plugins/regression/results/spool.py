"""Kept record files and the spool: nothing measured is ever lost, whatever the database says or however it is away.

``RECORDS/pending/<run_id>.json``
    on its way: written before anything else, renamed when its load was committed or refused.
``RECORDS/<run_id>.json``
    in the database, byte for byte what it was loaded from.
``RECORDS/refused/<run_id>-<sha12>.json``
    refused (it contradicts itself, or the run was judged on another record); back in ``pending`` it is tried again.
``RECORDS/replaced/<run_id>-<sha12>.json``
    gave way to a later record of the same run that was not judged.
``RECORDS/judgements/``, ``RECORDS/decisions/``
    what checks found and people decided: see ``judgements`` and ``decisions``.

``sha12`` is the start of the sha256 of the file. A crash between commit and rename leaves a pending record that is in
the database already: the next load changes nothing there and renames it.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine

from gpu_tasks.records import BadInput, InfrastructureFailure, RunRecord, to_json, write_text_atomically
from regression.results import judgements
from regression.results.decisions import keep_decisions
from regression.results.loading import LoadResult, load_run, read_run_record

PENDING, REFUSED, REPLACED = "pending", "refused", "replaced"
LOCK = ".lock"
log = logging.getLogger(__name__)


def keep_record(record: RunRecord, folder: Path) -> Path:
    """Write the record among the pending ones, before anything is tried with it; returns its path."""
    with _locked(folder):
        return _keep(to_json(record), record.request.run_id, folder)


def load_record(engine: Engine, folder: Path, record: RunRecord) -> LoadResult:
    """Keep the record and load it, after every older one that still waits, oldest first.

    An older record that is refused is logged and put aside: it must not keep tonight's from being stored. Raises what
    ``load_run`` raises for this record, which then lies in ``refused`` (``BadInput``) or waits (anything else).
    """
    return load_text(engine, folder, to_json(record), record.request.run_id)


def load_text(engine: Engine, folder: Path, text: str, run_id: str) -> LoadResult:
    """``load_record`` for the record of run ``run_id`` in the very words of its file."""
    with _locked(folder):
        path = _keep(text, run_id, folder)
        _load_older(engine, [older for older in waiting(folder) if older != path])
        result = _load(engine, path)
    keep_decisions(engine, folder)
    return result


def keep_loaded(folder: Path, text: str, run_id: str) -> None:
    """Keep the file of a record that is in the database already, unless there is one."""
    with _locked(folder):
        path = kept(folder, run_id)
        if not path.exists():
            write_text_atomically(text, path)


def kept(folder: Path, run_id: str) -> Path:
    """Where the record of a stored run lies."""
    return folder / f"{run_id}.json"


def waiting(folder: Path) -> list[Path]:
    """Record files that are not known to be in the database, oldest first."""
    return sorted((folder / PENDING).glob("*.json"), key=lambda path: (path.stat().st_mtime_ns, path.name))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process at a time moves files of this folder; released by the kernel, whatever ends the process."""
    (folder / PENDING).mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _keep(text: str, run_id: str, folder: Path) -> Path:
    path = folder / PENDING / f"{run_id}.json"
    if path.exists():
        if path.read_bytes() == text.encode():
            return path
        _put_aside(path, REPLACED)
    write_text_atomically(text, path)
    return path


def _load_older(engine: Engine, paths: list[Path]) -> None:
    for path in paths:
        try:
            result = _load(engine, path)
        except BadInput:
            continue  # said and put aside
        except OSError as error:  # of this file alone: the others are not behind it
            log.warning("%s: still not loaded: %s", path, error)
            continue
        except InfrastructureFailure as error:
            log.warning("%s: still not loaded: %s", path, error)
            return
        log.info("%s: loaded late (%s)", path, result.status.value)


def _load(engine: Engine, path: Path) -> LoadResult:
    try:
        record, record_sha256 = read_run_record(path)
        result = load_run(engine, record, record_sha256)
    except BadInput as error:
        log.error("%s: refused, kept as %s: %s: %s", path, _put_aside(path, REFUSED), error.code, error.message)
        raise
    target = path.parents[1] / path.name
    if target.exists() and target.read_bytes() != path.read_bytes():
        judgements.put_aside(target.parent, path.stem, target.parent / REPLACED)
        _put_aside(target, REPLACED)
    path.rename(target)
    return result


def _put_aside(path: Path, where: str) -> Path:
    """Move a record out of the way under a name that no other content can have."""
    folder = path.parent.parent if path.parent.name == PENDING else path.parent
    sha12 = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    target = folder / where / f"{path.stem}-{sha12}.json"
    target.parent.mkdir(exist_ok=True)
    path.rename(target)
    return target
