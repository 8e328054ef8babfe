"""The total-energy counter: mJ, a step every tick, and in between whatever the last step left."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gpu_tasks.energy.simulation.steps import Steps

PERIOD_TOLERANCE = 0.01
"""The period is this near to the nominal one, as shares: no window that people choose is a whole number of ticks.

On the record's host steps of 3.72 J at 37 W make it 100.5 ms, which is why its windows of 5 s scatter as they do.
"""

JITTER = 0.005
"""Standard deviation of a step's time, as a share of the tick period; cut off at ``JITTER_LIMIT``."""

JITTER_LIMIT = 0.02
CHUNK = 1024
SINCE_DRIVER_LOAD_MJ = (10**9, 10**11)


class EnergyCounter:
    """Steps about every ``period_s`` from shortly before ``start_s`` on, with a random phase and a little jitter.

    ``energy_j`` is the energy since the start by time. A step takes the energy up to its own moment, whole mJ of it.
    """

    def __init__(
        self, energy_j: Callable[[float], float], period_s: float, rng: np.random.Generator, start_s: float
    ) -> None:
        if not (math.isfinite(period_s) and period_s > 0):
            raise ValueError(f"period_s: expected seconds above 0, found {period_s}")
        self._energy_j = energy_j
        self._period_s = period_s * (1 + float(rng.uniform(-PERIOD_TOLERANCE, PERIOD_TOLERANCE)))
        self._rng = rng
        self._first_s = start_s - (float(rng.uniform()) + JITTER_LIMIT) * self._period_s
        self._loaded_mj = int(rng.integers(*SINCE_DRIVER_LOAD_MJ))
        self._jitter: npt.NDArray[np.float64] = np.zeros(0)
        self._fallen_mj = Steps(0)
        self._stuck_s = math.inf
        self._step: tuple[int, int] | None = None  # the latest one asked for and its value

    def value_mj(self, time_s: float) -> int:
        """What the counter holds at a time."""
        step = self.step_before(min(time_s, self._stuck_s))
        if self._step is None or self._step[0] != step:
            self._step = (step, self._loaded_mj + math.floor(1000 * self._energy_j(self.step_s(step))))
        return self._step[1] - self._fallen_mj.at(time_s)

    def step_s(self, step: int) -> float:
        """When a step takes place; number 0 is the last or the last but one before the start."""
        while step >= len(self._jitter):
            draws = np.clip(self._rng.normal(0.0, JITTER, CHUNK), -JITTER_LIMIT, JITTER_LIMIT)
            self._jitter = np.concatenate((self._jitter, draws))
        return self._first_s + (step + self._jitter.item(step)) * self._period_s

    def step_before(self, time_s: float) -> int:
        """The latest step at or before a time, number 0 where there is none."""
        step = max(int((time_s - self._first_s) / self._period_s), 0)
        if step and time_s < self.step_s(step):
            return step - 1
        return step + 1 if time_s >= self.step_s(step + 1) else step

    def stick(self, time_s: float) -> None:
        """No step any more from ``time_s`` on."""
        self._stuck_s = min(self._stuck_s, time_s)

    def fall(self, time_s: float, by_mj: int) -> None:
        """The counter loses ``by_mj`` at ``time_s``, and goes on from there."""
        self._fallen_mj.set(time_s, self._fallen_mj.at(math.inf) + by_mj)
