"""File locks of one installation: the kernel releases them however their holder ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.errors import LauncherError


class FileLock:
    """An advisory lock (``flock``) on a file; an exclusive holder writes its pid into it for others to name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self, *, shared: bool = False) -> bool:
        """Try to take the lock; False when somebody else holds it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        if not shared:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        self._descriptor = descriptor
        return True

    def wait(self, timeout_s: float, *, shared: bool = False) -> bool:
        """Take the lock as soon as it is free; False after ``timeout_s`` seconds."""
        deadline = time.monotonic() + timeout_s
        while not self.acquire(shared=shared):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def release(self) -> None:
        """Let go; no-op when not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def is_held(self) -> bool:
        """Whether somebody holds it exclusively (this object included)."""
        if self._descriptor is not None:
            return True
        if not self.path.exists():
            return False
        probe = FileLock(self.path)
        free = probe.acquire(shared=True)
        probe.release()
        return not free

    def holder(self) -> str:
        """Pid of the exclusive holder as text, for messages."""
        try:
            return self.path.read_text().strip() or "unknown"
        except OSError:
            return "unknown"


@contextmanager
def exclusive(path: Path, what: str) -> Iterator[None]:
    """Hold ``path`` or say who does: two of the same kind never run at once."""
    lock = FileLock(path)
    if not lock.acquire():
        raise LauncherError(f"{what} is in progress already (pid {lock.holder()}); nothing was changed")
    try:
        yield
    finally:
        lock.release()
