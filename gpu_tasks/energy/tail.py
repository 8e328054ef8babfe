"""The power tail: after the last replay the power does not fall at once, and what it still carries is work's energy.

The protocols that read the counter with the last replay lose it, and the classic one takes it for idle power besides.
It is measured in every round: the energy above idle from the first counter step after the work to one after the power
has settled, carried back to the end of the work as an exponential decay.
"""

from __future__ import annotations

import math

from gpu_tasks.energy.uncertainty import edge_time_s
from gpu_tasks.records import AlignedReadings

LONGEST_S = 2.0
_STEPS = 60


def tail_energy_j(aligned: AlignedReadings, work_ended_s: float, active_w: float, idle_w: float) -> float:
    """Energy above idle in J after the end of the work; 0 where nothing above idle is seen.

    With ``rise = active_w - idle_w``, the energy after the delay d to the first step is ``rise*tau*exp(-d/tau)``; tau
    is found by bisection, and the tail is ``rise*tau``.
    """
    first, last = edge_time_s(aligned.tail_start), edge_time_s(aligned.active_end)
    energy_j = (aligned.active_end.energy_mj - aligned.tail_start.energy_mj) / 1000
    above_j = energy_j - idle_w * (last - first)
    rise_w = active_w - idle_w
    if above_j <= 0 or rise_w <= 0:
        return 0.0
    delay = max(0.0, first - work_ended_s)
    low, high = 0.0, LONGEST_S
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if rise_w * middle * math.exp(-delay / middle) < above_j:
            low = middle
        else:
            high = middle
    return rise_w * low
