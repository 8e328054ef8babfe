"""Stands between a task and its program: everything the program started ends with it, or when the task is gone.

Run as a script, standard library only: ``guard.py LEASH_FD PROGRAM [ARGUMENT...]``, as leader of a session of its
own. The task holds the other end of the pipe LEASH_FD; when that end closes, for whatever reason (``kill -9``
included), or something is written to it, the program is killed. However the program ends, all its descendants are
killed then: the guard is their subreaper, so that those whose parent is gone become its children, whatever session
they moved to. Only a ``kill -9`` of the guard itself lets those live that left the program's group.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CANNOT_START = 127
POLL_S = 0.01


def main() -> int:
    """Run the program and end as it ends: same exit status, or death by the same signal."""
    leash, command = int(sys.argv[1]), sys.argv[2:]
    for caught in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(caught, _stay)  # a handler, not SIG_IGN: the program must start with the defaults
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        program = subprocess.Popen(command, preexec_fn=_die_with_guard)  # noqa: PLW1509 - no threads yet
    except OSError as error:
        print(f"cannot start {command[0]}: {error.strerror}", flush=True)
        return CANNOT_START
    threading.Thread(target=_kill_at_end_of, args=(leash, program), daemon=True).start()
    status = program.wait()
    _end_descendants()
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


def _stay(*_: object) -> None:
    """Signals of the group are for the program; the guard outlives it to report its status."""


def _die_with_guard() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _kill_at_end_of(leash: int, program: subprocess.Popen[bytes]) -> None:
    os.read(leash, 1)
    program.kill()


def _end_descendants() -> None:
    """Kill all children; theirs then become the guard's, until there is none."""
    while True:
        for pid in _children():
            with suppress(PermissionError):  # of another user: it can only be waited for
                os.kill(pid, signal.SIGKILL)
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            time.sleep(POLL_S)


def _children() -> list[int]:
    """Processes whose parent is this one. None can vanish before it is killed: only the guard collects them."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                parent = (folder / "stat").read_bytes().rpartition(b")")[2].split()[1]
                if int(parent) == os.getpid():
                    found.append(int(folder.name))
    return found


if __name__ == "__main__":
    sys.exit(main())
