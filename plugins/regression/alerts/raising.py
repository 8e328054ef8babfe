"""Signals become alerts: at most one that is not resolved a workload, device, metric and direction.

A repeat updates the alert and is told to nobody. What was resolved and is seen again within ``REOPEN_DAYS`` is opened
again, later it is a new alert. The same run or night never counts twice, so that what somebody dismissed stays so
when a run is judged again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, Row, and_, func, select, text

from regression.alerts.signal import Signal
from regression.results import tables

OWN_NAME = "kernel-nightly"
REOPEN_DAYS = 14
SEEN = ("opened", "seen_again", "reopened")


@dataclass(frozen=True)
class Raised:
    """An alert that was opened or opened again, or whose mute is over: somebody must be told."""

    alert_id: int
    event: str


def raise_alerts(
    engine: Engine, signals: Iterable[Signal], now: datetime, *, records: Path | None = None
) -> list[Raised]:
    """Open or update an alert for each signal; returns those of which somebody must be told.

    ``now`` is aware. Alerts are put on file in ``records``. Safe to repeat, and safe to call at the same time: whoever
    comes second finds what the first one did.
    """
    with engine.begin() as connection:
        lock(connection)
        raised = [found for signal in signals if (found := _raise(connection, signal, now))]
    return raised


def lock(connection: Connection) -> None:
    """One transaction at a time changes alerts; until its end."""
    connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('alerts', 0))"))


def _raise(connection: Connection, signal: Signal, now: datetime) -> Raised | None:
    if _counted(connection, signal):
        return None
    alert = tables.alert.c
    unresolved = connection.execute(
        select(tables.alert).where(_key(signal), alert.state != "resolved").with_for_update()
    ).one_or_none()
    if unresolved:
        _update(connection, unresolved, signal, now)
        add_event(connection, unresolved.alert_id, "seen_again", signal.headline, now, signal)
        return None
    recent = connection.execute(
        select(tables.alert)
        .where(_key(signal), alert.resolved_at >= now - timedelta(days=REOPEN_DAYS))
        .order_by(alert.resolved_at.desc())
        .limit(1)
    ).one_or_none()
    if recent:
        _update(connection, recent, signal, now, state="open", resolved_at=None, muted_until=None, **UNACKNOWLEDGED)
        event, alert_id = "reopened", recent.alert_id
    else:
        event, alert_id = "opened", _open(connection, signal, now)
    add_event(connection, alert_id, event, signal.headline, now, signal)
    return Raised(alert_id, event)


UNACKNOWLEDGED: dict[str, Any] = dict.fromkeys(("acknowledged_by", "acknowledged_at", "acknowledged_reason"))


def _key(signal: Signal) -> ColumnElement[bool]:
    alert = tables.alert.c
    return and_(
        alert.workload == signal.workload,
        func.coalesce(alert.device_id, 0) == (signal.device_id or 0),
        alert.metric == signal.metric,
        alert.direction == signal.direction,
    )


def _counted(connection: Connection, signal: Signal) -> bool:
    """Whether the run was seen before by an alert of this key, resolved or not."""
    event = tables.alert_event.c
    same = event.run_id == signal.run_id if signal.run_id else event.text == signal.headline
    statement = (
        select(event.alert_id)
        .select_from(tables.alert_event.join(tables.alert))
        .where(_key(signal), event.event.in_(SEEN), same)
    )
    return connection.execute(statement.limit(1)).first() is not None


def _open(connection: Connection, signal: Signal, now: datetime) -> int:
    values = _figures(signal) | {
        "workload": signal.workload,
        "device_id": signal.device_id,
        "metric": signal.metric,
        "direction": signal.direction,
        "state": "open",
        "first_run_id": signal.run_id,
        "occurrences": 1,
        "opened_at": now,
        "last_seen_at": now,
    }
    added = tables.alert.insert().values(values).returning(tables.alert.c.alert_id)
    return int(connection.execute(added).scalar_one())


def _update(connection: Connection, stored: Row[Any], signal: Signal, now: datetime, **state: Any) -> None:
    values = _figures(signal) | {"occurrences": stored.occurrences + 1, "last_seen_at": max(now, stored.last_seen_at)}
    if signal.run_id is None:
        del values["last_run_id"]
    connection.execute(tables.alert.update().where(tables.alert.c.alert_id == stored.alert_id).values(values | state))


def _figures(signal: Signal) -> dict[str, Any]:
    names = ("outcome", "value", "baseline_value", "unit", "baseline_id")
    return {name: getattr(signal, name) for name in names} | {"last_run_id": signal.run_id, "text": signal.headline}


def add_event(
    connection: Connection,
    alert_id: int,
    event: str,
    words: str,
    now: datetime,
    signal: Signal | None = None,
    author: str = OWN_NAME,
) -> None:
    """Write down what happened to an alert."""
    values = {"alert_id": alert_id, "at": now, "event": event, "author": author, "text": words}
    connection.execute(tables.alert_event.insert().values(**values, run_id=signal and signal.run_id))
