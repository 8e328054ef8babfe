"""Signals become alerts: at most one that is not resolved a workload, device, metric and direction.

A repeat updates the alert and is told to nobody. What was resolved and is seen again within ``REOPEN_DAYS`` is opened
again, later it is a new alert. A mute ends by itself, and what is seen after it is told again. The same run or night
never counts twice, so that what somebody dismissed stays so when a run is judged again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, Row, and_, func, or_, select

from regression.alerts import texts
from regression.alerts.signal import Signal
from regression.results import tables
from regression.results.alert_files import keep_alerts, lock

OWN_NAME = "kernel-nightly"
REOPEN_DAYS = 14
SEEN = ("opened", "seen_again", "reopened")
UNACKNOWLEDGED: dict[str, Any] = dict.fromkeys(
    ("acknowledged_by", "acknowledged_at", "acknowledged_reason", "muted_until")
)


@dataclass(frozen=True)
class Raised:
    """An alert of which somebody must be told: ``event`` is opened, reopened, or seen_again (after its mute)."""

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
        end_mutes(connection, now)
        raised = [found for signal in signals if (found := _raise(connection, signal, now))]
    if records:
        keep_alerts(engine, records)
    return raised


def end_mutes(connection: Connection, now: datetime) -> None:
    """Alerts whose mute is over are open again; they are told when they are seen the next time."""
    alert = tables.alert
    over = (alert.c.state == "muted") & (alert.c.muted_until <= now)
    for row in connection.execute(select(alert.c.alert_id, alert.c.muted_until).where(over)).all():
        change(connection, row.alert_id, state="open", tell_since=None, **UNACKNOWLEDGED)
        words = f"muted until {texts.moment(row.muted_until)}"
        add_event(connection, row.alert_id, now, event="mute_ended", words=words)


def change(connection: Connection, alert_id: int, **values: Any) -> None:
    """Change columns of an alert."""
    connection.execute(tables.alert.update().where(tables.alert.c.alert_id == alert_id).values(**values))


def add_event(
    connection: Connection, alert_id: int, now: datetime, *, event: str, words: str, author: str = OWN_NAME, **of: Any
) -> None:
    """Write down what happened to an alert; ``of`` are run_id, night and channel."""
    values = {"alert_id": alert_id, "at": now, "event": event, "author": author, "text": words} | of
    connection.execute(tables.alert_event.insert().values(**values))


def _raise(connection: Connection, signal: Signal, now: datetime) -> Raised | None:
    if _counted(connection, signal):
        return None
    stored = _stored(connection, signal, now)
    if stored is None:
        alert_id, event = _open(connection, signal, now), "opened"
    else:
        alert_id, event = stored.alert_id, "reopened" if stored.state == "resolved" else "seen_again"
        _update(connection, stored, signal, now)
    add_event(connection, alert_id, now, event=event, words=signal.headline, run_id=signal.run_id, night=signal.night)
    return _tell(connection, alert_id, event, signal, now)


def _stored(connection: Connection, signal: Signal, now: datetime) -> Row[Any] | None:
    """The alert that is not resolved; else the one that was resolved last, if that is not long ago."""
    alert = tables.alert.c
    return connection.execute(
        select(tables.alert)
        .where(_key(signal), or_(alert.state != "resolved", alert.resolved_at >= now - timedelta(days=REOPEN_DAYS)))
        .order_by(alert.resolved_at.desc().nulls_first(), alert.alert_id.desc())
        .limit(1)
    ).one_or_none()


def _tell(connection: Connection, alert_id: int, event: str, signal: Signal, now: datetime) -> Raised | None:
    """Write the words that are to be told; None when there is nothing new to tell."""
    stored = connection.execute(select(tables.alert).where(tables.alert.c.alert_id == alert_id)).one()
    if event == "seen_again" and (stored.state != "open" or stored.tell_since is not None):
        return None
    message = texts.message(signal, event, alert_id, stored.opened_at, stored.occurrences)
    change(
        connection,
        alert_id,
        text=texts.subject(signal, event),
        message=message.body,
        tell_since=max(now, stored.opened_at),
    )
    return Raised(alert_id, event)


def _key(signal: Signal) -> ColumnElement[bool]:
    alert = tables.alert.c
    return and_(
        alert.workload == signal.workload,
        func.coalesce(alert.device_id, 0) == (signal.device_id or 0),
        alert.metric == signal.metric,
        alert.direction == signal.direction,
    )


def _counted(connection: Connection, signal: Signal) -> bool:
    """Whether an alert of this key, resolved or not, has seen this run or night before."""
    event = tables.alert_event.c
    same = event.run_id == signal.run_id if signal.run_id else event.night == signal.night
    seen = tables.alert_event.join(tables.alert)
    statement = select(event.alert_id).select_from(seen).where(_key(signal), event.event.in_(SEEN), same)
    return connection.execute(statement.limit(1)).first() is not None


def _open(connection: Connection, signal: Signal, now: datetime) -> int:
    values = _figures(signal) | {
        "workload": signal.workload,
        "device_id": signal.device_id,
        "metric": signal.metric,
        "direction": signal.direction,
        "state": "open",
        "first_run_id": signal.run_id,
        "last_run_id": signal.run_id,
        "occurrences": 1,
        "text": signal.headline,
        "opened_at": now,
        "last_seen_at": now,
    }
    added = tables.alert.insert().values(values).returning(tables.alert.c.alert_id)
    return int(connection.execute(added).scalar_one())


def _update(connection: Connection, stored: Row[Any], signal: Signal, now: datetime) -> None:
    values = {"occurrences": stored.occurrences + 1, "last_seen_at": max(now, stored.last_seen_at)}
    if not _is_older(connection, signal.run_id, stored.last_run_id):
        values |= _figures(signal) | ({"last_run_id": signal.run_id} if signal.run_id else {})
    if stored.state == "resolved":
        values |= {"state": "open", "resolved_at": None} | UNACKNOWLEDGED
    change(connection, stored.alert_id, **values)


def _is_older(connection: Connection, run_id: str | None, last_run_id: str | None) -> bool:
    """Whether a run that is judged late is older than the latest that the alert has seen."""
    if run_id is None or last_run_id is None:
        return False
    run = tables.run.c
    wanted = select(run.run_id, run.started_at).where(run.run_id.in_((run_id, last_run_id)))
    begun: dict[str, datetime] = {row.run_id: row.started_at for row in connection.execute(wanted)}
    return begun[run_id] < begun[last_run_id]


def _figures(signal: Signal) -> dict[str, Any]:
    names = ("outcome", "value", "baseline_value", "unit", "baseline_id")
    return {name: getattr(signal, name) for name in names}
