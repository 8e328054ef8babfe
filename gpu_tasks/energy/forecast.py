"""What a protocol can tell apart on a device, before any round is measured: from its tick, its idle power, its drift.

A round is written down as it would be read if nothing were random, and its uncertainty is that of a real one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpu_tasks.energy import protocols
from gpu_tasks.energy.interleaved import CANDIDATE, CONTROL, IDLE, interleaved_figures
from gpu_tasks.energy.protocols import CLASSIC_IDLE_S, Plan
from gpu_tasks.energy.uncertainty import Surroundings
from gpu_tasks.energy.window_figures import window_figures
from gpu_tasks.records import (
    AlignedReadings,
    AuditedReadings,
    CounterEdge,
    CounterReading,
    EnergyFigure,
    IdleWindow,
    Segment,
)


@dataclass(frozen=True)
class Conditions:
    """Of the device and the task: its counter, read latency in s, idle and active power in W, seconds a replay."""

    around: Surroundings
    read_latency_s: float
    idle_w: float
    active_w: float
    replay_s: float


def forecast(conditions: Conditions, plans: Sequence[Plan], blocks: int) -> dict[str, EnergyFigure]:
    """The figures that one round of each plan would have, by name, and of the interleaved protocol with ``blocks``."""
    found: dict[str, EnergyFigure] = {}
    for plan in plans:
        for figure in _plan_figures(plan, conditions):
            found.setdefault(f"{figure.figure} ({plan.name} round)", figure)
    segments = _segments(conditions, blocks)
    for figure in interleaved_figures(segments, conditions.around) if segments else []:
        found[f"interleaved, {figure.subject}"] = figure
    return found


class _Counter:
    """The counter of a device whose power is ``active_w`` from 0 to ``work_s`` and ``idle_w`` otherwise."""

    def __init__(self, conditions: Conditions, work_s: float) -> None:
        self._c, self._work_s = conditions, work_s

    def energy_mj(self, time_s: float) -> int:
        """Energy in mJ at a time, from far before 0."""
        busy_s = min(max(time_s, 0.0), self._work_s)
        above = (self._c.active_w - self._c.idle_w) * busy_s
        return round(1000 * (self._c.idle_w * (time_s + 1000) + above))

    def read(self, time_s: float) -> CounterReading:
        """A reading: what the counter stood at when it stepped last."""
        period = self._c.around.tick_period_s
        stepped = math.floor(time_s / period) * period
        return CounterReading(self.energy_mj(stepped), time_s, self._c.read_latency_s)

    def edge(self, time_s: float) -> CounterEdge:
        """A step at a time, between two reads."""
        half = self._c.read_latency_s / 2
        return CounterEdge(self.energy_mj(time_s), time_s - half, time_s + half)

    def window(self, start_s: float, end_s: float) -> IdleWindow:
        """An idle window of plain readings."""
        return IdleWindow(self.read(start_s), self.read(end_s), self._c.idle_w)


def _plan_figures(plan: Plan, conditions: Conditions) -> Sequence[EnergyFigure]:
    repeats = plan.repeats(conditions.replay_s)
    work_s = repeats * conditions.replay_s
    counter = _Counter(conditions, work_s)
    gap_s = conditions.around.tick_period_s / 2  # of the random delay before the classic reading at the start
    settled_s = work_s + max(plan.settle_s, protocols.TAIL_S)
    idle_end_s = settled_s + plan.idle_s if plan.settle_s else work_s + CLASSIC_IDLE_S
    aligned = AlignedReadings(
        idle_before=[counter.edge(-plan.idle_s - gap_s), counter.edge(-gap_s)],
        active_start=counter.edge(-gap_s),
        tail_start=counter.edge(work_s + gap_s),
        active_end=counter.edge(settled_s),
        idle_after=[counter.edge(settled_s), counter.edge(idle_end_s)],
    )
    settled = AuditedReadings(
        counter.window(-plan.idle_s - 3 * gap_s, -3 * gap_s), counter.window(settled_s, idle_end_s)
    )
    start, end = counter.read(0.0), counter.read(work_s)
    before, after = settled.idle_before, settled.idle_after
    if not plan.settled:
        before = counter.window(-CLASSIC_IDLE_S - 3 * gap_s, -3 * gap_s)
        after = counter.window(work_s, work_s + CLASSIC_IDLE_S)
    return window_figures(
        repeats,
        start,
        end,
        before,
        after,
        aligned=aligned,
        audited=settled if plan.settle_s and not plan.settled else None,
        around=conditions.around,
        settled=plan.settled,
    )


def _segments(conditions: Conditions, blocks: int) -> list[Segment]:
    """Segments one after the other, mirrored in each block, without their random order."""
    repeats = math.ceil(protocols.SEGMENT_ACTIVE_S / conditions.replay_s)
    order = [IDLE, CONTROL, CANDIDATE]
    counter = _Counter(conditions, 0.0)
    segments, now = [], 0.0
    edge = counter.edge(now)
    for block in range(blocks):
        for arm in [*order, *reversed(order)]:
            busy = arm != IDLE
            now += protocols.SEGMENT_ACTIVE_S + (protocols.SEGMENT_SETTLE_S if busy else 0.0)
            following = counter.edge(now + conditions.around.tick_period_s / 2)
            replays = repeats if busy else 0
            segments.append(Segment(block, arm, replays, edge, following, protocols.SEGMENT_ACTIVE_S, None))
            edge = following
    return segments
