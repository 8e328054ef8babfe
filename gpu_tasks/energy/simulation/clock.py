"""A clock that nobody waits for."""

from __future__ import annotations

START_S = 1000.0


class VirtualClock:
    """``gpu_tasks.energy.instruments.Clock`` whose time passes only when somebody sleeps or works: never in reality."""

    def __init__(self, start_s: float = START_S) -> None:
        self._now_s = start_s

    def now(self) -> float:
        """Virtual monotonic seconds."""
        return self._now_s

    def sleep(self, seconds: float) -> None:
        """Be ``seconds`` later at once; not at all where they are not positive."""
        if seconds > 0:
            self._now_s += seconds
