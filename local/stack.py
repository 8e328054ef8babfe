"""A client's hold on the running stack: start what is missing, keep it while needed, leave it as it was found."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from local import airflow, environments
from local.databases import Databases, databases
from local.errors import LauncherError, Usage
from local.locks import FileLock
from local.paths import ROOT, Home
from local.processes import MARKER, end, marked
from local.rest import Airflow
from local.secrets import load
from local.stack_files import State, Wanted, dsn_hash, read_wanted, write_wanted
from regression.nights.workloads import DEFAULT

POSTGRES_TIMEOUT_S = 120
AIRFLOW_TIMEOUT_S = 240
SHUTDOWN_TIMEOUT_S = 60


class Stack:
    """A running stack as a client sees it."""

    def __init__(self, home: Home, dsn: str | None) -> None:
        self.home = home
        self._dsn = dsn

    def state(self) -> State | None:
        """What the supervisor last published; None when there is no supervisor."""
        if not FileLock(self.home.locks / "supervisor").is_held():
            return None
        try:
            return State(**json.loads(self.home.state.read_text()))
        except (OSError, ValueError, TypeError):
            return State(0, "", None)  # it has not published anything yet, or has just taken that back

    def databases(self) -> Databases:
        """Connection URIs of the running server."""
        secrets = load(self.home.secrets)
        if self._dsn:
            return databases(self._dsn, secrets, embedded=False)
        state = self.state()
        if state is None or state.postgres_port is None:
            raise LauncherError("PostgreSQL is not running")
        admin = f"postgresql://nightly_admin:{secrets.postgres_admin}@127.0.0.1:{state.postgres_port}/postgres"
        return databases(admin, secrets, embedded=True)

    def airflow(self) -> Airflow:
        """Client of the running api-server."""
        state = self.state()
        if state is None or state.api_port is None:
            raise LauncherError("Airflow is not running")
        return Airflow(state.api_port, airflow.USER, load(self.home.secrets).airflow_admin)


@contextmanager
def hold(
    home: Home,
    dsn: str | None,
    *,
    need_airflow: bool,
    keep: bool = False,
    night: tuple[str, str, str] = ("none", "UTC", DEFAULT.name),
) -> Iterator[Stack]:
    """Hold a stack with PostgreSQL (and Airflow): use the running one, or start one that ends with its last client.

    ``keep`` lets it run on; ``night`` is then the cron line of the schedule, its time zone, and the workloads whose
    nights it plans, by name with commas.
    """
    home.create()
    secrets = load(home.secrets)
    if dsn:
        databases(dsn, secrets, embedded=False)  # refused here, before anything is started
    users = FileLock(home.locks / "users")
    started: subprocess.Popen[bytes] | None = None
    if not users.wait(SHUTDOWN_TIMEOUT_S, shared=True):
        raise LauncherError(f"the stack of {home.folder} is still shutting down; see {home.logs / 'supervisor.log'}")
    try:
        stack = Stack(home, dsn)
        started = _ask(stack, need_airflow=need_airflow, keep=keep, night=night)
        _await(stack, need_airflow=need_airflow)
        yield stack
    finally:
        users.release()
        _wait_for_end(home)
        _end_what_a_killed_supervisor_left(home)
        if started and not FileLock(home.locks / "supervisor").is_held():
            started.wait(timeout=10)  # reap it: on some machines nobody else does


def _wait_for_end(home: Home) -> None:
    """When this was the last client, return only after everything that was started for it has stopped."""
    deadline = time.monotonic() + SHUTDOWN_TIMEOUT_S
    supervisor, users = FileLock(home.locks / "supervisor"), FileLock(home.locks / "users")
    in_use = 0
    while supervisor.is_held() and not read_wanted(home).keep and time.monotonic() < deadline:
        if users.acquire():
            users.release()
            in_use = 0
        elif users.is_held() or _is_stopping(home):  # the supervisor has it, and lets nobody in any more
            in_use = 0
        else:
            in_use += 1
        if in_use == 2:  # not at the first look: another client may have looked at that very moment
            return
        time.sleep(0.05)


def _end_what_a_killed_supervisor_left(home: Home) -> None:
    """Where there is no supervisor there must be no process of the stack; the lock keeps one from starting now."""
    lock = FileLock(home.locks / "supervisor")
    if lock.acquire():
        end(marked(home.folder), grace_s=5)
        lock.release()


def _is_stopping(home: Home) -> bool:
    try:
        return bool(json.loads(home.state.read_text())["phase"] == "stopping")
    except (OSError, ValueError, KeyError):
        return True


def _ask(
    stack: Stack, *, need_airflow: bool, keep: bool, night: tuple[str, str, str]
) -> subprocess.Popen[bytes] | None:
    """Write down what is wanted; starts the supervisor when there is none, and then returns it."""
    home = stack.home
    lock = FileLock(home.locks / "wanted")
    if not lock.wait(SHUTDOWN_TIMEOUT_S):
        raise LauncherError(f"{lock.path} is held by pid {lock.holder()}")
    try:
        running = _settled(stack)
        if running is None:
            write_wanted(home, Wanted(need_airflow, keep, *night))
            return _start_supervisor(home, stack._dsn)
        if running.dsn_sha256 != dsn_hash(stack._dsn):
            raise Usage("a stack with another database server is running; `./nightly down` first")
        if running.root != str(ROOT):
            raise Usage(f"the running stack belongs to another checkout, {running.root}; `./nightly down` first")
        wanted = read_wanted(home)
        if keep:
            wanted = Wanted(True, True, *night)
        if need_airflow:
            write_wanted(home, replace(wanted, airflow=True))
        return None
    finally:
        lock.release()


def _settled(stack: Stack) -> State | None:
    """State of a supervisor that stays, or None when there is none; waits for one that starts or stops."""
    deadline = time.monotonic() + SHUTDOWN_TIMEOUT_S
    while (state := stack.state()) and (state.pid == 0 or state.phase == "stopping" or state.error):
        if time.monotonic() > deadline:
            raise LauncherError(f"the supervisor neither starts nor stops; see {stack.home.logs / 'supervisor.log'}")
        time.sleep(0.05)
    return state


def _start_supervisor(home: Home, dsn: str | None) -> subprocess.Popen[bytes]:
    home.state.unlink(missing_ok=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "_AIRFLOW"))}
    environment |= {MARKER: str(home.folder), "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")])}
    environment.pop("NIGHTLY_DSN", None)
    if dsn:
        environment["NIGHTLY_DSN"] = dsn
    log = home.logs / "supervisor.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(environments.python(home, "scheduler")), "-m", "local.supervisor"],
            env=environment,
            cwd=home.folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    deadline = time.monotonic() + 30
    while not home.state.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise LauncherError(f"the supervisor did not start; see {log}")
        time.sleep(0.05)
    return process


def _await(stack: Stack, *, need_airflow: bool) -> None:
    started = time.monotonic()
    shown = ""
    while True:
        state = stack.state()
        if state is None or state.error:
            raise LauncherError((state and state.error) or _startup_error(stack.home))
        if state.airflow_ready or (state.postgres_ready and not need_airflow):
            break
        if need_airflow and state.phase != shown:
            shown = state.phase
            print(f"{shown} ...", file=sys.stderr, flush=True)
        if time.monotonic() - started > POSTGRES_TIMEOUT_S + (AIRFLOW_TIMEOUT_S if need_airflow else 0):
            raise LauncherError(f"the stack was not ready in time; see {stack.home.logs}")
        time.sleep(0.05)
    if shown:
        print(f"ready after {time.monotonic() - started:.1f} s", file=sys.stderr, flush=True)


def _startup_error(home: Home) -> str:
    try:
        error = json.loads(home.state.read_text()).get("error")
    except (OSError, ValueError):
        error = None
    return error or f"the stack ended while starting; see {home.logs / 'supervisor.log'}"


def stop(home: Home) -> bool:
    """End a running stack and wait for it; False when none was running."""
    lock = FileLock(home.locks / "supervisor")
    if not lock.is_held():
        return False
    write_wanted(home, replace(read_wanted(home), keep=False))
    with suppress(ProcessLookupError, ValueError):  # it may end by itself at this very moment
        os.kill(int(lock.holder()), signal.SIGTERM)
    if not lock.wait(SHUTDOWN_TIMEOUT_S):
        raise LauncherError(f"the supervisor (pid {lock.holder()}) did not stop within {SHUTDOWN_TIMEOUT_S} s")
    lock.release()
    return True
