"""Processes whose life is tied to that of the one that started them, however that one ends."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """In a child of the process ``parent``: have the kernel kill this one as soon as that one is gone.

    It is the thread of the parent that started the child that counts, so only the main one may. What the child starts
    itself is not tied. Nothing where the kernel cannot (it is not Linux).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "prctl"):
        return
    libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it was gone before the line above took effect
        os._exit(1)
