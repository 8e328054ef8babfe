"""Processes of one installation: tied to their parent's life, marked so that each can be found, ended by pid."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

MARKER = "NIGHTLY_STACK"
_PR_SET_PDEATHSIG = 1
_SESSIONS = "sessions"


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM ends the command the way Ctrl-C does, so that what was started is stopped and unlocked."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def die_with_parent(sent: signal.Signals) -> Callable[[], None]:
    """A ``preexec_fn``: the kernel sends ``sent`` to the child when the thread that made it ends, however it ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def prepare() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(sent), 0, 0, 0)
        if os.getppid() != parent:  # the parent died before the line above took effect
            os._exit(1)

    return prepare


def remember_session(home: Path, leader: int) -> None:
    """Note that ``leader`` leads a session of this installation, so that what it leaves behind can be found."""
    with (home / _SESSIONS).open("a") as stream:
        stream.write(f"{_boot()} {leader}\n")


def forget_sessions(home: Path) -> None:
    """Nothing of this installation runs any more."""
    (home / _SESSIONS).unlink(missing_ok=True)


def marked(home: Path) -> list[int]:
    """Pids, other than this one, of this installation's processes.

    They carry its marker in their environment. Airflow closes the environment of some of its processes to everybody
    but root; those are known by the session that they were started in and by their name.
    """
    wanted = f"{MARKER}={home}".encode()
    sessions = _remembered_sessions(home)
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except PermissionError:
            if _is_airflow_of(entry, sessions):
                found.append(int(entry.name))
        except OSError:
            continue  # gone meanwhile
    return found


def _is_airflow_of(entry: Path, sessions: set[int]) -> bool:
    """By ``/proc/PID/stat``, which everybody may read: ``pid (name) state ppid pgrp session ...``."""
    try:
        name, _, fields = (entry / "stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return False
    return name.startswith("airflow") and fields.split()[0] != "Z" and int(fields.split()[3]) in sessions


def _remembered_sessions(home: Path) -> set[int]:
    try:
        lines = [line.split() for line in (home / _SESSIONS).read_text().splitlines()]
    except OSError:
        return set()
    return {int(line[1]) for line in lines if len(line) == 2 and line[0] == _boot() and line[1].isdecimal()}


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def end(pids: Iterable[int], grace_s: float) -> None:
    """SIGTERM, then SIGKILL what is left after ``grace_s`` seconds."""
    waiting = [pid for pid in pids if _send(pid, signal.SIGTERM)]
    deadline = time.monotonic() + grace_s
    while waiting and time.monotonic() < deadline:
        time.sleep(0.05)
        waiting = [pid for pid in waiting if is_alive(pid)]
    for pid in waiting:
        _send(pid, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _send(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
