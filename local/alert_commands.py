"""The commands about alerts."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine

from gpu_tasks.records import Outcome
from local.alert_channels import connections
from local.databases import engine_of, told_by_the_database
from local.errors import LauncherError, Usage, told_in_one_line
from local.paths import Home
from local.people import author
from local.stack import Stack, hold
from regression.alerts import answers, channels, listing, texts
from regression.alerts.telling import tell_without_database

UNRESOLVED = ("open", "acknowledged", "muted")
SPAN = re.compile(r"([0-9]{1,4})([hdw])")
SPANS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def command_alerts(home: Home, arguments: argparse.Namespace) -> int:
    """List, show, answer or test."""
    if arguments.action == "test":
        return _test(home)
    now = datetime.now(UTC)
    until = _end(arguments, now) if arguments.action == "mute" else None  # refused before anything is started
    reads = arguments.action in ("list", "show")
    with (
        told_in_one_line(),
        told_by_the_database(),
        hold(home, arguments.dsn, need_airflow=False) as held,
        engine_of(held.databases().reader if reads else held.databases().writer) as engine,
    ):
        if arguments.action == "list":
            print(_listed(engine, arguments))
        elif arguments.action == "show":
            print(_shown(engine, arguments))
        else:
            _answer(engine, home, arguments, now, until)
            print(_line(engine, arguments.number))
    return Outcome.OK.exit_code


def alerts_of(held: Stack, run_id: str) -> list[str]:
    """One line for each alert that the run opened or showed again, and that is not resolved."""
    with engine_of(held.databases().reader) as engine, engine.connect() as connection:
        stored = listing.alerts(connection, UNRESOLVED)
    return [texts.alert_line(alert) for alert in stored if alert["last_run_id"] == run_id]


def _answer(engine: Engine, home: Home, arguments: argparse.Namespace, now: datetime, until: datetime | None) -> None:
    number, said = arguments.number, {"author": author(arguments.by), "reason": arguments.reason}
    if arguments.action == "ack":
        answers.acknowledge(engine, number, **said, now=now, records=home.records)
    elif until is not None:
        answers.mute(engine, number, **said, until=until, now=now, records=home.records)
    else:
        answers.resolve(engine, number, **said, now=now, records=home.records)


def _listed(engine: Engine, arguments: argparse.Namespace) -> str:
    states = (arguments.state,) if arguments.state else () if arguments.all else UNRESOLVED
    with engine.connect() as connection:
        alerts = listing.alerts(connection, states)
    if arguments.json:
        return _json(alerts)
    return texts.alert_table(alerts) if alerts else "no alerts"


def _shown(engine: Engine, arguments: argparse.Namespace) -> str:
    with engine.connect() as connection:
        alert, events = listing.alert(connection, arguments.number)
    if arguments.json:
        return _json({**alert, "events": events})
    return texts.alert_page(alert, events)


def _line(engine: Engine, number: int) -> str:
    with engine.connect() as connection:
        alert, _ = listing.alert(connection, number)
    return texts.alert_line(alert)


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, default=_time)


def _time(value: Any) -> str:
    if not isinstance(value, datetime):
        raise TypeError(f"not to be written as JSON: {type(value).__name__}")
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _end(arguments: argparse.Namespace, now: datetime) -> datetime:
    if arguments.span:
        found = SPAN.fullmatch(arguments.span)
        if not found:
            raise Usage(f"--for: expected a span such as 12h, 7d or 2w, found {arguments.span!r:.80}")
        return now + int(found[1]) * SPANS[found[2]]
    try:
        until = datetime.fromisoformat(arguments.until)
        is_date = len(arguments.until) <= len("2026-01-01")
    except ValueError:
        until, is_date = None, False
    if until is None or (until.tzinfo is None and not is_date):
        form = "a date such as 2026-12-24 or a time with a UTC offset"
        raise Usage(f"--until: expected {form}, found {arguments.until!r:.80}")
    return until if until.tzinfo else until.replace(tzinfo=UTC)


def alert_environment(home: Home, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What Airflow's hooks need to deliver in a process of ours: the channels, and nothing of an Airflow elsewhere."""
    return connections(environment) | {"AIRFLOW_HOME": str(home.airflow), "_AIRFLOW__AS_LIBRARY": "1"}


def _test(home: Home) -> int:
    os.environ.update(alert_environment(home))  # before Airflow is imported
    found = channels.configured(environment_only=True)
    if not found:
        names = "NIGHTLY_ALERT_SMTP, NIGHTLY_ALERT_SLACK or NIGHTLY_ALERT_WEBHOOK"
        raise Usage(f"alerts test: expected a channel in {names}, found none")
    outcome = tell_without_database(found, texts.test_message(datetime.now(UTC)))
    for answer in outcome:
        print(f"{answer.channel}: {'' if answer.taken else 'not delivered: '}{answer.answer}")
    failed = [answer.channel for answer in outcome if not answer.taken]
    if failed:
        raise LauncherError(f"not every channel took the message: {', '.join(failed)}")
    return Outcome.OK.exit_code
