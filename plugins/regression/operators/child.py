"""A child process that cannot outlive its task, nor can anything it starts: own session, streamed output, a guard."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

GUARD = Path(__file__).with_name("guard.py")
GUARD_S = 10.0  # for the guard to end what it guards, before it is killed itself
MAX_LINE_BYTES = 64 * 1024
SECRET_WORDS = ("PASSWORD", "PASSWD", "SECRET", "TOKEN", "CREDENTIAL", "PRIVATE", "API_KEY", "ACCESS_KEY", "DSN")
FOREIGN_PREFIXES = ("AIRFLOW", "_AIRFLOW", "NIGHTLY_ALERT_", "PG", "PYTHON")
FOREIGN_NAMES = ("VIRTUAL_ENV", "DATABASE_URL")


def child_environment(inherited: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """Environment for a GPU program: nothing of Airflow's, no secrets, no foreign interpreter's paths."""
    kept = {name: value for name, value in inherited.items() if not _is_foreign(name.upper())}
    return {**kept, "PYTHONUNBUFFERED": "1", **extra}


def _is_foreign(name: str) -> bool:
    return name.startswith(FOREIGN_PREFIXES) or name in FOREIGN_NAMES or any(word in name for word in SECRET_WORDS)


class Child:
    """One running program; use ``lines`` until they end, then ``exit_status``."""

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str], held: Sequence[int] = ()
    ) -> None:
        """Start ``command`` in ``folder``; ``held`` are descriptors (locks) that stay open as long as it lives."""
        leash, self._leash = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), str(leash), *command],
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(leash, *held),
            )
        except BaseException:
            os.close(self._leash)
            raise
        finally:
            os.close(leash)
        self._ended = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def lines(self) -> Iterator[str]:
        """Output line by line (standard error in it), until the program and all it started have ended."""
        assert self._process.stdout is not None  # noqa: S101 - PIPE was asked for
        while line := self._process.stdout.readline(MAX_LINE_BYTES):
            yield line.decode("utf-8", errors="replace").rstrip()

    def exit_status(self) -> int:
        """Exit status; negative: the signal that ended it."""
        self._ended.wait()  # reaped only after its group was killed: until then its number stays its own
        return self._process.wait()

    def kill(self, grace_s: float) -> None:
        """SIGTERM to the program's group, and after ``grace_s`` seconds SIGKILL to all it started; safe to repeat."""
        self._signal(signal.SIGTERM)
        self._ended.wait(grace_s)
        self._end_all()

    def close(self) -> None:
        """Kill what is left and release the descriptors."""
        self._end_all()
        self.exit_status()
        if self._process.stdout is not None:
            self._process.stdout.close()
        os.close(self._leash)

    def _watch(self) -> None:
        """Kill what the program left behind in its group before its number can be given to another process."""
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        self._kill_group(signal.SIGKILL)
        self._ended.set()

    def _end_all(self) -> None:
        """Let the guard kill whatever there is; the group at least, should it not manage to."""
        if not self._ended.is_set():
            with suppress(OSError):
                os.write(self._leash, b"!")
            self._ended.wait(GUARD_S)
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if not self._ended.is_set():
            self._kill_group(number)

    def _kill_group(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
