"""Decisions of people as files: what was accepted, retired and withdrawn, by whom and why.

``RECORDS/decisions/<time>-<kind>-<run_id>.json``, one file a decision, never changed, in the order of their names. They
are made from the rows of the database, which is asked for those that have no file yet after each decision and with
each load: one that was committed just before a crash is written then.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine, select

from gpu_tasks.records import FORMAT, BadInput, parse_utc, read_record, to_json, write_record
from regression.results import tables
from regression.results.columns import BASELINE_KEY_OF_RUN
from regression.results.judgements import time_text

FOLDER = "decisions"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BaselineAccepted:
    """A run became what others are compared with, and what for."""

    kind: str  # "baseline_accepted"
    format: str
    run_id: str
    accepted_at: str
    accepted_by: str
    reason: str
    for_agreement: bool
    for_time: bool
    for_energy: bool


@dataclass(frozen=True)
class BaselineRetired:
    """The baseline that was accepted at that time is none any more."""

    kind: str  # "baseline_retired"
    format: str
    run_id: str
    accepted_at: str
    retired_at: str
    retired_by: str | None
    retired_reason: str | None


@dataclass(frozen=True)
class Withdrawal:
    """The energy of a run, or all of it, must not be used any more."""

    kind: str  # "withdrawal"
    format: str
    run_id: str
    scope: str
    withdrawn_at: str
    withdrawn_by: str
    reason: str
    successor_run_id: str | None
    figures: str | None


Decision = BaselineAccepted | BaselineRetired | Withdrawal
KINDS: dict[str, type[Any]] = {
    "baseline_accepted": BaselineAccepted,
    "baseline_retired": BaselineRetired,
    "withdrawal": Withdrawal,
}


def check_words(**told: str | None) -> None:
    """Refuse a name, reason or other text of a decision that says nothing, or that PostgreSQL cannot hold."""
    for name, words in told.items():
        if words is not None and (not words.strip() or "\0" in words):
            raise BadInput("blank_text", f"{name}: expected some words, found {words!r:.80}")


def keep_decisions(engine: Engine, folder: Path) -> list[Path]:
    """Write every decision in the database that has no file; returns the new files, in order."""
    with engine.connect() as connection:
        decisions = list(stored_decisions(connection))
    written = []
    for decision in decisions:
        path = folder / FOLDER / name_of(decision)
        if not path.exists():
            write_record(decision, path)
            written.append(path)
        elif path.read_bytes() != to_json(decision).encode():
            log.warning("%s: expected the decision in the results database, found other words; left as it is", path)
    return sorted(written)


def read_decisions(paths: Iterable[Path]) -> tuple[list[Decision], list[BadInput]]:
    """The decisions in files, in order of their names, and why others cannot be read."""
    decisions, broken = [], []
    for path in sorted(paths, key=lambda path: path.name):
        try:
            decisions.append(read_decision(path))
        except BadInput as error:
            broken.append(error)
    return decisions, broken


def read_decision(path: Path) -> Decision:
    """The decision in a file; raises ``BadInput`` naming file and field."""
    kind = read_record(path, dict[str, Any]).get("kind")
    if kind not in KINDS:
        raise BadInput("bad_record", f"{path}: $.kind: expected one of {', '.join(KINDS)}, found {kind!r:.80}")
    decision: Decision = read_record(path, KINDS[kind])
    for name in ("accepted_at", "retired_at", "withdrawn_at"):
        try:
            parse_utc(getattr(decision, name, "2026-01-01T00:00:00Z"))
        except BadInput as error:
            raise BadInput(error.code, f"{path}: $.{name}: {error.message}") from None
    for name in ("run_id", "successor_run_id"):
        found = getattr(decision, name, None)
        if found is not None and not _is_uuid(found):
            raise BadInput("bad_record", f"{path}: $.{name}: expected a UUID, found {found!r:.80}")
    return decision


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def files(folder: Path) -> list[Path]:
    """All decision files."""
    return sorted((folder / FOLDER).glob("*.json"))


def stored_decisions(connection: Connection) -> Iterator[Decision]:
    """Every decision in the database."""
    baseline, withdrawal = tables.baseline, tables.withdrawal
    for row in connection.execute(select(baseline).order_by(baseline.c.baseline_id)):
        accepted_at = time_text(row.accepted_at)
        yield BaselineAccepted(
            *("baseline_accepted", FORMAT, row.run_id, accepted_at, row.accepted_by, row.reason),
            *(row.for_agreement, row.for_time, row.for_energy),
        )
        if row.retired_at is not None:
            yield BaselineRetired(
                *("baseline_retired", FORMAT, row.run_id, accepted_at, time_text(row.retired_at)),
                *(row.retired_by, row.retired_reason),
            )
    for row in connection.execute(select(withdrawal).order_by(withdrawal.c.run_id, withdrawal.c.scope)):
        yield Withdrawal(
            *("withdrawal", FORMAT, row.run_id, row.scope, time_text(row.withdrawn_at), row.withdrawn_by),
            *(row.reason, row.successor_run_id, row.figures),
        )


def pairs(decisions: Sequence[Decision]) -> list[tuple[Decision, BaselineRetired | None]]:
    """Each decision, an acceptance with its end where it has one; an end without its acceptance stands alone.

    A baseline goes back with its end at once, so that no two are current at the same time in between.
    """
    ends = {(d.run_id, d.accepted_at): d for d in decisions if isinstance(d, BaselineRetired)}
    found: list[tuple[Decision, BaselineRetired | None]] = []
    for decision in decisions:
        if isinstance(decision, BaselineAccepted):
            found.append((decision, ends.pop((decision.run_id, decision.accepted_at), None)))
        elif isinstance(decision, Withdrawal):
            found.append((decision, None))
    return [*found, *((end, None) for end in ends.values())]


def store_decision(connection: Connection, decision: Decision, end: BaselineRetired | None) -> None:
    """Put a decision back into a database that has its run; does nothing where it is there already.

    Raises ``BadInput`` (``decision_without_run``) where the run or the baseline that it names is not there.
    """
    stored = False
    if isinstance(decision, BaselineAccepted):
        stored = _store_baseline(connection, decision, end)
    elif isinstance(decision, Withdrawal):
        stored = _store_withdrawal(connection, decision)
    if not stored:
        wanted = "its acceptance" if isinstance(decision, BaselineRetired) else "the run"
        message = f"{name_of(decision)}: $.run_id: expected {wanted} to be there, found nothing of {decision.run_id}"
        raise BadInput("decision_without_run", message)


def _store_baseline(connection: Connection, decision: BaselineAccepted, end: BaselineRetired | None) -> bool:
    run, environment, baseline = tables.run, tables.environment, tables.baseline
    key = connection.execute(
        select(*(run.c[name] for name in BASELINE_KEY_OF_RUN), environment.c.environment_class)
        .select_from(run.join(environment))
        .where(run.c.run_id == decision.run_id)
    ).one_or_none()
    if key is None:
        return False
    accepted_at = parse_utc(decision.accepted_at)
    same = (baseline.c.run_id == decision.run_id, baseline.c.accepted_at == accepted_at)
    if connection.execute(select(baseline.c.baseline_id).where(*same)).first() is None:
        ended = {"retired_at": parse_utc(end.retired_at), "retired_by": end.retired_by} if end else {}
        ended |= {"retired_reason": end.retired_reason} if end else {}
        names = ("run_id", "accepted_by", "reason", "for_agreement", "for_time", "for_energy")
        values = {name: getattr(decision, name) for name in names}
        connection.execute(baseline.insert().values(**key._mapping, **values, accepted_at=accepted_at, **ended))
    return True


def _store_withdrawal(connection: Connection, decision: Withdrawal) -> bool:
    run, withdrawal = tables.run, tables.withdrawal
    needed = {decision.run_id, *([decision.successor_run_id] if decision.successor_run_id else [])}
    present = set(connection.execute(select(run.c.run_id).where(run.c.run_id.in_(needed))).scalars())
    if present != needed:
        return False
    same = (withdrawal.c.run_id == decision.run_id, withdrawal.c.scope == decision.scope)
    if connection.execute(select(withdrawal.c.run_id).where(*same)).first() is None:
        names = ("run_id", "scope", "withdrawn_by", "reason", "successor_run_id", "figures")
        values = {name: getattr(decision, name) for name in names}
        values["withdrawn_at"] = parse_utc(decision.withdrawn_at)
        connection.execute(withdrawal.insert().values(**values))
    return True


def name_of(decision: Decision) -> str:
    """File name of a decision."""
    at = {BaselineAccepted: "accepted_at", BaselineRetired: "retired_at", Withdrawal: "withdrawn_at"}[type(decision)]
    moment: datetime = parse_utc(getattr(decision, at))
    stamp = moment.astimezone(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    scope = f"-{decision.scope}" if isinstance(decision, Withdrawal) else ""
    return f"{stamp}-{decision.kind.replace('_', '-')}-{decision.run_id}{scope}.json"
