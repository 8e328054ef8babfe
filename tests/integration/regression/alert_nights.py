"""Nights that show something, raised as the task does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gpu_tasks.records import RunRecord
from regression.alerts.of_run import signals_of
from regression.alerts.raising import Raised, raise_alerts
from regression.alerts.reading import judged_run
from regression.alerts.resolving import resolve_quiet
from regression.alerts.signal import Signal
from regression.detectors import CheckVerdict, Verdict
from regression.results import tables
from regression.results.checks import Finding, store_findings
from regression.results.columns import EXIT_CODES
from regression.results.loading import load_run
from tests.integration.regression.databases import Database
from tests.integration.regression.example_nights import asked
from tests.integration.regression.example_records import run_record, sha256_of

FIRST = datetime(2026, 12, 1, 2, tzinfo=UTC)


def moment(day: float) -> datetime:
    """Ten minutes after the night of that day of December began; days go on beyond the month."""
    return FIRST + timedelta(days=day - 1, minutes=10)


def night_record(day: int, name: str | None = None, **changes: Any) -> RunRecord:
    began = FIRST + timedelta(days=day - 1)
    times = {"started_at": began, "completed_at": began + timedelta(minutes=5)}
    words = {key: value.isoformat().replace("+00:00", "Z") for key, value in times.items()}
    return run_record(name or f"scheduled__{day:02d}", trigger="scheduled", **words, **changes)


def energy(verdict: str, **changes: Any) -> CheckVerdict:
    values: dict[str, Any] = {"metric": "adjusted_energy_per_replay", "unit": "mJ", "reason_code": "c", "reason": "r"}
    if verdict == "regressed":
        values |= {"value": 0.66, "baseline_value": 0.6, "direction": "higher"}
    return CheckVerdict("energy", Verdict(verdict), **(values | changes))


def judged_night(
    database: Database, day: int, *found: CheckVerdict, verdict: str = "regression", **changes: Any
) -> str:
    """Store a night with what its checks found; returns its run_id."""
    record = night_record(day, **changes)
    run_id = load_run(database.writer, record, sha256_of(record)).run_id
    with database.writer.begin() as connection:
        store_findings(connection, run_id, [Finding(one, None) for one in found])
        connection.execute(
            tables.run.update()
            .where(tables.run.c.run_id == run_id)
            .values(verdict=verdict, exit_code=EXIT_CODES[verdict])
        )
    return run_id


def signals(database: Database, run_id: str) -> list[Signal]:
    with database.reader.connect() as connection:
        run = judged_run(connection, run_id)
    assert run
    return signals_of(run)


def raised(database: Database, run_id: str, now: datetime, records: Path | None = None) -> list[Raised]:
    return raise_alerts(database.writer, signals(database, run_id), now, records=records)


def night(database: Database, day: int, word: str = "regressed", records: Path | None = None) -> list[str]:
    """A whole night, energy judged with ``word``; returns what is to be told: the events of the alerts."""
    run_id = judged_night(database, day, energy(word))
    told = raised(database, run_id, moment(day), records)
    resolve_quiet(database.writer, moment(day), records=records)
    return [found.event for found in told]


def missing(day: int) -> Signal:
    planned = FIRST + timedelta(days=day - 1)
    line = f"no result of the night of {planned:%Y-%m-%d}"
    return Signal("qda", "night", "missing", "infrastructure_failure", line, night=planned)


def states(database: Database) -> list[tuple[Any, ...]]:
    return asked(database, "SELECT metric, direction, state, occurrences FROM alert ORDER BY alert_id")


def events(database: Database, alert_id: int = 1) -> list[str]:
    statement = f"SELECT event FROM alert_event WHERE alert_id = {alert_id} ORDER BY alert_event_id"
    return [event for (event,) in asked(database, statement)]
