"""Import record files: all of them are checked before the first one is stored, each is stored in one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine

from gpu_tasks.records import BadInput, RunRecord
from regression.results import spool
from regression.results.loading import (
    LoadResult,
    LoadStatus,
    lock_run,
    parse_run_record,
    read_run_record,
    refusals,
    store_run,
)
from regression.results.record_checks import check_run


@dataclass(frozen=True)
class Candidate:
    """A run record that may be imported: what to call it, its words and what they say."""

    source: str
    content: bytes
    record: RunRecord


@dataclass(frozen=True)
class Imported:
    """What became of one file."""

    source: str
    record: RunRecord
    result: LoadResult


def candidate(content: bytes, source: str) -> Candidate:
    """The run record in ``content``; raises ``BadInput`` naming ``source`` and field."""
    record = parse_run_record(content, source)
    check_run(record, source)
    return Candidate(source, content, record)


def import_records(engine: Engine, records: Path, candidates: Sequence[Candidate]) -> Iterator[Imported]:
    """Store the candidates in order, each with its file in ``records``; yields what became of each.

    A run whose kept record says the same in other words is left as it is. Raises ``BadInput`` naming the file before
    anything is stored when one of them would be refused, and ``InfrastructureFailure`` when the database is away.
    """
    _check_distinct(candidates)
    fresh = [one for one in candidates if not _is_kept(records, one.record)]
    _rehearse(engine, fresh)
    for one in candidates:
        run_id = one.record.request.run_id
        if one in fresh:
            yield Imported(one.source, one.record, spool.load_text(engine, records, one.content.decode(), run_id))
        else:
            yield Imported(one.source, one.record, LoadResult(run_id, LoadStatus.UNCHANGED))


def _check_distinct(candidates: Sequence[Candidate]) -> None:
    seen: dict[str, Candidate] = {}
    for one in candidates:
        first = seen.setdefault(one.record.request.run_id, one)
        if first.record != one.record:
            message = f"{one.source}: $.request.run_id: expected another run than in {first.source}, found the same"
            raise BadInput("same_run_twice", message)


def _is_kept(records: Path, record: RunRecord) -> bool:
    """Whether the database got this very record, if perhaps in other words: its file is kept."""
    with suppress(BadInput):
        return read_run_record(spool.kept(records, record.request.run_id))[0] == record
    return False


def _rehearse(engine: Engine, candidates: Sequence[Candidate]) -> None:
    """Store all of them and take it back: whatever the database has against one is said while nothing is stored."""
    for one in candidates:  # in one transaction each, as they will be stored
        sha256 = hashlib.sha256(one.content).hexdigest()
        try:
            with refusals(one.record), engine.connect() as connection, connection.begin() as transaction:
                lock_run(connection, one.record.request.run_id)
                store_run(connection, one.record, sha256)
                transaction.rollback()
        except BadInput as error:
            raise BadInput(error.code, f"{one.source}: {error.message}") from error
