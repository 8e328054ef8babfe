"""How long all checks of one night take against ten years of history.

``PYTHONPATH=.:plugins python -m tests.benchmarks.checks [--nights 3650 --devices 1 --seed S]``

Generated nights (``history_rows``) with one driver and one baseline for the whole of them, so that every history is as
long as it can be; the check operators judge and store newest nights, each in a connection of its own, as Airflow has
them do. Needs an interpreter with Airflow; PostgreSQL is a throwaway one.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from unittest import mock

from airflow.sdk.exceptions import AirflowFailException
from sqlalchemy import Engine, text

from local.postgres import Cluster
from regression.operators import (
    AgreementRegressionOperator,
    EnergyDriftOperator,
    EnvironmentChangeOperator,
    TimeDriftOperator,
    checks,
)
from regression.results.roles import WRITER
from tests.benchmarks import history_judgements, history_story
from tests.benchmarks.history import Clock, _empty_database, _engine, _say, _server
from tests.benchmarks.history_report import Times
from tests.benchmarks.history_rows import generate, settle

OPERATORS = (AgreementRegressionOperator, EnergyDriftOperator, TimeDriftOperator, EnvironmentChangeOperator)
Taken = tuple[float, float]
"""Milliseconds by the wall, and of the CPUs of this process and of PostgreSQL's."""
JUDGED = 40
"""Newest nights that are judged, one after the other; the first one does not count: it imports scipy."""


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nights", type=int, default=3650)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--seed", type=int, default=20261130)
    arguments = parser.parse_args()
    with _server() as cluster, one_long_history(arguments.nights):
        writer = _history(cluster, arguments.devices, arguments.nights, arguments.seed)
        names = _newest(writer)
        with mock.patch.object(checks, "results_engine", lambda conn_id: writer):
            clock = Clock(_session(writer))
            taken = [_judge(name, clock) for name in names][1:]
        nights = _nights_of_history(writer, names[-1])
        writer.dispose()
    print(f"{arguments.devices} x {arguments.nights} nights, {nights} of them in the history of the newest one, ms:\n")
    print("| operator | median | slowest | of CPUs |\n|---|---:|---:|---:|")
    for operator in OPERATORS:
        print(_row(operator.__name__, [one[operator.__name__] for one in taken]))
    print(_row("all of a night", [_sum(one.values()) for one in taken]))
    return 0


@contextmanager
def one_long_history(nights: int) -> Iterator[None]:
    """No change of driver and no second baseline."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(history_story, "DRIVER_NIGHTS", nights + 1_000))
        stack.enter_context(mock.patch.object(history_judgements, "ACCEPTED_AGAIN", timedelta(days=nights + 1)))
        yield


def _history(cluster: Cluster, devices: int, nights: int, seed: int) -> Engine:
    admin = _empty_database(cluster, "checks")
    writer = _engine(cluster, "checks", WRITER)
    generate(writer, devices, nights, seed, _say)
    settle(admin)
    return writer


def _newest(writer: Engine) -> list[str]:
    """Scheduled runs of the first board, in order of time."""
    wanted = text(
        "SELECT dag_run_id FROM run WHERE trigger = 'scheduled' AND rounds_valid > 0 "
        "AND device_id = (SELECT min(device_id) FROM device) ORDER BY started_at DESC LIMIT :count"
    )
    with writer.connect() as connection:
        return list(connection.execute(wanted, {"count": JUDGED + 1}).scalars())[::-1]


def _session(writer: Engine) -> int:
    """Process of the one session that the engine keeps."""
    with writer.connect() as connection:
        return int(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())


def _judge(name: str, clock: Clock) -> dict[str, Taken]:
    """What each operator takes; what it finds does not matter here."""
    taken = {}
    for operator in OPERATORS:
        task, times = operator(task_id="check", run_dag_id="nightly_qda", run_dag_run_id=name), Times()
        task.log.disabled = True
        clock.start()
        with suppress(AirflowFailException):
            task.execute({})
        clock.stop(times)
        taken[operator.__name__] = times.ms[0], times.cpu_ms[0]
    return taken


def _sum(parts: Iterable[Taken]) -> Taken:
    wall, cpu = zip(*parts, strict=True)
    return sum(wall), sum(cpu)


def _nights_of_history(writer: Engine, name: str) -> int:
    """Nights that the time of that run was held against, as its check says."""
    wanted = text(
        "SELECT (details ->> 'nights')::int FROM check_result JOIN run USING (run_id) "
        "WHERE dag_run_id = :name AND check_name = 'time_history'"
    )
    with writer.connect() as connection:
        return int(connection.execute(wanted, {"name": name}).scalar_one())


def _row(name: str, taken: Sequence[Taken]) -> str:
    wall, cpu = zip(*taken, strict=True)
    return f"| {name} | {statistics.median(wall):.0f} | {max(wall):.0f} | {statistics.median(cpu):.0f} |"


if __name__ == "__main__":
    sys.exit(main())
