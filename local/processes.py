"""Processes of one installation: tied to their parent's life, marked so that each can be found, ended by pid."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

MARKER = "NIGHTLY_STACK"
_PR_SET_PDEATHSIG = 1


def die_with_parent(sent: signal.Signals) -> Callable[[], None]:
    """A ``preexec_fn``: the kernel sends ``sent`` to the child when the thread that made it ends, however it ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def prepare() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(sent), 0, 0, 0)
        if os.getppid() != parent:  # the parent died before the line above took effect
            os._exit(1)

    return prepare


def marked(home: Path) -> list[int]:
    """Pids, other than this one, that carry the marker of this installation in their environment."""
    wanted = f"{MARKER}={home}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue  # gone meanwhile, or another user's
    return found


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
