"""The one process that owns a running stack: it starts PostgreSQL and Airflow, watches them, and stops them.

It runs while somebody needs it: every client holds a shared lock on ``locks/users`` (the kernel lets go of it
however the client ends), and ``nightly up`` sets ``keep``. When neither is there, everything is stopped.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import FrameType

from gpu_tasks.records import utc_now, write_text_atomically
from local import airflow, environments, processes
from local.databases import Databases, databases, identity, prepare
from local.errors import LauncherError
from local.followed import end_abandoned
from local.locks import FileLock
from local.paths import Home
from local.ports import reserved
from local.postgres import Cluster
from local.rest import Airflow
from local.secrets import Secrets, load
from local.stack_files import State, dsn_hash, read_wanted
from regression.results import RESULTS_CONNECTION

POLL_S = 0.1
HEALTH_TIMEOUT_S = 180
MAX_RESTARTS = 5


class Supervisor:
    """Runs one stack from start to stop."""

    def __init__(self, home: Home, dsn: str | None) -> None:
        self.home = home
        self.secrets: Secrets = load(home.secrets)
        self.cluster = None if dsn else Cluster(home.postgres, self.secrets.postgres_admin)
        self._dsn = dsn
        self._ports = _remembered_ports(home)
        self.state = State(os.getpid(), utc_now(), dsn_hash(dsn))
        self._components: dict[str, subprocess.Popen[bytes]] = {}
        self._restarts = 0
        self._environment: dict[str, str] = {}
        self._stopping = False
        self._users = FileLock(home.locks / "users")
        self._client: Airflow | None = None
        self._looked_at = 0.0

    def run(self) -> None:
        """Serve until nobody needs the stack or a signal says stop."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        try:
            self._publish()
            self._end_leftovers()
            self._start_postgres()
            while not self._is_unneeded():
                wanted = read_wanted(self.home)
                night = airflow.Schedule(wanted.schedule, wanted.timezone, _first_start(self.home), wanted.workloads)
                if wanted.airflow and not self._components:
                    self._start_airflow(night)
                elif wanted.airflow and not night.environment().items() <= self._environment.items():
                    self._reschedule(night)
                self._watch()
                self._end_abandoned()
                time.sleep(POLL_S)
        except LauncherError as error:
            self._report(str(error))
        except Exception as error:
            traceback.print_exc()
            self._report(f"{type(error).__name__}: {error} (see {self.home.logs / 'supervisor.log'})")
        finally:
            self._stop()  # whoever waits for the locks gets them when this process is gone, not before

    def _is_unneeded(self) -> bool:
        """Whether it is time to stop: a signal said so, or no client is left and nobody wants the stack kept."""
        # The lock stays held until everything is down: a new client waits for that and starts afresh.
        self._stopping = self._stopping or (not read_wanted(self.home).keep and self._users.acquire())
        return self._stopping

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True

    def _report(self, error: str) -> None:
        self.state.error = error
        print(f"{utc_now()} {error}", flush=True)

    def _publish(self) -> None:
        write_text_atomically(json.dumps(asdict(self.state), indent=2) + "\n", self.home.state)
        ports = {"postgres": self.state.postgres_port, "api": self.state.api_port}
        self._ports |= {name: port for name, port in ports.items() if port}
        write_text_atomically(json.dumps(self._ports), self.home.folder / "ports.json")

    def _targets(self) -> Databases:
        if self._dsn:
            return databases(self._dsn, self.secrets, embedded=False)
        assert self.cluster is not None  # noqa: S101 - one of the two is always there
        return databases(self.cluster.admin_dsn(), self.secrets, embedded=True)

    def _start_postgres(self) -> None:
        if self.cluster:
            self.cluster.initialise()
            self.cluster.start(self._ports.get("postgres"))
            self.state.postgres_port = self.cluster.port()
        target = self._targets()
        # At every start, not once: the data may be an older copy, and a reader may have changed its own defaults.
        prepare(target, self.home.records)
        self.state.postgres_ready = True
        self._publish()

    def _end_leftovers(self) -> None:
        """End what a supervisor that was killed left behind."""
        processes.end(processes.marked(self.home.folder), grace_s=2)
        processes.forget_sessions(self.home.folder)
        if self.cluster:
            self.cluster.stop()

    def _start_airflow(self, night: airflow.Schedule) -> None:
        with reserved(self._ports.get("api")) as port:
            self._start_airflow_on(port, night)

    def _start_airflow_on(self, port: int, night: airflow.Schedule) -> None:
        self.state.phase = "starting Airflow"
        self.state.api_port = port
        self._publish()
        target = self._targets()
        self._environment = airflow.settings(self.home, target, self.secrets, port, night)
        airflow.write_password_file(self.home, self.secrets)
        lock_hash = environments.folder(self.home, "scheduler").name
        self._once("airflow", lock_hash, lambda: airflow.migrate(self._environment, self.home.logs / "migrate.log"))
        for name in airflow.COMPONENTS:
            self._components[name] = self._start_component(name)
        self._client = Airflow(port, airflow.USER, self.secrets.airflow_admin)
        self._wait_until_healthy(self._client)
        _furnish(self._client, target)
        self.state.phase = "running"
        self.state.airflow_ready = True
        self._publish()

    def _reschedule(self, night: airflow.Schedule) -> None:
        """Only the dag-processor reads the schedule: give it a new one without disturbing a run."""
        self._environment |= night.environment()
        processor = self._components["dag-processor"]
        processes.end([processor.pid], grace_s=5)
        processor.wait()
        self._components["dag-processor"] = self._start_component("dag-processor")

    def _start_component(self, name: str) -> subprocess.Popen[bytes]:
        process = airflow.start(name, self._environment, self.home.logs / f"{name}.log")
        processes.remember_session(self.home.folder, process.pid)
        return process

    def _wait_until_healthy(self, client: Airflow) -> None:
        deadline = time.monotonic() + HEALTH_TIMEOUT_S
        healthy = False
        while not healthy:
            if self._is_unneeded():
                raise LauncherError("stopped while Airflow was starting")
            # Asked first, believed last: another program may have taken the port, and ours then ends.
            healthy = client.is_healthy()
            dead = [name for name, process in self._components.items() if process.poll() is not None]
            if dead:
                raise LauncherError(f"airflow {dead[0]} ended while starting; see {self.home.logs / dead[0]}.log")
            if time.monotonic() > deadline:
                raise LauncherError(f"Airflow was not healthy after {HEALTH_TIMEOUT_S} s; see {self.home.logs}")
            time.sleep(0.2)

    def _watch(self) -> None:
        """Start a component again that ended by itself; give up after some times, so that it is noticed."""
        for name, process in self._components.items():
            if process.poll() is None:
                continue
            self._restarts += 1
            if self._restarts > MAX_RESTARTS:
                raise LauncherError(f"airflow {name} keeps ending; see {self.home.logs / name}.log")
            print(f"{utc_now()} airflow {name} ended with {process.returncode}; starting it again", flush=True)
            self._components[name] = self._start_component(name)
        if self.cluster and not self.cluster.is_alive():
            raise LauncherError(f"PostgreSQL ended by itself; see {self.cluster.log}")

    def _end_abandoned(self) -> None:
        """Look every second for runs whose command was killed; no client of the stack would end them."""
        if self._client is None or time.monotonic() < self._looked_at + 1:
            return
        self._looked_at = time.monotonic()
        try:
            for line in end_abandoned(self.home, self._client):
                print(f"{utc_now()} {line}", flush=True)
        except LauncherError as error:  # it may be starting again
            print(f"{utc_now()} {error}", flush=True)

    def _once(self, name: str, version: str, action: Callable[[], None]) -> None:
        """Carry out a step of the set-up unless it was done for this very version and these very databases."""
        # Beside the data, for the embedded server: whoever removes the one removes the other.
        marker = (self.home.postgres if self.cluster else self.home.folder) / f"prepared-{name}"
        before = f"{version} {identity(self._targets())}"
        if marker.exists() and marker.read_text() == before:
            return
        action()
        write_text_atomically(f"{version} {identity(self._targets())}", marker)

    def _stop(self) -> None:
        self.state.phase, self.state.airflow_ready = "stopping", False
        self._publish()
        processes.end([process.pid for process in self._components.values()], grace_s=8)
        processes.end(processes.marked(self.home.folder), grace_s=1)
        for process in self._components.values():
            process.wait()
        if self.cluster:
            self.cluster.stop()
        if self.state.error is None:
            self.home.state.unlink(missing_ok=True)


def _furnish(client: Airflow, target: Databases) -> None:
    """The pool and the connection that the DAGs name."""
    client.ensure_pool(airflow.GPU_POOL, 1, "One task at a time on the GPU")
    url = target.admin
    client.put_connection(
        {
            "connection_id": RESULTS_CONNECTION,
            "conn_type": "postgres",
            "host": url.host or "127.0.0.1",
            "port": url.port or 5432,
            "schema": target.results,
            "login": "nightly_writer",
            "password": target.secrets.writer,
            "extra": json.dumps(dict(url.query)),
            "description": "Results database, writer role",
        }
    )


def _first_start(home: Home) -> str:
    """When this installation first had Airflow: no night before that is made up for."""
    marker = home.folder / "first-start"
    if not marker.exists():
        write_text_atomically(utc_now(), marker)
    return marker.read_text()


def _remembered_ports(home: Home) -> dict[str, int]:
    """Ports of the last time, so that addresses that people noted stay right."""
    try:
        ports = json.loads((home.folder / "ports.json").read_text())
        return {str(name): int(port) for name, port in ports.items() if 1024 <= int(port) < 65536}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}  # a hint only: any free port will do


def main() -> int:
    """Own the stack of ``NIGHTLY_HOME``; a second supervisor of the same home ends at once."""
    home = Home(Path(os.environ[processes.MARKER]))
    lock = FileLock(home.locks / "supervisor")
    if not lock.wait(10):  # clients that look whether it is held, or clean up, hold it themselves for a moment
        return 0
    supervisor = Supervisor(home, os.environ.pop("NIGHTLY_DSN", None) or None)
    supervisor.run()
    return 1 if supervisor.state.error else 0


if __name__ == "__main__":
    sys.exit(main())
