"""The commands that need the scheduler's environment; each returns the exit status."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from gpu_tasks.records import Outcome
from local import airflow, alert_channels, query, runs, stack
from local.alert_commands import command_alerts
from local.backtest_command import command_backtest
from local.baseline_commands import command_baseline, command_withdraw
from local.conclusions import concluded
from local.errors import LauncherError, Usage
from local.locks import exclusive
from local.logs import show_logs
from local.paths import Home
from local.people import said
from local.processes import terminable
from local.questions import asked
from local.record_commands import command_export, command_import, command_rebuild
from local.schema import command_schema
from local.secrets import load
from local.stack import hold
from local.unfinished_runs import runs_in_short
from local.upkeep_commands import command_backup, command_restore, command_retention
from local.watch_commands import (
    DEFAULT_SCHEDULE,
    checked_deadline,
    checked_schedule,
    checked_zone,
    command_watchdog,
    nights_in_short,
)
from local.workloads import asked_for, ensure_payloads, scheduled
from regression.nights.schedule import planned_now, stopped_now
from regression.nights.turn import LOCKS, Waiting, in_turn

__all__ = [
    "command_alerts",
    "command_backtest",
    "command_backup",
    "command_baseline",
    "command_down",
    "command_export",
    "command_import",
    "command_logs",
    "command_rebuild",
    "command_restore",
    "command_retention",
    "command_run",
    "command_schema",
    "command_sql",
    "command_status",
    "command_trigger",
    "command_up",
    "command_watchdog",
    "command_withdraw",
]
NARROW = "SELECT night, verdict, agreed, adjusted_mj_median, dag_run_id FROM nightly ORDER BY started_at"
LATEST_NIGHTS = """\
SELECT started_at, workload, device, verdict, agreed, total, dag_run_id FROM nightly ORDER BY started_at DESC LIMIT 5"""


def command_run(home: Home, arguments: argparse.Namespace) -> int:
    """One night from trigger to verdict."""
    workload = asked_for(arguments)
    night = runs.NIGHTS[workload.name]
    params = runs.accept_params(home, arguments.param, arguments.device, night)
    home.create()
    with (
        exclusive(home.locks / "run", "another `nightly run`"),
        terminable(),
    ):
        ensure_payloads(home, [(workload, params.get("payload", workload.payload))])
        with hold(home, arguments.dsn, need_airflow=True) as held:
            run_id, state = runs.carry_out(held, night, params, said)
            ended = concluded(held, night, run_id, state)
    print("\n" + "\n".join(ended.lines()), file=sys.stderr)
    print(f'query:   ./nightly sql "{NARROW}"', file=sys.stderr)
    print(ended.logs(), file=sys.stderr)
    if arguments.json:
        print(json.dumps(ended.result.as_json()))
    return ended.exit_code()


def command_up(home: Home, arguments: argparse.Namespace) -> int:
    """Start everything, keep it, and say how to get in."""
    schedule = checked_schedule(arguments.schedule or os.environ.get("NIGHTLY_SCHEDULE") or DEFAULT_SCHEDULE)
    zone = checked_zone(os.environ.get("NIGHTLY_TIMEZONE") or "UTC")
    deadline = checked_deadline(os.environ.get("NIGHTLY_DEADLINE_MINUTES"))
    workloads = scheduled()
    names = [workload.name for workload in workloads]
    home.create()
    ensure_payloads(home, [(workload, workload.payload) for workload in workloads])
    with hold(home, arguments.dsn, need_airflow=True, keep=True, night=(schedule, zone, ",".join(names))) as held:
        planned_now(home.schedule, schedule, zone, deadline, datetime.now(UTC), workloads=names)
        client = held.airflow()
        for dag_id in runs.DAGS:
            runs.make_available(client, dag_id)
        password = load(home.secrets).airflow_admin
    print(f"Airflow:  {client.address}  (user {airflow.USER}, password {password})")
    print(f"night:    {schedule} ({zone}), {', '.join(names)}")
    print(f"alerts:   {alert_channels.in_words()}")
    print("stop:     ./nightly down")
    return Outcome.OK.exit_code


def command_down(home: Home, arguments: argparse.Namespace) -> int:
    """Stop the stack, unless a run is in progress."""
    running = stack.Stack(home, None)
    if not arguments.force:
        with exclusive(home.locks / "run", "a `nightly run` (end it with Ctrl-C, or use --force)"):
            state = running.state()
            unfinished = runs.unfinished(running.airflow()) if state and state.airflow_ready else []
        if unfinished:
            raise LauncherError(f"run {unfinished[0]} is in progress; wait for it, or use --force")
    stopped_now(home.schedule, datetime.now(UTC))
    print("stopped" if stack.stop(home) else "nothing was running")
    return Outcome.OK.exit_code


def command_status(home: Home, arguments: argparse.Namespace) -> int:
    """What runs, and the latest nights."""
    running = stack.Stack(home, arguments.dsn)
    state = running.state()
    if state is None:
        print(f"not running (home {home.folder})")
        print("\n".join(runs_in_short(running)))
        print("\n".join(nights_in_short(home, None)))
        return Outcome.OK.exit_code
    print(f"{state.phase} since {state.started_at} (home {home.folder}, pid {state.pid})")
    print(f"PostgreSQL: {'ready' if state.postgres_ready else 'not ready'}, port {state.postgres_port or 'of --dsn'}")
    print(f"Airflow:    {f'http://127.0.0.1:{state.api_port}' if state.airflow_ready else 'not running'}")
    print("\n".join([*runs_in_short(running), *_turn(in_turn(home.runs / LOCKS))]))
    if state.postgres_ready:
        with hold(home, arguments.dsn, need_airflow=False) as held:
            print("\n".join(nights_in_short(home, held.databases().reader)))
            return query.run(held.databases().reader, LATEST_NIGHTS, "table")
    return Outcome.OK.exit_code


def _turn(waiting: Sequence[Waiting]) -> list[str]:
    """Which run uses the GPU, and which ones wait for it."""
    if not waiting:
        return ["GPU:        free"]
    named = [f"{run.dag_run_id} of {run.dag_id} (asked for it at {run.since})" for run in waiting]
    return [f"GPU:        {named[0]}", *(f"  then      {name}" for name in named[1:])]


def command_logs(home: Home, arguments: argparse.Namespace) -> int:
    """Logs of the processes and of the tasks."""
    return show_logs(home, arguments.name, arguments.task)


def command_trigger(home: Home, arguments: argparse.Namespace) -> int:
    """Queue a run and return at once."""
    workload = asked_for(arguments)
    night = runs.NIGHTS[workload.name]
    params = runs.accept_params(home, arguments.param, arguments.device, night)
    running = stack.Stack(home, arguments.dsn).state()
    if running is None or not running.airflow_ready:
        raise Usage("trigger: expected a running stack, found none; `./nightly up` first, or use `./nightly run`")
    ensure_payloads(home, [(workload, params.get("payload", workload.payload))])
    with hold(home, arguments.dsn, need_airflow=True) as held:
        print(runs.queue(held, night, params))
    return Outcome.OK.exit_code


def command_sql(home: Home, arguments: argparse.Namespace) -> int:
    """One query, a question of the cookbook, or psql."""
    question = asked(arguments)
    if arguments.query is None and question is None and arguments.form != "table":
        raise Usage(f"sql --{arguments.form}: expected a query, found none")
    with hold(home, arguments.dsn, need_airflow=False) as held:
        reader = held.databases().reader
        if question is not None:
            return query.ask(reader, *question, arguments.form)
        if arguments.query is None:
            return query.psql(reader, [])
        return query.run(reader, arguments.query, arguments.form)
