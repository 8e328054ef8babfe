"""A first-order lag behind a target that changes in steps, in closed form: value and integral, exactly."""

from __future__ import annotations

import math
from bisect import bisect_right

import numpy as np
import numpy.typing as npt

Float64Array = npt.NDArray[np.float64]

MANY = 4096
"""Changes after which it is looked whether old ones may be forgotten."""


class Lag:
    """``dy/dt = (target - y) / constant_s``, starting settled at ``target``.

    Between two changes of the target ``y(t) = g + (y0 - g) e^(-(t - t0)/c)``, and its integral is as closed; nothing is
    stepped, so that no figure depends on how often it is asked for.
    """

    def __init__(self, constant_s: float, start_s: float, target: float = 0.0) -> None:
        self._constant_s = constant_s
        self._starts = [start_s]
        self._targets = [target]
        self._values = [target]
        self._integrals = [0.0]

    def set_target(self, time_s: float, target: float) -> None:
        """From ``time_s`` on; raises ``ValueError`` before the latest change."""
        last = self._starts[-1]
        if time_s < last:
            raise ValueError(f"time_s: expected {last} or later, found {time_s}")
        if target == self._targets[-1]:
            return
        value, integral = self._value(-1, time_s), self._integral(-1, time_s)
        if time_s == last and len(self._starts) > 1:
            self._drop(-1)
            if target == self._targets[-1]:
                return
        self._starts.append(time_s)
        self._targets.append(target)
        self._values.append(value)
        self._integrals.append(integral)

    def forget_before(self, time_s: float) -> None:
        """Drop the changes that no time from ``time_s`` on depends on; earlier times can no longer be asked for."""
        keep = bisect_right(self._starts, time_s) - 1
        if keep >= MANY:
            for column in (self._starts, self._targets, self._values, self._integrals):
                del column[:keep]

    def value(self, time_s: float) -> float:
        """The lagged value at a time."""
        return self._value(self._index(time_s), time_s)

    def integral(self, time_s: float) -> float:
        """Integral of the value from the start to a time."""
        return self._integral(self._index(time_s), time_s)

    def values(self, times_s: Float64Array) -> Float64Array:
        """``value`` of many times."""
        index = np.searchsorted(self._starts, times_s, side="right") - 1
        if index.size and index.min() < 0:
            raise ValueError(f"times_s: expected {self._starts[0]} or later, found {times_s.min()}")
        start, target, value = (np.array(column)[index] for column in (self._starts, self._targets, self._values))
        lagged: Float64Array = target + (value - target) * np.exp((start - times_s) / self._constant_s)
        return lagged

    @property
    def changes(self) -> int:
        """Changes that are remembered."""
        return len(self._starts)

    def _index(self, time_s: float) -> int:
        if time_s >= self._starts[-1]:
            return -1
        index = bisect_right(self._starts, time_s) - 1
        if index < 0:
            raise ValueError(f"time_s: expected {self._starts[0]} or later, found {time_s}")
        return index

    def _value(self, index: int, time_s: float) -> float:
        target = self._targets[index]
        elapsed = time_s - self._starts[index]
        return target + (self._values[index] - target) * math.exp(-elapsed / self._constant_s)

    def _integral(self, index: int, time_s: float) -> float:
        target, elapsed, constant = self._targets[index], time_s - self._starts[index], self._constant_s
        tail = (self._values[index] - target) * constant * math.expm1(-elapsed / constant)
        return self._integrals[index] + target * elapsed - tail

    def _drop(self, index: int) -> None:
        for column in (self._starts, self._targets, self._values, self._integrals):
            del column[index]


class FlooredLag(Lag):
    """A lag that is never seen below ``floor``: ``max(y(t), floor)``, and the integral of that, exactly."""

    def __init__(self, constant_s: float, start_s: float, floor: float) -> None:
        super().__init__(constant_s, start_s, 0.0)
        self._floor = floor

    def value(self, time_s: float) -> float:
        """What is seen at a time."""
        return max(super().value(time_s), self._floor)

    def values(self, times_s: Float64Array) -> Float64Array:
        """``value`` of many times."""
        return np.maximum(super().values(times_s), self._floor)

    def _integral(self, index: int, time_s: float) -> float:
        """Between two changes the lagged value crosses the floor once, if at all."""
        start_s, before = self._starts[index], self._integrals[index]
        target, first, last = self._targets[index], self._values[index], self._value(index, time_s)
        if min(first, last) >= self._floor:
            return super()._integral(index, time_s)
        if max(first, last) <= self._floor:
            return before + self._floor * (time_s - start_s)
        crossing_s = start_s + self._constant_s * math.log((first - target) / (self._floor - target))
        until_crossing = super()._integral(index, crossing_s)
        if first > last:
            return until_crossing + self._floor * (time_s - crossing_s)
        risen = super()._integral(index, time_s) - until_crossing
        return before + self._floor * (crossing_s - start_s) + risen
