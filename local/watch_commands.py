"""The watchdog as a command, for a system cron: works where Airflow is dead, and starts PostgreSQL where that is."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import croniter

from gpu_tasks.records import BadInput, Outcome
from local.alert_commands import alert_environment
from local.databases import engine_of, told_by_the_database
from local.errors import Usage, told_in_one_line
from local.paths import Home
from local.record_commands import moment
from local.stack import hold
from local.workloads import asked_for, scheduled
from regression.alerts.channels import configured
from regression.alerts.raising import raise_alerts
from regression.alerts.telling import look_after
from regression.nights.schedule import DEADLINE_MINUTES, NightPlan, read_plan
from regression.nights.watchdog import Night, Watched, lost_nights, night_signal, watch
from regression.nights.workloads import DEFAULT, find

DEFAULT_SCHEDULE = "0 2 * * *"
WEEK = timedelta(days=7)


def command_watchdog(home: Home, arguments: argparse.Namespace) -> int:
    """Look, tell, and raise the alert of a night that is lost."""
    now = datetime.now(UTC)
    with told_in_one_line():
        each = _watched(home, arguments, now)
        os.environ.update(alert_environment(home))  # before Airflow is imported
        channels = configured(environment_only=True)
        with (
            hold(home, arguments.dsn, need_airflow=False) as held,
            engine_of(held.databases().writer) as engine,
            told_by_the_database(),
        ):
            with engine.connect() as connection:
                found = [(watched, watch(connection, watched, now)) for watched in each]
            signals = [signal for watched, nights in found if (signal := night_signal(watched, nights))]
            if signals:
                raise_alerts(engine, signals, now, records=home.records)
            look_after(engine, channels, now, records=home.records)
    if arguments.json:
        told = [_as_json(watched, night) for watched, nights in found for night in nights]
        print(json.dumps({"lost": sum(len(lost_nights(nights)) for _, nights in found), "nights": told}))
    else:
        lines = [_line(night, watched if len(each) > 1 else None) for watched, nights in found for night in nights]
        print("\n".join(lines) or f"no night was due yet: {each[0].plan.cron} ({each[0].plan.timezone})")
    for signal in signals:
        print(f"nightly: {f'{signal.workload}: ' if len(each) > 1 else ''}{signal.headline}", file=sys.stderr)
        for name, fact in signal.facts:
            print(f"  {name}: {fact}", file=sys.stderr)
    return (Outcome.INFRASTRUCTURE_FAILURE if signals else Outcome.OK).exit_code


def nights_in_short(home: Home, reader: str | None) -> list[str]:
    """For ``nightly status``: the latest night and those that are lost; ``reader`` None: no database runs."""
    try:
        found = read_plan(home.schedule)
        plan = found.plan() if found else None
        stopped = found.stopped() if found else None
        each = [find(name) for name in found.workloads] if found else []
    except BadInput as error:
        return [f"nights:     {error.message}"]
    if found is None or plan is None:
        return ["nights:     none are planned; `./nightly up` plans them"]
    of = f", {', '.join(found.workloads)}" if found.workloads != [DEFAULT.name] else ""
    planned = f"nights:     {found.cron} ({found.timezone}){of}"
    if stopped:
        return [f"{planned}, stopped by `./nightly down` at {stopped:%Y-%m-%d %H:%M} UTC"]
    if reader is None:
        return [f"{planned}, and nothing runs them: `./nightly up`"]
    lines = [planned]
    with told_by_the_database(), engine_of(reader) as engine, engine.connect() as connection:
        for workload in each:
            watched = Watched(workload.dag_id, workload.name, plan, home.runs, home.records)
            nights = watch(connection, watched, datetime.now(UTC))
            shown = {night.planned: night for night in (*reversed(lost_nights(nights)), *nights[-1:])}
            named = watched if len(each) > 1 else None
            lines += [f"            {_line(shown[time], named)}" for time in sorted(shown)]
    return lines


def _watched(home: Home, arguments: argparse.Namespace, now: datetime) -> list[Watched]:
    """What is to be watched, a workload each: as ``up`` was told, unless it is said here."""
    if arguments.since and not arguments.schedule:
        raise Usage("watchdog --since: expected with --schedule, found without")
    if arguments.timezone and not arguments.schedule:
        raise Usage("watchdog --timezone: expected with --schedule, found without")
    minutes = None if arguments.deadline is None else checked_deadline(str(arguments.deadline))
    stopped = None
    if arguments.schedule:
        zone = checked_zone(arguments.timezone or os.environ.get("NIGHTLY_TIMEZONE") or "UTC")
        since = moment(arguments.since) if arguments.since else now - WEEK
        default = checked_deadline(os.environ.get("NIGHTLY_DEADLINE_MINUTES"))
        workloads = scheduled()
        found = NightPlan(
            "night_plan", checked_schedule(arguments.schedule), zone, since.isoformat(), minutes or default
        )
    else:
        stored = read_plan(home.schedule)
        if stored is None:
            raise Usage("watchdog: expected nights that are planned (`./nightly up`) or --schedule CRON, found neither")
        minutes = minutes or stored.deadline_minutes
        found = NightPlan(stored.kind, stored.cron, stored.timezone, stored.since, minutes)
        stopped = stored.stopped()
        workloads = [find(name) for name in stored.workloads]
    if arguments.workload is not None:
        workloads = [asked_for(arguments)]
    plan, runs, records = found.plan(), home.runs, home.records
    return [Watched(each.dag_id, each.name, plan, runs, records, arguments.by_hand, stopped) for each in workloads]


def _line(night: Night, of: Watched | None = None) -> str:
    """``of``: where there are nights of other workloads beside it."""
    named = f"{of.workload:<8}  " if of else ""
    return f"{named}{night.planned:%Y-%m-%d %H:%M} UTC  {night.state.value:<10}  {night.reason}"


def _as_json(watched: Watched, night: Night) -> dict[str, str | Sequence[str]]:
    return {
        "workload": watched.workload,
        "planned": night.planned.isoformat(),
        "due": night.due.isoformat(),
        "state": night.state.value,
        "reason": night.reason,
        "runs": [attempt.dag_run_id for attempt in night.attempts],
    }


def checked_schedule(line: str) -> str:
    """The cron line itself; raises ``Usage`` for one that is none."""
    if len(line.split()) != 5 or not croniter.is_valid(line):
        raise Usage(f"schedule: expected a cron line of five fields such as {DEFAULT_SCHEDULE!r}, found {line!r}")
    return line


def checked_zone(name: str) -> str:
    """The time zone itself; raises ``Usage`` for one that is none."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Usage(f"NIGHTLY_TIMEZONE: expected a zone such as Europe/Berlin, found {name!r}") from None
    return name


def checked_deadline(text: str | None) -> int:
    """Minutes from the start of a night to its result; raises ``Usage`` for what is no such number."""
    if not text:
        return DEADLINE_MINUTES
    if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) <= 10_080):
        raise Usage(f"deadline: expected minutes from 1 to 10080, found {text!r:.80}")
    return int(text)
