"""How far an energy figure can be from the truth, from how it was read.

A figure is a weighted sum of counter readings, and of the idle power's means over stretches of time. Every source of
error enters through those weights, so that one function serves every protocol. Method: the boundary error of one
reading is ``P^2*(U^2/12 + s_t^2) + q^2/12`` with the counter's update period U, the moment of the reading within its
call (uniform: s_t = duration/sqrt(12)) and the counter's unit q = 1 mJ. At a step of the counter the period drops out
and the time between the two reads around it takes its place. Readings of the same tick share its error. Idle power
that wanders as a random walk adds the integral of the squared running sum of the stretches' weights.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from gpu_tasks.energy.quantiles import half_width_95, t_quantile
from gpu_tasks.records import CounterEdge, CounterReading, IdleWander, Uncertainty

UNIT_MJ = 1.0
_TWO_SIDED_95 = 0.975


@dataclass(frozen=True)
class Term:
    """One reading in a figure: ``weight`` (1/replays) times its mJ; ``power_w`` is what flowed just before it.

    At an edge the energy is exact and the time is not: there ``power_w`` is the idle power, which time is charged with.
    """

    weight: float
    power_w: float
    reading: CounterReading | CounterEdge


@dataclass(frozen=True)
class Stretch:
    """``weight`` (s/replays) times the mean idle power from ``start_s`` to ``end_s``; those of a figure add up to 0."""

    start_s: float
    end_s: float
    weight: float


@dataclass(frozen=True)
class Surroundings:
    """What the readings were taken in: the counter's update period in s, and how the idle power wanders.

    ``wander`` None: that was not measured, and is left out of the uncertainty.
    """

    tick_period_s: float
    wander: IdleWander | None


def uncertainty(
    value_mj: float,
    terms: Sequence[Term],
    stretches: Sequence[Stretch],
    around: Surroundings,
    *,
    other_bias_mj: float = 0.0,
) -> Uncertainty:
    """Standard uncertainties of ``value_mj`` by source, its expected bias and its 95 % interval.

    ``other_bias_mj`` is what is known of the figure's bias beside the readings' own.
    """
    wander, period_s = around.wander, around.tick_period_s
    plain = [term for term in terms if isinstance(term.reading, CounterReading)]
    ticks = [1000 * period_s / 2 * weight for weight in _by_tick(plain)]
    timings = [1000 * t.weight * t.power_w * _time_width_s(t.reading) / 2 for t in terms]
    units = [UNIT_MJ / 2 * t.weight for t in terms]
    tick, timing, quantisation = (_root_of_squares(halves) / math.sqrt(3) for halves in (ticks, timings, units))
    drift = 0.0
    if wander is not None:
        drift = 1000 * wander.walk_w_per_sqrt_s * math.sqrt(walk_variance(stretches))
    combined = _root_of_squares([tick, timing, quantisation, drift])
    # A reading is late by half a period on average, so it lacks that much of the power before it.
    bias = -period_s / 2 * 1000 * sum(t.weight * t.power_w for t in plain) + other_bias_mj
    freedom = _effective_freedom(combined, drift, wander)
    half_width = half_width_95([abs(half) for half in (*ticks, *timings, *units)], drift)
    # The wander was itself estimated from a few segments: as much wider as Student's t is beside the normal.
    half_width *= _quantile(None if freedom is None else round(freedom, 1)) / _quantile(None)
    return Uncertainty(
        tick_mj=tick,
        timing_mj=timing,
        quantisation_mj=quantisation,
        drift_mj=drift,
        combined_mj=combined,
        bias_mj=bias,
        degrees_of_freedom=freedom,
        low_mj=value_mj - bias - half_width,
        high_mj=value_mj - bias + half_width,
    )


def walk_variance(stretches: Sequence[Stretch]) -> float:
    """Variance of the sum of ``weight`` times mean over stretches, of a random walk with unit variance a second.

    The integral over time of F(t)^2, F being the running integral of the weights' density: it is linear between the
    ends of stretches, and zero outside because the weights add up to zero.
    """
    moments = sorted({moment for s in stretches for moment in (s.start_s, s.end_s)})
    total, running = 0.0, 0.0
    for left, right in pairwise(moments):
        density = sum(s.weight / (s.end_s - s.start_s) for s in stretches if s.start_s <= left and right <= s.end_s)
        following = running + density * (right - left)
        total += (right - left) / 3 * (running**2 + running * following + following**2)
        running = following
    return total


def edge_time_s(edge: CounterEdge) -> float:
    """The most likely moment of a step: halfway between the reads on both sides."""
    return (edge.before_s + edge.after_s) / 2


def _by_tick(terms: Sequence[Term]) -> list[float]:
    """Weight times power, W/replays, summed over the readings of each tick: they are late by the same time."""
    sums: dict[int, float] = defaultdict(float)
    for term in terms:
        sums[term.reading.energy_mj] += term.weight * term.power_w
    return list(sums.values())


def _time_width_s(reading: CounterReading | CounterEdge) -> float:
    """How long the moment may lie anywhere in: between two reads, or within one."""
    if isinstance(reading, CounterEdge):
        return reading.after_s - reading.before_s
    return reading.read_duration_s


def _effective_freedom(combined: float, drift: float, wander: IdleWander | None) -> float | None:
    """Welch and Satterthwaite: only the wander was estimated from few values; the other parts are known."""
    if wander is None or not drift:
        return None
    return max(1.0, (combined / drift) ** 4 * wander.degrees_of_freedom)


@lru_cache(maxsize=4096)
def _quantile(freedom: float | None) -> float:
    return t_quantile(_TWO_SIDED_95, freedom)


def _root_of_squares(values: Sequence[float]) -> float:
    return math.sqrt(sum(value * value for value in values))
