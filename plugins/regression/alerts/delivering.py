"""Open alerts are told on every channel, once each; what is not taken is tried again, later and later.

Every attempt is an event of the alert. A message that was taken just before a crash may be sent twice, none is lost.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, select, text
from sqlalchemy.exc import OperationalError

from regression.alerts.channels import Channel, DeliveryFailed
from regression.alerts.raising import add_event
from regression.alerts.texts import Message
from regression.results import tables
from regression.results.alert_files import keep_alerts, lock
from regression.results.judgements import time_text

PAUSES_S = (2.0, 8.0)
"""Before the second and the third attempt of one delivery."""
FIRST_WAIT, LONGEST_WAIT = timedelta(hours=1), timedelta(hours=12)
"""Between deliveries that failed; doubled each time. The next night is farther away than the longest of them."""
WAIT_FOR_OTHERS = "60s"
DOCUMENT = "kernel-nightly-alert"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Delivery:
    """What became of one alert on one channel: ``answer`` is what the other side said, or why it was not taken."""

    alert_id: int
    channel: str
    taken: bool
    answer: str


def utc_clock() -> datetime:
    """The time now, aware."""
    return datetime.now(UTC)


def deliver(
    engine: Engine,
    channels: Sequence[Channel],
    *,
    records: Path | None = None,
    clock: Callable[[], datetime] = utc_clock,
    pause: Callable[[float], None] = time.sleep,
) -> list[Delivery]:
    """Tell every open alert that a channel was not told of yet, the oldest first; returns what became of each.

    Raises nothing for a channel that fails: the failure is an event, and is logged. One delivery at a time; a second
    one waits a minute and leaves the rest to the first.
    """
    done: list[Delivery] = []
    with engine.begin() as turn:
        if not _is_our_turn(turn):
            log.warning("alerts are being delivered by somebody else")
            return done
        for channel in channels:
            for alert in _due(engine, channel.name, clock()):
                done.append(_deliver(engine, channel, alert, clock, pause))
                if not done[-1].taken:
                    break  # the others would wait as long for nothing; they are due the next time
    if done and records:
        keep_alerts(engine, records)
    return done


def next_try(failures: Sequence[datetime]) -> datetime | None:
    """When an alert may be tried again after attempts that failed at those times; None: at once."""
    if not failures:
        return None
    rounds = -(-len(failures) // (len(PAUSES_S) + 1))
    wait: timedelta = FIRST_WAIT * 2 ** min(rounds - 1, 10)
    return max(failures) + min(wait, LONGEST_WAIT)


def _is_our_turn(connection: Connection) -> bool:
    connection.execute(text(f"SET LOCAL lock_timeout = '{WAIT_FOR_OTHERS}'"))
    try:
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('alert deliveries', 0))"))
    except OperationalError:
        return False
    return True


def _due(engine: Engine, channel: str, now: datetime) -> list[Any]:
    alert, device, run, event = tables.alert, tables.device, tables.run, tables.alert_event
    with engine.connect() as connection:
        told = connection.execute(
            select(alert, device.c.name.label("device"), run.c.dag_id, run.c.dag_run_id)
            .select_from(alert.outerjoin(device).outerjoin(run, run.c.run_id == alert.c.last_run_id))
            .where(alert.c.state == "open", alert.c.tell_since.is_not(None))
            .order_by(alert.c.tell_since, alert.c.alert_id)
        ).all()
        attempts = connection.execute(
            select(event.c.alert_id, event.c.event, event.c.at).where(
                event.c.alert_id.in_([row.alert_id for row in told]), event.c.channel == channel
            )
        ).all()
    return [row for row in told if _is_due(row, [a for a in attempts if a.alert_id == row.alert_id], now)]


def _is_due(alert: Any, attempts: Sequence[Any], now: datetime) -> bool:
    since = [attempt for attempt in attempts if attempt.at >= alert.tell_since]
    if any(attempt.event == "notified" for attempt in since):
        return False
    again = next_try([attempt.at for attempt in since])
    return again is None or again <= now


def _deliver(
    engine: Engine,
    channel: Channel,
    alert: Any,
    clock: Callable[[], datetime],
    pause: Callable[[float], None],
) -> Delivery:
    message = Message(f"[nightly] {alert.text}", alert.message or f"{alert.text}\n")
    attempts = len(PAUSES_S) + 1
    for number in range(1, attempts + 1):
        if number > 1:
            pause(PAUSES_S[number - 2])
        try:
            answer = channel.send(message, document_of(alert))
        except DeliveryFailed as error:
            answer = f"attempt {number} of {attempts}: {error.message}"
            log.warning("alert %d on %s: %s", alert.alert_id, channel.name, answer)
            _note(engine, alert.alert_id, clock(), event="notification_failed", words=answer, channel=channel.name)
            continue
        log.info("alert %d told on %s: %s", alert.alert_id, channel.name, answer)
        _note(engine, alert.alert_id, clock(), event="notified", words=answer, channel=channel.name)
        return Delivery(alert.alert_id, channel.name, True, answer)
    return Delivery(alert.alert_id, channel.name, False, answer)


def _note(engine: Engine, alert_id: int, now: datetime, *, event: str, words: str, channel: str) -> None:
    with engine.begin() as connection:
        lock(connection)
        add_event(connection, alert_id, now, event=event, words=words, channel=channel)


def document_of(alert: Any) -> Mapping[str, Any]:
    """The alert for programs."""
    what = ("alert_id", "workload", "device", "metric", "direction", "outcome", "occurrences")
    names = (*what, "value", "baseline_value", "unit", "dag_id", "dag_run_id")
    times = {name: time_text(getattr(alert, name)) for name in ("opened_at", "last_seen_at")}
    return {"kind": DOCUMENT, **{name: getattr(alert, name) for name in names}, "run_id": alert.last_run_id, **times}
