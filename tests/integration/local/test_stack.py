"""The supervised stack with PostgreSQL alone: started on demand, shared, ended with its last client."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg2
import pytest
from sqlalchemy.engine import make_url

from local import environments
from local import stack as stack_of_clients
from local.databases import libpq_uri
from local.errors import LauncherError, Usage
from local.locks import FileLock
from local.paths import ROOT, Home
from local.postgres import Cluster
from local.processes import is_alive, marked
from local.stack import Stack, hold, stop

HOLDER = """
import sys, time
from pathlib import Path
from local.paths import Home
from local.stack import hold
with hold(Home(Path(sys.argv[1])), None, need_airflow=False) as stack:
    print(stack.state().pid, flush=True)
    time.sleep(120)
"""


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A home that PostgreSQL's unprivileged user can reach, with this test's interpreter as the scheduler's."""
    folder = Path(tempfile.mkdtemp(prefix="kernel-nightly-home-", dir="/tmp"))
    folder.chmod(0o755)  # PostgreSQL's user passes through it
    monkeypatch.setattr(environments, "python", lambda _home, _name: Path(sys.executable))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "plugins")]))
    yield Home(folder)
    stop(Home(folder))
    assert marked(folder) == []
    shutil.rmtree(folder)


def _one(stack: Stack) -> object:
    connection = psycopg2.connect(libpq_uri(stack.databases().reader))
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_user")
            return cursor.fetchone()
    finally:
        connection.close()


def _soon(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 120
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def _gone(home: Home) -> bool:
    return _soon(lambda: Stack(home, None).state() is None)


def test_the_last_client_ends_what_the_first_one_started(home: Home) -> None:
    with hold(home, None, need_airflow=False) as first:
        with hold(home, None, need_airflow=False) as second:
            assert first.state() == second.state()
            assert _one(second) == ("nightly_reader",)
        assert _one(first) == ("nightly_reader",)
        state = first.state()
    assert state is not None
    assert not is_alive(state.pid)
    assert Stack(home, None).state() is None


def test_a_client_beside_others_ends_at_its_second_look(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    with hold(home, None, need_airflow=False) as first:
        with monkeypatch.context() as patch, hold(home, None, need_airflow=False):
            patch.setattr(time, "sleep", looks.append)
        assert len(looks) == 1
        assert _one(first) == ("nightly_reader",)


def test_a_client_waits_for_a_supervisor_that_is_stopping(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as its locks are held, though it has not said yet that it stops."""
    held = [FileLock(home.locks / name) for name in ("supervisor", "users")]
    assert all(lock.acquire() for lock in held)
    home.state.write_text('{"phase": "running"}')
    looks = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 5:
            held[0].release()

    monkeypatch.setattr(time, "sleep", sleep)
    try:
        stack_of_clients._wait_for_end(home)
    finally:  # who ends what is left of the stack would end the holder, which is this process
        for lock in held:
            lock.release()
    assert len(looks) == 5


def test_a_killed_client_leaves_nothing(home: Home) -> None:
    command = [sys.executable, "-c", HOLDER, str(home.folder)]
    environment = dict(os.environ) | {"NIGHTLY_ENVIRONMENTS": str(_environments_of_this_test(home))}
    client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert client.stdout is not None
    supervisor = int(client.stdout.readline())
    os.kill(client.pid, signal.SIGKILL)
    client.wait()
    assert _gone(home)
    assert _soon(lambda: not is_alive(supervisor))  # it lets go of its lock a moment before it has ended
    with hold(home, None, need_airflow=False) as stack:
        assert _one(stack) == ("nightly_reader",)


def test_a_killed_supervisor_takes_the_server_along_and_the_next_client_starts_afresh(home: Home) -> None:
    with hold(home, None, need_airflow=False) as stack:
        state = stack.state()
        assert state is not None
        os.kill(state.pid, signal.SIGKILL)
        assert _gone(home)
    with hold(home, None, need_airflow=False) as stack:
        assert _one(stack) == ("nightly_reader",)


def test_a_users_server_is_used_and_left_running(home: Home, postgres_server: Cluster) -> None:
    dsn = postgres_server.admin_dsn("kernel_nightly_of_a_user")
    admin = psycopg2.connect(postgres_server.admin_dsn())
    admin.autocommit = True
    with admin.cursor() as cursor:
        cursor.execute("CREATE DATABASE kernel_nightly_of_a_user")
    with hold(home, dsn, need_airflow=False) as stack:
        assert _one(stack) == ("nightly_reader",)
        with pytest.raises(Usage, match="another database server"), hold(home, None, need_airflow=False):
            pytest.fail("two servers at once")
    assert not (home.postgres / "data").exists()
    assert postgres_server.is_running()
    with admin.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_database WHERE datname LIKE 'kernel_nightly_of_a_user%'")
        assert cursor.fetchone() == (2,)
    admin.close()


def _environments_of_this_test(home: Home) -> Path:
    """A folder of environments whose scheduler is this interpreter, for a client in a process of its own."""
    folder = home.folder / "environments"
    target = folder / environments.folder(Home(home.folder), "scheduler").name
    (target / "bin").mkdir(parents=True, exist_ok=True)
    wrapper = target / "bin" / "python"
    wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    wrapper.chmod(0o755)
    return folder


def test_overlapping_clients_of_a_stack_that_comes_and_goes_all_get_an_answer(home: Home) -> None:
    environment = dict(os.environ) | {
        "NIGHTLY_ENVIRONMENTS": str(_environments_of_this_test(home)),
    }
    command = [sys.executable, "-c", HOLDER.replace("time.sleep(120)", "time.sleep(0.3)"), str(home.folder)]
    clients = []
    for _ in range(8):
        clients.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        )
        time.sleep(0.25)
    for client in clients:
        output, messages = client.communicate(timeout=120)
        assert client.returncode == 0, messages
        assert output.strip().isdigit()


def test_a_removed_cluster_is_made_again(home: Home) -> None:
    with hold(home, None, need_airflow=False) as stack:
        assert _one(stack) == ("nightly_reader",)
    shutil.rmtree(home.postgres)
    with hold(home, None, need_airflow=False) as stack:
        assert _one(stack) == ("nightly_reader",)


def test_roles_enter_only_their_own_database(home: Home) -> None:
    with hold(home, None, need_airflow=False) as stack:
        target = stack.databases()
        for other in (target.airflow_database, "postgres"):
            address = make_url(target.reader).set(database=other)
            with pytest.raises(psycopg2.OperationalError, match="permission denied for database"):
                psycopg2.connect(libpq_uri(address))


def test_a_server_that_refuses_is_an_infrastructure_failure_and_no_traceback(
    home: Home, postgres_server: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    dsn = str(postgres_server.admin_dsn()).replace("nightly_admin:", "nightly_admin:not-")
    with pytest.raises(LauncherError, match="password authentication failed"), hold(home, dsn, need_airflow=False):
        pytest.fail("entered with a wrong password")
    assert "not-" not in (home.logs / "supervisor.log").read_text()


def test_a_full_private_home_of_roots_is_not_opened_to_others(tmp_path: Path) -> None:
    private = tmp_path / "home"
    private.mkdir(mode=0o700)
    (private / "diary").touch()
    Home(private).create()
    assert private.stat().st_mode & 0o777 == 0o700
