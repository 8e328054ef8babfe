"""What people say of an alert: they have seen it, do not want to hear of it for a while, or are done with it."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Row, select

from gpu_tasks.records import BadInput
from regression.alerts import texts
from regression.alerts.raising import UNACKNOWLEDGED, add_event, change, end_mutes
from regression.results import tables
from regression.results.alert_files import keep_alerts, lock
from regression.results.decisions import check_words

LONGEST_MUTE = timedelta(days=366)
HIGHEST_NUMBER = 2**31 - 1


def acknowledge(
    engine: Engine, alert_id: int, *, author: str, reason: str, now: datetime, records: Path | None = None
) -> None:
    """Somebody has seen the alert and knows its cause: it is not told again until it was resolved and is back.

    Ends a mute; said again, the new reason holds. Raises ``BadInput`` for an unknown or resolved alert.
    """
    _answer(engine, alert_id, "acknowledged", _words(author, reason), now=now, records=records)


def mute(
    engine: Engine,
    alert_id: int,
    *,
    author: str,
    reason: str,
    until: datetime,
    now: datetime,
    records: Path | None = None,
) -> None:
    """Do not tell of the alert until then; what is seen after that is told again.

    Raises ``BadInput`` for an unknown or resolved alert, and for an end that is naive, has passed, or is more than a
    year away.
    """
    if until.utcoffset() is None or not now < until <= now + LONGEST_MUTE:
        raise _bad_mute(until)
    _answer(engine, alert_id, "muted", _words(author, reason), now=now, records=records, until=until)


def resolve(
    engine: Engine, alert_id: int, *, author: str, reason: str, now: datetime, records: Path | None = None
) -> None:
    """The alert is over. Seen again within two weeks, it is opened again.

    Raises ``BadInput`` for an unknown or resolved alert.
    """
    _answer(engine, alert_id, "resolved", _words(author, reason), now=now, records=records)


def _bad_mute(until: datetime) -> BadInput:
    found = until.isoformat(" ", "minutes")  # as it was given: not every time is one in UTC
    return BadInput(
        "bad_mute", f"until: expected a time with its UTC offset in the future, within a year, found {found}"
    )


def _words(author: str, reason: str) -> dict[str, str]:
    for name, given in (("author", author), ("reason", reason)):
        if not given.strip():
            raise BadInput("no_" + name, f"{name}: expected some words, found none")
        check_words(**{name: given})
    return {"acknowledged_by": author.strip(), "acknowledged_reason": reason.strip()}


def _answer(
    engine: Engine,
    alert_id: int,
    event: str,
    words: dict[str, str],
    *,
    now: datetime,
    records: Path | None,
    until: datetime | None = None,
) -> None:
    with engine.begin() as connection:
        lock(connection)
        end_mutes(connection, now)
        stored = unresolved(connection, alert_id)
        now = max(now, stored.opened_at)
        if until is not None and until <= now:  # opened by a clock that is ahead of this one
            raise _bad_mute(until)
        values: dict[str, Any] = {"state": event}
        if event == "resolved":
            values |= {"resolved_at": now, "tell_since": None} | (UNACKNOWLEDGED if stored.state == "muted" else {})
        else:
            values |= words | {"acknowledged_at": now, "muted_until": until}
        change(connection, alert_id, **values)
        end = f" (until {texts.moment(until)})" if until else ""
        told = words["acknowledged_reason"] + end
        add_event(connection, alert_id, now, event=event, words=told, author=words["acknowledged_by"])
    if records:
        keep_alerts(engine, records)


def unresolved(connection: Connection, alert_id: int) -> Row[Any]:
    """The alert; raises ``BadInput`` where there is none of that number or it is resolved."""
    found = find_alert(connection, alert_id)
    if found.state == "resolved":
        message = (
            f"alert {alert_id}: expected one that is not resolved, found it resolved {texts.moment(found.resolved_at)}"
        )
        raise BadInput("alert_resolved", message)
    return found


def find_alert(connection: Connection, alert_id: int) -> Row[Any]:
    """The alert of that number; raises ``BadInput`` where there is none."""
    alert = tables.alert
    found = None
    if 0 < alert_id <= HIGHEST_NUMBER:
        found = connection.execute(select(alert).where(alert.c.alert_id == alert_id)).one_or_none()
    if found is None:
        message = f"alert {alert_id}: expected the number of an alert (`./nightly alerts list --all`), found none"
        raise BadInput("alert_not_found", message)
    return found
