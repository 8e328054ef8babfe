"""A long look at an idle GPU: the counter's steps one by one, then its power at steps over the time wished for."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from itertools import pairwise

from gpu_tasks.energy.counter import idle_wander, next_edge, read_latency_s
from gpu_tasks.energy.instruments import Instruments
from gpu_tasks.energy.preflight import refuse_unfit
from gpu_tasks.energy.protocols import Say, idle_stretch
from gpu_tasks.energy.uncertainty import edge_time_s
from gpu_tasks.energy.window_figures import edges_power_w
from gpu_tasks.records import IdleWander

TICKS = 50
SETTLE_S = 3.0
LATENCY_READS = 100
SEGMENT_S = 5.0


@dataclass(frozen=True)
class Probe:
    """What was seen. ``ticks_s`` are the times between neighbouring steps, ``powers_w`` the mean power by segment.

    ``times_s`` are the middles of the segments, from the beginning.
    """

    tick_period_s: float
    tick_low_s: float
    tick_high_s: float
    ticks_s: list[float]
    read_latency_s: float
    duration_s: float
    idle_w: float
    slope_w_per_s: float
    walk_w_per_sqrt_s: float
    times_s: list[float]
    powers_w: list[float]
    wander: IdleWander | None


def probe(instruments: Instruments, seconds: float, power_limit_w: float | None, say: Say) -> Probe:
    """Look at the idle GPU for ``seconds``; raises what the preflight and the counter raise."""
    gpu, clock = instruments.gpu, instruments.clock
    refuse_unfit(instruments, power_limit_w)
    say("settle", SETTLE_S)
    clock.sleep(SETTLE_S)
    latency = read_latency_s([gpu.read_counter() for _ in range(LATENCY_READS)])
    times = [edge_time_s(next_edge(gpu, clock)) for _ in range(TICKS + 1)]
    ticks = [b - a for a, b in pairwise(times)]
    edges = idle_stretch(instruments, seconds, SEGMENT_S, say)
    wander = idle_wander(edges)
    begin = edge_time_s(edges[0])
    return Probe(
        tick_period_s=statistics.median(ticks),
        tick_low_s=min(ticks),
        tick_high_s=max(ticks),
        ticks_s=ticks,
        read_latency_s=latency,
        duration_s=edge_time_s(edges[-1]) - begin,
        idle_w=edges_power_w(edges),
        slope_w_per_s=wander.slope_w_per_s if wander else 0.0,
        walk_w_per_sqrt_s=wander.walk_w_per_sqrt_s if wander else 0.0,
        times_s=[(edge_time_s(a) + edge_time_s(b)) / 2 - begin for a, b in pairwise(edges)],
        powers_w=[edges_power_w(pair) for pair in pairwise(edges)],
        wander=wander,
    )
