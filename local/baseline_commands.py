"""The commands about baselines: list, show, accept, retire, and the withdrawal of runs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, Row, select

from gpu_tasks.records import BadInput, Outcome
from local import baseline_texts as texts
from local.databases import engine_of, told_by_the_database
from local.errors import Usage, told_in_one_line
from local.paths import Home
from local.people import author
from local.stack import hold
from regression.results import baseline_reports as reports
from regression.results import tables
from regression.results.baselines import accept_baseline, retire_baseline
from regression.results.comparisons import Compared, compared
from regression.results.exporting import find_run
from regression.results.withdrawals import withdraw_run


def command_baseline(home: Home, arguments: argparse.Namespace) -> int:
    """One of the actions on baselines."""
    action = {"list": _list, "show": _show, "accept": _accept, "retire": _retire}[arguments.action]
    with told_in_one_line():
        action(home, arguments)
    return Outcome.OK.exit_code


def command_withdraw(home: Home, arguments: argparse.Namespace) -> int:
    """Withdraw a run, and say which baseline ended with it."""
    with told_in_one_line(), results_engine(home, arguments, "writer") as engine:
        with engine.connect() as connection:
            run_id = find_run(connection, arguments.run).run_id
            successor = find_run(connection, arguments.successor).run_id if arguments.successor else None
            ended = [row for row in _of_run(connection, run_id) if row.retired_at is None]
        withdraw_run(
            engine,
            run_id,
            scope=arguments.scope,
            withdrawn_by=author(arguments.by),
            reason=arguments.reason,
            successor_run_id=successor,
            figures=arguments.figures,
            records=home.records,
        )
        with engine.connect() as connection:
            left = {row.baseline_id for row in reports.baselines(connection)}
            ended = [row for row in ended if row.baseline_id not in left]
            print(f"withdrawn: {'all' if arguments.scope == 'all' else 'the energy'} of run {run_id}")
            for row in ended:
                print("\n".join(texts.ended(row, compared(connection), arguments.scope)))
    return Outcome.OK.exit_code


def _list(home: Home, arguments: argparse.Namespace) -> None:
    with results_engine(home, arguments, "reader") as engine, engine.connect() as connection:
        rows = reports.baselines(connection, ended=arguments.all, workload=arguments.workload)
    if arguments.json:
        print(json.dumps([row.as_json() for row in rows]))
    else:
        print("\n".join(texts.table(rows, ended=arguments.all)))


def _show(home: Home, arguments: argparse.Namespace) -> None:
    with results_engine(home, arguments, "reader") as engine, engine.connect() as connection:
        run_id = find_run(connection, arguments.run).run_id
        row = reports.baselines_of_run(connection, run_id)[-1]
        lines = texts.shown(
            row,
            draws=reports.draws_of(connection, run_id),
            rounds=reports.rounds_of(connection, run_id),
            withdrawals=reports.withdrawals_of(connection, run_id),
            history=reports.of_the_same_key(connection, row.baseline_id),
            compared=_with(compared(connection), row.baseline_id),
        )
    print("\n".join(lines))


def _accept(home: Home, arguments: argparse.Namespace) -> None:
    with results_engine(home, arguments, "writer") as engine:
        with engine.connect() as connection:
            run = _run(connection, find_run(connection, arguments.run).run_id)
        baseline_id = accept_baseline(
            engine,
            run.run_id,
            accepted_by=author(arguments.by),
            reason=arguments.reason,
            for_agreement=not arguments.no_agreement,
            for_time=not arguments.no_time,
            for_energy=for_energy(run, arguments),
            records=home.records,
        )
        lines = told_accepted(engine, run.run_id, baseline_id)
    print("\n".join(lines))


def told_accepted(engine: Engine, run_id: str, baseline_id: int) -> list[str]:
    """What an acceptance did, for whoever made it."""
    with engine.connect() as connection:
        return texts.accepted(
            reports.baseline_by_id(connection, baseline_id),
            replaced=reports.replaced_by(connection, baseline_id),
            compared=_with(compared(connection), baseline_id),
            alerts=_open_alerts(connection, _run(connection, run_id)),
        )


def for_energy(run: Row[Any], arguments: argparse.Namespace) -> bool | None:
    """What was said about the energy of the run that is accepted; None: nothing.

    Raises ``Usage`` where that cannot be: unverified energy is accepted only by its name.
    """
    if arguments.no_energy:
        return False
    because = f" because {run.energy_trust_reason}" if run.energy_trust_reason else ""
    why = f"its energy is {run.energy_trust}{because}"
    if arguments.energy_unverified:
        if run.energy_trust != "unverified":
            instead = "; say --for-energy" if run.energy_trust == "verified" else ""
            raise Usage(f"accept {run.dag_run_id} --energy-unverified: expected unverified energy, {why}{instead}")
        return True
    if arguments.for_energy and run.energy_trust != "verified":
        instead = "; say --energy-unverified to accept it by name" if run.energy_trust == "unverified" else ""
        raise Usage(f"accept {run.dag_run_id} --for-energy: {why}{instead}")
    return True if arguments.for_energy else None


def _retire(home: Home, arguments: argparse.Namespace) -> None:
    with results_engine(home, arguments, "writer") as engine:
        with engine.connect() as connection:
            run_id = find_run(connection, arguments.run).run_id
            current = [row for row in _of_run(connection, run_id) if row.retired_at is None]
        retire_baseline(engine, run_id, retired_by=author(arguments.by), reason=arguments.reason, records=home.records)
        with engine.connect() as connection:
            for row in current:
                print("\n".join(texts.ended(row, compared(connection))))


def _run(connection: Connection, run_id: str) -> Row[Any]:
    row: Row[Any] = connection.execute(select(tables.run).where(tables.run.c.run_id == run_id)).one()
    return row


def _of_run(connection: Connection, run_id: str) -> list[reports.BaselineRow]:
    """Every acceptance of a run; none where there was none."""
    try:
        return reports.baselines_of_run(connection, run_id)
    except BadInput:
        return []


def _with(found: list[Compared], baseline_id: int) -> list[Compared]:
    return [each for each in found if each.baseline_id == baseline_id]


def _open_alerts(connection: Connection, run: Row[Any]) -> dict[int, str]:
    """Alerts of this device that are not resolved, by number: their cause may be what was just accepted."""
    alert = tables.alert.c
    same = (alert.workload == run.workload, alert.device_id == run.device_id, alert.state != "resolved")
    found = connection.execute(
        select(alert.alert_id, alert.metric, alert.direction, alert.state).where(*same).order_by(alert.alert_id)
    )
    return {row.alert_id: f"{row.metric} {row.direction}, {row.state}" for row in found}


@contextmanager
def results_engine(home: Home, arguments: argparse.Namespace, role: str) -> Iterator[Engine]:
    """Engine of the results database in that role, whose failures are told in one line."""
    with (
        hold(home, arguments.dsn, need_airflow=False) as held,
        engine_of(getattr(held.databases(), role)) as engine,
        told_by_the_database(),
    ):
        yield engine
