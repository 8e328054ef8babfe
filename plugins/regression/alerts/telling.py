"""All that alerts need after a night: raise, resolve, deliver. What the tasks, the notifier and commands call."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import Engine

from gpu_tasks.records import run_id_for
from regression.alerts import texts
from regression.alerts.channels import Channel, DeliveryFailed
from regression.alerts.delivering import DOCUMENT, Delivery, deliver
from regression.alerts.of_run import signals_of
from regression.alerts.raising import Raised, raise_alerts
from regression.alerts.reading import judged_run
from regression.alerts.resolving import resolve_quiet
from regression.alerts.signal import Signal

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """What a channel said of a message, or why it was not taken."""

    channel: str
    taken: bool
    answer: str


def alert_of_run(
    engine: Engine,
    dag_id: str,
    dag_run_id: str,
    now: datetime,
    *,
    records: Path | None = None,
    airflow_url: str | None = None,
    otherwise: Sequence[Signal] = (),
) -> list[Raised]:
    """Raise what a judged run shows; ``otherwise`` where it shows nothing, or is not stored. Nothing of a candidate."""
    with engine.connect() as connection:
        run = judged_run(connection, run_id_for(dag_id, dag_run_id))
    if run and run.candidate:
        return []
    signals = signals_of(run, airflow_url) if run else []
    return raise_alerts(engine, signals or otherwise, now, records=records)


def look_after(
    engine: Engine, channels: Sequence[Channel], now: datetime, *, records: Path | None = None
) -> list[Delivery]:
    """Resolve what is over, end the mutes that are, and deliver what is due; returns what became of each delivery.

    To be called after alerts were raised, and now and then: nothing else ends a mute or tries a channel again.
    """
    for alert_id in resolve_quiet(engine, now, records=records):
        log.info("alert %d is over", alert_id)
    if not channels:
        log.info("no channel is set up: alerts are in the results database (./nightly alerts list) and nowhere else")
    return deliver(engine, channels, records=records)


def tell_without_database(channels: Sequence[Channel], message: texts.Message) -> list[Answer]:
    """Send a message that no alert can be made of, once; returns what each channel answered."""
    answers = []
    for channel in channels:
        try:
            found = Answer(channel.name, True, channel.send(message, {"kind": DOCUMENT}))
        except DeliveryFailed as error:
            found = Answer(channel.name, False, error.message)
        log.info("%s: %s%s", found.channel, "" if found.taken else "not delivered: ", found.answer)
        answers.append(found)
    return answers
