"""A server that is killed in the middle of a load leaves nothing of it, and the next load one complete run."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg2
import pytest
from sqlalchemy import create_engine, event
from sqlalchemy.pool import NullPool

from gpu_tasks.records import InfrastructureFailure
from local.postgres import Cluster, new_password
from local.processes import is_alive
from regression.results import migrate
from regression.results.loading import LoadStatus
from regression.results.roles import ensure_roles
from regression.results.spool import load_record, waiting
from tests.integration.regression.databases import PASSWORDS, Database, _engine, one
from tests.integration.regression.example_energy import energy_run
from tests.integration.regression.test_loading import counts

ROLES = ("nightly_owner", "nightly_writer", "nightly_reader")


class Server:
    """A server of its own, which a test may kill."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="kernel-nightly-killed-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.cluster = Cluster(self.folder / "postgres", new_password())
        self.cluster.initialise()
        self.cluster.start()

    def databases(self) -> Database:
        """The results database at the port of the moment."""
        dsn = self.cluster.admin_dsn("results")
        return Database(_engine(dsn), *(_engine(dsn, role) for role in ROLES))

    def create(self) -> None:
        connection = psycopg2.connect(self.cluster.admin_dsn())
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE results")
        connection.close()
        admin = _engine(self.cluster.admin_dsn("results"))
        with admin.begin() as session:
            ensure_roles(session, urlsplit(self.cluster.admin_dsn("results")).path.lstrip("/"), PASSWORDS)
        migrate.upgrade(self.databases().owner)

    def kill(self) -> None:
        """SIGKILL to every process of the server at once, as when the machine loses its power."""
        postmaster = int((self.cluster.data / "postmaster.pid").read_text().splitlines()[0])
        everyone = [postmaster, *children(postmaster)]
        for pid in everyone:
            with suppress(ProcessLookupError):  # it ends by itself as soon as it sees that the first one is gone
                os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 30
        while any(is_alive(pid) for pid in everyone[1:]) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert self.cluster._server is not None
        self.cluster._server.wait(30)

    def start_again(self) -> None:
        self.cluster.start()

    def remove(self) -> None:
        self.cluster.stop()
        shutil.rmtree(self.folder)


def children(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            try:
                parent = (path / "stat").read_bytes().rpartition(b")")[2].split()[1]
            except OSError:
                continue
            if int(parent) == pid:
                found.append(int(path.name))
    return found


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    try:
        running.create()
        yield running
    finally:
        running.remove()


@pytest.mark.parametrize("table", ["run", "round_energy", "telemetry_gate", "COMMIT"])
def test_a_load_in_which_the_server_is_killed_is_made_again_whole(server: Server, tmp_path: Path, table: str) -> None:
    """Killed just before it would write to ``table``, or when everything is written and nothing is committed."""
    record, killed = energy_run(), []
    engine = create_engine(server.databases().writer.url, poolclass=NullPool)

    def kill_once(*_: Any) -> None:
        if not killed:
            killed.append(True)
            server.kill()

    def before_statement(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith(f"INSERT INTO {table} "):
            kill_once()

    if table == "COMMIT":
        event.listen(engine, "commit", kill_once)
    else:
        event.listen(engine, "before_cursor_execute", before_statement)
    with pytest.raises(InfrastructureFailure) as caught:
        load_record(engine, tmp_path, record)
    assert (caught.value.code, killed) == ("results_unavailable", [True])
    assert [path.stem for path in waiting(tmp_path)] == [record.request.run_id]

    server.start_again()
    database = server.databases()
    assert counts(database)["run"] == counts(database)["round"] == 0
    assert load_record(database.writer, tmp_path, record).status is LoadStatus.STORED
    assert waiting(tmp_path) == []
    whole = counts(database)
    assert (whole["run"], whole["validation"], whole["round"], whole["round_energy"]) == (1, 11, 7, 21)
    assert (whole["round_trace"], whole["telemetry_trace"], whole["telemetry_gate"]) == (7, 2, len(record.gates))
    assert one(database, "SELECT rounds_valid FROM run")["rounds_valid"] == 7
    assert load_record(database.writer, tmp_path, record).status is LoadStatus.UNCHANGED
    assert counts(database) == whole
