"""Judgements as files: what the checks of a run found and its verdict, so that a database can be made again from files.

``RECORDS/judgements/<run_id>.json``, written whenever a verdict is settled, complete in itself: the baseline that a
check compared with is named by its run and the moment of its acceptance, not by a key of the database.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from gpu_tasks.records import FORMAT, parse_utc, read_record, to_json, write_record
from regression.results import tables

FOLDER = "judgements"
KIND = "judgement"


@dataclass(frozen=True)
class BaselineReference:
    """A baseline by what does not change when a database is made again."""

    run_id: str
    accepted_at: str


@dataclass(frozen=True)
class Finding:
    """One row of ``check_result``."""

    check_name: str
    step: int
    verdict: str
    metric: str
    unit: str
    value: float | None
    baseline_value: float | None
    baseline_low: float | None
    baseline_high: float | None
    direction: str | None
    reason_code: str
    reason: str
    details: dict[str, Any]
    baseline: BaselineReference | None
    checked_at: str


@dataclass(frozen=True)
class Judgement:
    """What was found of the record with ``record_sha256``; verdict null: checked, and never settled."""

    kind: str  # "judgement"
    format: str
    run_id: str
    dag_id: str
    dag_run_id: str
    record_sha256: str
    verdict: str | None
    exit_code: int | None
    checks: list[Finding]


def time_text(moment: datetime) -> str:
    """A time of the database as the records write it."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def path_of(folder: Path, run_id: str) -> Path:
    """Where the judgement of a run lies."""
    return folder / FOLDER / f"{run_id}.json"


def read_judgement(path: Path) -> Judgement:
    """The judgement in a file; raises ``BadInput`` naming file and field."""
    return read_record(path, Judgement)


def keep_judgement(connection: Connection, folder: Path, run_id: str) -> None:
    """Write what the database holds of a run's judgement to its file; nothing where the file says it already.

    To be called in the transaction that settles the verdict, before it is committed: a judgement that is on file and
    was not committed is made again by the next attempt, one that was committed and is not on file could get lost.
    """
    judgement = stored_judgement(connection, run_id)
    path = path_of(folder, run_id)
    if not path.exists() or path.read_bytes() != to_json(judgement).encode():
        write_record(judgement, path)


def keep_missing(connection: Connection, folder: Path) -> int:
    """Write the judgements that have no file, as after an update from a version that wrote none; returns how many."""
    run, check = tables.run.c, tables.check_result.c
    judged = select(run.run_id).where(run.verdict.is_not(None)).union(select(check.run_id))
    present = {path.stem for path in (folder / FOLDER).glob("*.json")}
    missing = [run_id for run_id in connection.execute(judged).scalars() if run_id not in present]
    for run_id in missing:
        keep_judgement(connection, folder, run_id)
    return len(missing)


def put_aside(folder: Path, run_id: str, target: Path) -> None:
    """Move the judgement of a run, whose record gave way to another one, beside that record."""
    path = path_of(folder, run_id)
    if path.exists():
        sha12 = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        target.mkdir(exist_ok=True)
        path.rename(target / f"{run_id}-judgement-{sha12}.json")


def stored_judgement(connection: Connection, run_id: str) -> Judgement:
    """What the database holds."""
    run = tables.run.c
    names = ("run_id", "dag_id", "dag_run_id", "record_sha256", "verdict", "exit_code")
    found = connection.execute(select(*(run[name] for name in names)).where(run.run_id == run_id)).one()
    return Judgement(KIND, FORMAT, **found._mapping, checks=list(_findings(connection, run_id)))


def _findings(connection: Connection, run_id: str) -> Iterator[Finding]:
    check, baseline = tables.check_result, tables.baseline
    stored = connection.execute(
        select(check, baseline.c.run_id.label("baseline_run_id"), baseline.c.accepted_at)
        .select_from(check.outerjoin(baseline, baseline.c.baseline_id == check.c.baseline_id))
        .where(check.c.run_id == run_id)
        .order_by(check.c.check_name, check.c.step)
    )
    for row in stored:
        reference = row.baseline_id and BaselineReference(row.baseline_run_id, time_text(row.accepted_at))
        plain = [field.name for field in dataclasses.fields(Finding) if field.name not in ("baseline", "checked_at")]
        values = {name: getattr(row, name) for name in plain}
        yield Finding(**values, baseline=reference, checked_at=time_text(row.checked_at))


def store_judgement(connection: Connection, judgement: Judgement) -> list[BaselineReference]:
    """Put a judgement back into a database that has the run, and none of its checks.

    Returns the baselines that it names and that are not there: those checks are stored without one.
    """
    run, missing = tables.run, []
    for finding in judgement.checks:
        values = {field.name: getattr(finding, field.name) for field in dataclasses.fields(Finding)}
        reference = values.pop("baseline")
        baseline_id = _baseline_id(connection, reference) if reference else None
        missing += [reference] if reference and baseline_id is None else []
        values |= {"checked_at": parse_utc(finding.checked_at), "baseline_id": baseline_id}
        connection.execute(tables.check_result.insert().values(run_id=judgement.run_id, **values))
    connection.execute(
        run.update()
        .where(run.c.run_id == judgement.run_id)
        .values(verdict=judgement.verdict, exit_code=judgement.exit_code)
    )
    return missing


def _baseline_id(connection: Connection, reference: BaselineReference) -> int | None:
    baseline = tables.baseline.c
    wanted = select(baseline.baseline_id).where(
        baseline.run_id == reference.run_id, baseline.accepted_at == parse_utc(reference.accepted_at)
    )
    return connection.execute(wanted).scalar_one_or_none()
