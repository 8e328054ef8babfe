"""Alerts that end by themselves: the night after a missing one is complete, or a check was fine often enough."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Row, func, select

from regression.alerts.of_run import is_fine
from regression.alerts.raising import SEEN, add_event, change, end_mutes
from regression.alerts.reading import judged_since
from regression.alerts.signal import NIGHT
from regression.results import tables
from regression.results.alert_files import keep_alerts, lock

FINE_NIGHTS = 7


def resolve_quiet(engine: Engine, now: datetime, *, records: Path | None = None) -> list[int]:
    """Resolve the alerts that are over, and end the mutes that are; returns the numbers of the resolved.

    Over is an alert whose check was judged and fine in ``FINE_NIGHTS`` nights (dates in UTC, of any runs) since it was
    seen last. Nights that were not judged count neither way. That of a night is over with the next complete one.
    """
    with engine.begin() as connection:
        lock(connection)
        end_mutes(connection, now)
        unresolved = connection.execute(select(tables.alert).where(tables.alert.c.state != "resolved")).all()
        resolved = [row.alert_id for row in unresolved if _resolve(connection, row, now)]
    if records:
        keep_alerts(engine, records)
    return resolved


def _resolve(connection: Connection, alert: Row[Any], now: datetime) -> bool:
    seen = _seen_last(connection, alert)
    later = judged_since(connection, alert.workload, alert.device_id, seen)
    fine = sorted({run.started_at.astimezone(UTC).date() for run in later if is_fine(run, alert.metric)})
    if len(fine) < (1 if alert.metric == NIGHT else FINE_NIGHTS):
        return False
    words = f"the night of {fine[0]} is complete"
    if alert.metric != NIGHT:
        words = f"judged and fine in {len(fine)} nights, {fine[0]} to {fine[-1]}"
    change(connection, alert.alert_id, state="resolved", resolved_at=max(now, alert.opened_at), tell_since=None)
    add_event(connection, alert.alert_id, now, event="resolved", words=words)
    return True


def _seen_last(connection: Connection, alert: Row[Any]) -> datetime:
    """Beginning of the latest night that showed it, whether that had a run or not."""
    event, run = tables.alert_event, tables.run
    moment = func.max(func.coalesce(run.c.started_at, event.c.night, event.c.at))
    found = connection.execute(
        select(moment)
        .select_from(event.outerjoin(run, run.c.run_id == event.c.run_id))
        .where(event.c.alert_id == alert.alert_id, event.c.event.in_(SEEN))
    ).scalar_one()
    last: datetime = found or alert.last_seen_at
    return last
