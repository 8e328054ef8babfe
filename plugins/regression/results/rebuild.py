"""Make an empty database whole again from the kept files: records, decisions, judgements, alerts.

All of it is one transaction: the database is whole afterwards, or as empty as before. A file that cannot be used is
left out and named; everything else goes in.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, Engine, exists, func, select, text
from sqlalchemy.exc import DataError, IntegrityError

from gpu_tasks.records import BadInput
from regression.results import alert_files, decisions, judgements, spool, tables
from regression.results.baselines import FIRST_BASELINE_BY
from regression.results.loading import LoadStatus, read_run_record, refusals, store_run

T = TypeVar("T")
Progress = Callable[[str, int, int], None]
"""What is being brought back, how many of it are done, and of how many."""
log = logging.getLogger(__name__)


@dataclass
class Rebuilt:
    """What came back, and what could not: one line each in ``broken``."""

    runs: int = 0
    decisions: int = 0
    judgements: int = 0
    alerts: int = 0
    waiting: int = 0  # pending records: never loaded, and left for the next load
    broken: list[str] = field(default_factory=list)


def rebuild(engine: Engine, records: Path, progress: Progress = lambda *_: None) -> Rebuilt:
    """Load everything in ``records`` into the empty database of ``engine``.

    A database that holds nothing but the first baselines, as every new one does, counts as empty. Raises ``BadInput``
    (``database_not_empty``) for any other.
    """
    done = Rebuilt(waiting=len(spool.waiting(records)))
    with engine.begin() as connection:
        # One lock for all runs: nobody else loads while the database is made, and none of theirs need their own.
        connection.execute(text("LOCK TABLE run IN EXCLUSIVE MODE"))
        check_empty(connection)
        _bring_back_runs(connection, records, done, progress)
        _bring_back_decisions(connection, records, done, progress)
        _bring_back_judgements(connection, records, done, progress)
        _bring_back_alerts(connection, records, done, progress)
    return done


def check_empty(connection: Connection) -> None:
    """Raise ``BadInput`` unless the database holds nothing but what its set-up put there."""
    run, baseline = tables.run.c, tables.baseline.c
    shipped = exists().where(baseline.run_id == run.run_id, baseline.accepted_by == FIRST_BASELINE_BY)
    count = connection.execute(select(func.count()).select_from(tables.run).where(~shipped)).scalar_one()
    if count:
        message = f"the results database: expected an empty one, found {count} run{'s' * (count > 1)}"
        raise BadInput("database_not_empty", message)


def record_files(records: Path) -> list[Path]:
    """Kept records in the order in which they were loaded: a device's memory, for example, is stored as first seen."""
    return sorted(records.glob("*.json"), key=lambda path: (path.stat().st_mtime_ns, path.name))


def _bring_back_runs(connection: Connection, records: Path, done: Rebuilt, progress: Progress) -> None:
    paths = record_files(records)
    for number, path in _counted("runs", paths, progress):
        with _left_out(connection, done, path):
            record, sha256 = read_run_record(path)
            if record.request.run_id != path.stem:
                message = f"{path}: $.request.run_id: expected {path.stem}, found {record.request.run_id!r:.80}"
                raise BadInput("bad_run_id", message)
            with refusals(record):
                stored = store_run(connection, record, sha256)
            if stored.status is LoadStatus.REPLACED:
                log.info("%s: in the place of the record that ships now (%d)", path, number)
            done.runs += 1


def _bring_back_decisions(connection: Connection, records: Path, done: Rebuilt, progress: Progress) -> None:
    readable, broken = decisions.read_decisions(decisions.files(records))
    done.broken += [error.message for error in broken]
    for _, (decision, end) in _counted("decisions", decisions.pairs(readable), progress):
        path = records / decisions.FOLDER / decisions.name_of(decision)
        with _left_out(connection, done, path):
            decisions.store_decision(connection, decision, end)
            done.decisions += 1 if end is None else 2


def _bring_back_judgements(connection: Connection, records: Path, done: Rebuilt, progress: Progress) -> None:
    run, lost = tables.run.c, Counter[str]()
    stored = {row.run_id: row.record_sha256 for row in connection.execute(select(run.run_id, run.record_sha256))}
    for _, path in _counted("judgements", sorted((records / judgements.FOLDER).glob("*.json")), progress):
        with _left_out(connection, done, path):
            judgement = judgements.read_judgement(path)
            found = stored.get(judgement.run_id)
            if found != judgement.record_sha256:
                message = f"{path}: $.record_sha256: expected that of the kept record, {found}, found another"
                raise BadInput("judgement_of_another_record", message)
            missing = judgements.store_judgement(connection, judgement)
            lost.update(f"{baseline.run_id} of {baseline.accepted_at}" for baseline in missing)
            done.judgements += 1
    for baseline, count in lost.items():
        done.broken.append(f"the baseline {baseline}, with which {count} checks compared, is not there")


def _bring_back_alerts(connection: Connection, records: Path, done: Rebuilt, progress: Progress) -> None:
    alert_files.lock(connection)
    readable = []
    for path in alert_files.files(records):
        with _left_out(connection, done, path):
            readable.append((path, alert_files.read_alert(path)))
    # An alert whose number gave way in a rebuild before has two files, and one of them says what happened since.
    readable.sort(key=lambda found: (found[1].opened_at, -len(found[1].events)))
    alert_files.reserve_numbers(connection, (alert for _, alert in readable))
    for _, (path, alert) in _counted("alerts", readable, progress):
        with _left_out(connection, done, path):
            alert_files.store_alert(connection, alert)
            done.alerts += 1


def _counted(what: str, items: Sequence[T], progress: Progress) -> Iterator[tuple[int, T]]:
    for number, item in enumerate(items):
        progress(what, number, len(items))
        yield number, item
    progress(what, len(items), len(items))


@contextmanager
def _left_out(connection: Connection, done: Rebuilt, path: Path) -> Iterator[None]:
    """What cannot be used of one file is taken back and named; everything else stays."""
    try:
        with connection.begin_nested():
            yield
    except BadInput as error:
        name = str(path)
        done.broken.append(error.message if name in error.message else f"{name}: {error.message}")
    except (IntegrityError, DataError) as error:
        done.broken.append(f"{path}: {str(error.orig).strip().splitlines()[0]}")
