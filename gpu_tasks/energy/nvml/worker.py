"""A thread that makes calls which may never return, so that the caller can stop waiting for them.

Not an executor of the standard library: those wait for their threads when the interpreter ends, for ever for a call
that hangs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class CallNotDone(Exception):
    """The call, or one before it, has not returned in time; it still runs."""


class _Job(Generic[T]):
    """One call and what became of it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.work = work
        self.done = threading.Event()
        self.value: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.value = self.work()
        except BaseException as error:  # it is raised where the call was asked for
            self.error = error
        self.done.set()


class Worker:
    """Runs calls one after the other in one thread, which lives until ``close``."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job[object] | None] = SimpleQueue()
        self._latest: _Job[object] | None = None
        self._one_at_a_time = threading.Lock()
        threading.Thread(target=self._run, name="nvml", daemon=True).start()

    def do(self, work: Callable[[], T], timeout_s: float) -> T:
        """The value of ``work()``, or what it raises; ``CallNotDone`` where neither is there after ``timeout_s``.

        While a call that was given up still runs, every further one is refused at once: it could only wait behind it.
        """
        with self._one_at_a_time:
            if self.stuck:
                raise CallNotDone
            job = _Job(work)
            self._latest = cast(_Job[object], job)
            self._jobs.put(self._latest)
            if not job.done.wait(timeout_s):
                raise CallNotDone
        if job.error is not None:
            raise job.error
        return cast(T, job.value)

    @property
    def stuck(self) -> bool:
        """Whether a call that was given up still runs."""
        return self._latest is not None and not self._latest.done.is_set()

    def close(self) -> None:
        """End the thread once it is free; does not wait for it."""
        self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.run()
