"""How large a long history is, and how long its questions take.

``PYTHONPATH=plugins python -m tests.benchmarks.history [--devices 20 --nights 3650] [--out FILE] [--json FILE]``

Makes ``--devices`` boards times ``--nights`` nights (11 validations, 7 rounds of 3 figures, telemetry, gates, checks)
in a PostgreSQL of its own, and one tenth of the nights beside it; asks every view, every panel of the dashboard and
every question of the cookbook as the reader; loads nights with the real loader; prints Markdown. Everything comes from
``--seed``. The power samples (``round_trace``, ``telemetry_trace``) are left out: nothing that is asked reads them, and
their size is known, about 60 kB a round.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg2
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.engine import make_url

from local.databases import libpq_uri
from local.postgres import Cluster, new_password
from regression.results import migrate, spool
from regression.results.roles import OWNER, READER, ROLES, WRITER, ensure_roles
from tests.benchmarks.history_asked import Asked, asked
from tests.benchmarks.history_night import night
from tests.benchmarks.history_report import Measured, Times, as_json, as_markdown
from tests.benchmarks.history_rows import generate, settle

SHARE = 10
"""The smaller history has one night in so many: the newest ones."""
LEAST, MOST, BUDGET_S = 5, 40, 2.0
"""How often each is asked: at least, at most, and for how long between the two."""
LOADS = 40
PASSWORDS = {role: new_password() for role in ROLES}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=20, help="boards (default 20)")
    parser.add_argument("--nights", type=int, default=3650, help="nights of each (default 3650)")
    parser.add_argument("--seed", type=int, default=20261130)
    parser.add_argument("--out", type=Path, help="write the tables here, too")
    parser.add_argument("--json", type=Path, help="write the figures here, as soon as a history is done")
    arguments = parser.parse_args()
    options = f"--devices {arguments.devices} --nights {arguments.nights} --seed {arguments.seed}"
    found: list[Measured] = []
    with _server() as cluster:
        version = _version(cluster)
        for nights in (arguments.nights, arguments.nights // SHARE):
            found.append(_measure(cluster, f"history_{nights}", arguments.devices, nights, arguments.seed))
            if arguments.json:
                arguments.json.write_text(as_json(options, version, found), encoding="utf-8")
    report = as_markdown(options, version, found[0], found[1])
    print(report)
    if arguments.out:
        arguments.out.write_text(report, encoding="utf-8")
    return 0


@contextmanager
def _server() -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="kernel-nightly-bench-", dir="/tmp"))
    folder.chmod(0o755)
    cluster = Cluster(folder / "postgres", new_password())
    cluster.initialise()
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder)


def _measure(cluster: Cluster, database: str, devices: int, nights: int, seed: int) -> Measured:
    admin = _empty_database(cluster, database)
    writer = _engine(cluster, database, WRITER)
    made = generate(writer, devices, nights, seed, _say)
    settle(admin)
    sizes = _sizes(admin)
    reader = psycopg2.connect(libpq_uri(_engine(cluster, database, READER).url))
    reader.autocommit = True
    answers = []
    for one in asked(*_examples(reader, seed)):
        times = ask(reader, one)
        answers.append((one, times))
        _say(f"{one.name}, {one.use}: {times} ({times.rows} rows)")
    reader.close()
    loads = {name: _load(writer, name, traces) for name, traces in (("without samples", False), ("with samples", True))}
    writer.dispose()
    return Measured(nights, made, sizes, answers, loads)


def _empty_database(cluster: Cluster, name: str) -> Engine:
    connection = psycopg2.connect(cluster.admin_dsn())
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(f'CREATE DATABASE "{name}"')
    connection.close()
    admin = create_engine(make_url(cluster.admin_dsn(name)).set(drivername="postgresql+psycopg2"))
    with admin.begin() as begun:
        ensure_roles(begun, name, PASSWORDS)
    migrate.upgrade(_engine(cluster, name, OWNER))
    return admin


def _engine(cluster: Cluster, database: str, role: str) -> Engine:
    url = make_url(cluster.dsn(role, PASSWORDS[role], database))
    return create_engine(url.set(drivername="postgresql+psycopg2"))


def _examples(reader: Any, seed: int) -> tuple[list[str], list[str]]:
    """Every board, and runs from all over the history."""
    with reader.cursor() as cursor:
        cursor.execute("SELECT uuid FROM device ORDER BY device_id")
        boards = [uuid for (uuid,) in cursor]
        cursor.execute("SELECT run_id FROM run WHERE rounds_valid > 0 ORDER BY run_id")
        every = [run_id for (run_id,) in cursor]
    runs = random.Random(seed).sample(every, min(20, len(every)))
    return boards, runs


class Clock:
    """By the wall, and by the CPUs of this process and of all of PostgreSQL: the session, its workers, readers.

    The machine may be busy with other things: then the CPUs say more than the wall.
    """

    def __init__(self, session: int) -> None:
        server = int(Path(f"/proc/{session}/stat").read_text().rpartition(")")[2].split()[1])
        self._children = Path(f"/proc/{server}/task/{server}/children")
        self._server = Path(f"/proc/{server}/stat")

    def start(self) -> None:
        self._cpu_s, self._wall_s = self._cpu(), time.perf_counter()

    def stop(self, times: Times) -> None:
        times.ms.append(1000 * (time.perf_counter() - self._wall_s))
        times.cpu_ms.append(1000 * (self._cpu() - self._cpu_s))

    def _cpu(self) -> float:
        total = time.process_time()
        for process in self._children.read_text().split():
            with suppress(FileNotFoundError, ProcessLookupError):
                total += int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9
        ended = self._server.read_text().rpartition(")")[2].split()[13:15]  # children that were waited for, in ticks
        return total + sum(map(int, ended)) / os.sysconf("SC_CLK_TCK")


def ask(reader: Any, one: Asked) -> Times:
    """Time until the last row is here, after one time that does not count."""
    times, clock = Times(), Clock(reader.info.backend_pid)
    began = time.perf_counter()
    with reader.cursor() as cursor:
        for number in range(MOST + 1):
            clock.start()
            try:
                cursor.execute(one.sql, one.values[number % len(one.values)])
                times.rows = max(times.rows, len(cursor.fetchall()))
            except psycopg2.errors.QueryCanceled:
                return Times(failed="over 30 s, the reader's limit")
            if number:
                clock.stop(times)
            if number >= LEAST and time.perf_counter() - began > BUDGET_S:
                break
    return times


def _load(writer: Engine, name: str, traces: bool) -> Times:
    """What the load task does with a night: file, transaction, and the files of decisions that have none yet."""
    connection: Any = writer.raw_connection()
    times, clock = Times(), Clock(connection.driver_connection.info.backend_pid)
    connection.close()  # back into the pool, whose only one it is
    with tempfile.TemporaryDirectory() as folder:
        for number in range(LOADS + 1):
            record = night(f"{name}__{number}", traces=traces)
            clock.start()
            spool.load_record(writer, Path(folder), record)
            if number:  # the first one writes the files of all decisions that were ever made
                clock.stop(times)
    return times


def _sizes(admin: Engine) -> list[tuple[str, int, int]]:
    """Table, bytes of its rows, bytes of its indexes; the largest first."""
    statement = text(
        "SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class "
        "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY pg_total_relation_size(oid) DESC"
    )
    with admin.connect() as connection:
        return [tuple(row) for row in connection.execute(statement)]


def _version(cluster: Cluster) -> str:
    connection = psycopg2.connect(cluster.admin_dsn())
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version'), current_setting('shared_buffers')")
        row: Any = cursor.fetchone()
    connection.close()
    return f"PostgreSQL {row[0]} with shared_buffers {row[1]}"


def _say(line: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
