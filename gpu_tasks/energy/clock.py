"""The monotonic clock of this machine."""

from __future__ import annotations

import time


class MonotonicClock:
    """CLOCK_MONOTONIC: on Linux one clock for all processes of a machine, so that their times can be compared."""

    def now(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait ``seconds``; not at all where they are not positive."""
        if seconds > 0:
            time.sleep(seconds)
