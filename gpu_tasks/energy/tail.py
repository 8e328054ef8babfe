"""The power tail: after the last replay the power does not fall at once, and what it still carries is work's energy.

The protocols that read the counter with the last replay lose it, and the classic one takes it for idle power besides.
It is measured in every round: the energy above idle from the first counter step after the work to one after the power
has settled, carried back to the end of the work as an exponential decay.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpu_tasks.energy.uncertainty import edge_time_s
from gpu_tasks.records import AlignedReadings

LONGEST_S = 2.0
_STEPS = 60


@dataclass(frozen=True)
class Tail:
    """An exponential decay from ``rise_w`` above idle with a time constant in s; 0 where nothing above idle is seen."""

    rise_w: float
    constant_s: float

    @property
    def energy_j(self) -> float:
        """All of it, from the end of the work on."""
        return self.rise_w * self.constant_s

    def left_j(self, after_s: float) -> float:
        """What of it comes later than ``after_s`` after the end of the work."""
        return self.energy_j * math.exp(-after_s / self.constant_s) if self.constant_s else 0.0


def power_tail(aligned: AlignedReadings, work_ended_s: float, active_w: float, idle_w: float) -> Tail:
    """The tail of one round.

    With ``rise = active_w - idle_w``, the energy after the delay d to the first step is ``rise*tau*exp(-d/tau)``; tau
    is found by bisection.
    """
    first, last = edge_time_s(aligned.tail_start), edge_time_s(aligned.active_end)
    energy_j = (aligned.active_end.energy_mj - aligned.tail_start.energy_mj) / 1000
    above_j = energy_j - idle_w * (last - first)
    rise_w = active_w - idle_w
    if above_j <= 0 or rise_w <= 0:
        return Tail(0.0, 0.0)
    delay = max(0.0, first - work_ended_s)
    low, high = 0.0, LONGEST_S
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if rise_w * middle * math.exp(-delay / middle) < above_j:
            low = middle
        else:
            high = middle
    return Tail(rise_w, low)
