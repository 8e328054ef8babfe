"""Stands between a task and its program and ends the program's whole process group when the task is gone.

Run as a script, standard library only: ``guard.py LEASH_FD PROGRAM [ARGUMENT...]``, as leader of a session of its
own. The task holds the other end of the pipe LEASH_FD; when that end closes, for whatever reason (``kill -9``
included), everything in the group is killed. A death signal alone would reach the program but not its children.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading

PR_SET_PDEATHSIG = 1
CANNOT_START = 127


def main() -> int:
    """Run the program and end as it ends: same exit status, or death by the same signal."""
    leash, command = int(sys.argv[1]), sys.argv[2:]
    for caught in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(caught, _stay)  # a handler, not SIG_IGN: the program must start with the defaults
    try:
        program = subprocess.Popen(command, preexec_fn=_die_with_guard)  # noqa: PLW1509 - no threads yet
    except OSError as error:
        print(f"cannot start {command[0]}: {error.strerror}", flush=True)
        return CANNOT_START
    threading.Thread(target=_kill_group_at_end_of, args=(leash,), daemon=True).start()
    status = program.wait()
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


def _stay(*_: object) -> None:
    """Signals of the group are for the program; the guard outlives it to report its status."""


def _die_with_guard() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _kill_group_at_end_of(leash: int) -> None:
    os.read(leash, 1)
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
