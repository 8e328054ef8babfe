"""A value that changes in steps: a clock, throttle reasons, an offset of the counter."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import numpy.typing as npt


class Steps:
    """An integer over time: ``start`` until the first change."""

    def __init__(self, start: int) -> None:
        self._times: list[float] = []
        self._values = [start]

    def set(self, time_s: float, value: int) -> None:
        """``value`` from ``time_s`` on; raises ``ValueError`` before the latest change."""
        if self._times and time_s < self._times[-1]:
            raise ValueError(f"time_s: expected {self._times[-1]} or later, found {time_s}")
        if value != self._values[-1]:
            self._times.append(time_s)
            self._values.append(value)

    def at(self, time_s: float) -> int:
        """The value at a time."""
        return self._values[bisect_right(self._times, time_s)]

    def at_all(self, times_s: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """``at`` of many times."""
        values: npt.NDArray[np.int64] = np.array(self._values, np.int64)
        return values[np.searchsorted(self._times, times_s, side="right")]

    def seconds_with(self, bit: int, until_s: float) -> float:
        """Time until ``until_s`` in which ``bit`` was set."""
        edges = [*(time for time in self._times if time < until_s), until_s]
        spans = zip(edges, edges[1:], self._values[1:], strict=False)
        return sum(end - start for start, end, value in spans if value & bit)
