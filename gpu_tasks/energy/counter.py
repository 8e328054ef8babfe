"""What can be learnt from the energy counter by polling it: its steps, their period, and how idle power wanders."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise

from gpu_tasks.energy.instruments import Clock, Gpu
from gpu_tasks.energy.uncertainty import UNIT_MJ, edge_time_s
from gpu_tasks.records import CounterEdge, CounterReading, IdleWander, InvalidMeasurement

EDGE_TIMEOUT_S = 1.0
"""A counter that does not step for so long is stuck: the slowest known one steps every 0.1 s."""

TICKS_MEASURED = 10
WANDER_SEGMENT_S = 5.0
WANDER_S = 60.0

_CORRELATION = 0.25  # of neighbouring differences between a random walk's means
_NEIGHBOURS = 1 + 2 * _CORRELATION**2  # by how much that lessens the degrees of freedom


def next_edge(gpu: Gpu, clock: Clock) -> CounterEdge:
    """Poll until the counter steps; raises ``InvalidMeasurement``: ``counter_not_advancing``, ``counter_backwards``."""
    deadline = clock.now() + EDGE_TIMEOUT_S
    last = gpu.read_counter()
    while True:
        reading = gpu.read_counter()
        if reading.energy_mj != last.energy_mj:
            break
        last = reading
        if clock.now() > deadline:
            message = f"energy counter: expected a step within {EDGE_TIMEOUT_S} s, found {last.energy_mj} mJ all along"
            raise InvalidMeasurement("counter_not_advancing", message)
    if reading.energy_mj < last.energy_mj:
        message = f"energy counter: expected it to rise, found {reading.energy_mj} mJ after {last.energy_mj} mJ"
        raise InvalidMeasurement("counter_backwards", message)
    return CounterEdge(reading.energy_mj, last.time_s, reading.time_s)


def tick_period_s(gpu: Gpu, clock: Clock) -> float:
    """The counter's update period: median time between neighbouring steps."""
    edges = [next_edge(gpu, clock) for _ in range(TICKS_MEASURED + 1)]
    times = [edge_time_s(edge) for edge in edges]
    return statistics.median(b - a for a, b in pairwise(times))


def read_latency_s(readings: Sequence[CounterReading]) -> float:
    """Median duration of one read."""
    return statistics.median(reading.read_duration_s for reading in readings)


def idle_edges(gpu: Gpu, clock: Clock, seconds: float, segment_s: float) -> list[CounterEdge]:
    """Counter steps about every ``segment_s`` over an idle stretch of ``seconds``, the first and the last included."""
    start = clock.now()
    edges = [next_edge(gpu, clock)]
    for number in range(1, max(1, round(seconds / segment_s)) + 1):
        clock.sleep(max(0.0, start + number * segment_s - clock.now()))
        edges.append(next_edge(gpu, clock))
    return edges


def idle_wander(edges: Sequence[CounterEdge]) -> IdleWander | None:
    """How the idle power between ``edges`` wanders; None of fewer than four segments.

    The mean powers of neighbouring segments of length L differ by a variance of ``2/3*L`` times that of the walk in one
    second, plus ``6*s^2/L^2`` of the edges' own energy error s. The mean difference is a steady slope, which cancels
    in every protocol, and is taken off.
    """
    if len(edges) < 5:
        return None
    times = [edge_time_s(edge) for edge in edges]
    lengths = [b - a for a, b in pairwise(times)]
    powers = [
        (b.energy_mj - a.energy_mj) / 1000 / length for (a, b), length in zip(pairwise(edges), lengths, strict=True)
    ]
    steps = [b - a for a, b in pairwise(powers)]
    length, power = statistics.mean(lengths), statistics.mean(powers)
    reading = statistics.mean((power * (e.after_s - e.before_s)) ** 2 / 12 for e in edges) + (UNIT_MJ / 1000) ** 2 / 12
    # The mean that is taken off follows correlated steps more closely than independent ones, so less is left.
    n = len(steps)
    left = n / (n - 1) * (1 - (1 + 2 * _CORRELATION * (n - 1) / n) / n)
    walk = (statistics.variance(steps) / left - 6 * reading / length**2) / (2 / 3 * length)
    return IdleWander(
        duration_s=times[-1] - times[0],
        segments=len(powers),
        power_w=power,
        slope_w_per_s=statistics.mean(steps) / length,
        walk_w_per_sqrt_s=max(0.0, walk) ** 0.5,
        degrees_of_freedom=(len(steps) - 1) / _NEIGHBOURS,
    )
