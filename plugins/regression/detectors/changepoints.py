"""Change points of a whole history, with dates: when did it happen, and what has it added up to?

The history is cut where the sum of squares within the pieces, in units of the noise, falls by more than a penalty for
each cut: exact optimal partitioning with pruning (PELT; Killick, Fearnhead and Eckley, J. Am. Stat. Assoc. 107, 2012).
The noise's scale and autocorrelation are taken from differences, which changes of the mean hardly touch (Chakar et
al., Bernoulli 23, 2017), and correlated noise counts as fewer nights. ``robust`` first pulls wild nights in to their
neighbours (Hampel's filter; Davies and Gather, J. Am. Stat. Assoc. 88, 1993), so that one alone is never two changes.
Not for alerts, which need the calibration of the history shift: for dating what these found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from regression.detectors.robust import hodges_lehmann, qn_scale
from regression.detectors.series import Floats, Metric, Series, usable_nights

NEIGHBOURS = 3
"""Nights on each side that a wild night is compared with."""
WILD = 3.0
"""Standard deviations from the median of the neighbours at which a night is wild, and to which it is pulled in."""
NOISE_NIGHTS = 400
"""At most so many differences tell the noise: Qn looks at all pairs."""
LEVEL_NIGHTS = 180
"""At most so many nights on either side of a change give the levels before and after it."""
DATE_95 = -2 * math.log(1 - math.sqrt(0.95))
"""Fall of twice the log likelihood that bounds the date with 95 % (Siegmund, Int. Stat. Rev. 56, 1988)."""


@dataclass(frozen=True)
class ChangePointSettings:
    """A cut must gain ``evidence`` + 2 log(nights), in variances of the noise (6: a z of about 4 in half a year)."""

    evidence: float = 6.0
    robust: bool = True


@dataclass(frozen=True)
class ChangePoint:
    """One change. ``index`` counts the usable nights and is the first night of the new level, at ``time`` (UTC).

    It lies between ``earliest`` and ``latest`` with 95 %. Levels are in the metric's unit; ``since_first`` is the
    relative change from the level of the first piece, None where that is 0. ``statistic`` is in standard deviations.
    """

    index: int
    time: str
    earliest: str
    latest: str
    before: float
    after: float
    since_first: float | None
    statistic: float

    @property
    def relative(self) -> float | None:
        """Change in units of the level before; None where that is 0."""
        return self.after / self.before - 1 if self.before else None

    def as_json(self) -> dict[str, Any]:
        """The change with JSON values only."""
        return {**self.__dict__, "relative": self.relative}


DEFAULT = ChangePointSettings()


def change_points(series: Series, settings: ChangePointSettings = DEFAULT) -> tuple[ChangePoint, ...]:
    """Changes of the level of ``series`` as large as the floors of its metric, in order of time; each date once."""
    nights = usable_nights(series)
    if len(nights) < 3:
        return ()
    scale, memory = difference_noise(nights.values)
    if scale <= 1e-12 * float(np.max(np.abs(nights.values))):
        return ()
    values = pulled_in(nights.values, scale) if settings.robust else nights.values
    scaled = (values - float(np.median(values))) / (scale * math.sqrt((1 + memory) / (1 - memory)))
    penalty = settings.evidence + 2 * math.log(len(nights))
    cuts = _large_enough(nights.values, partition(scaled, penalty), series.metric)
    edges = [0, *cuts, len(nights)]
    first = _level(nights.values[: edges[1]][:LEVEL_NIGHTS])
    found = []
    for left, cut, right in zip(edges, edges[1:], edges[2:], strict=False):
        gains = _gains(scaled[left:right])
        likely = np.flatnonzero(gains >= gains[cut - left - 1] - DATE_95) + left + 1
        before = _level(nights.values[left:cut][-LEVEL_NIGHTS:])
        after = _level(nights.values[cut:right][:LEVEL_NIGHTS])
        found.append(
            ChangePoint(
                cut,
                nights.date(cut),
                nights.date(int(min(likely[0], cut))),
                nights.date(int(max(likely[-1], cut))),
                before,
                after,
                after / first - 1 if first else None,
                math.sqrt(max(0.0, float(gains[cut - left - 1]))),
            )
        )
    return tuple(found)


def difference_noise(values: Floats) -> tuple[float, float]:
    """Scale of one night and autocorrelation (0 to 0.95) from Qn of differences over one and two nights.

    Of a long history, evenly chosen differences; without correlation where most nights are equal or there are few.
    """
    one, two = values[1:] - values[:-1], values[2:] - values[:-2]
    first = qn_scale(_thinned(one))
    if len(values) <= 10 or float(np.median(np.abs(one))) == 0:
        return first / math.sqrt(2), 0.0
    phi = min(0.95, max(0.0, qn_scale(_thinned(two)) ** 2 / first**2 - 1))
    return first / math.sqrt(2 * (1 - phi)), phi


def pulled_in(values: Floats, scale: float) -> Floats:
    """Values with the wild ones moved to the edge of what their neighbours allow; shape as before."""
    padded = np.pad(values, NEIGHBOURS, constant_values=np.nan)
    middles = np.nanmedian(np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1), axis=1)
    return np.asarray(np.clip(values, middles - WILD * scale, middles + WILD * scale), dtype=np.float64)


def partition(values: Floats, penalty: float) -> list[int]:
    """First indices of all pieces but the first that minimise the squares within pieces plus a penalty for each."""
    count = len(values)
    sums, squares = _cumulated(values), _cumulated(values**2)
    best = np.full(count + 1, -penalty)
    previous = np.zeros(count + 1, dtype=np.intp)
    starts = np.array([0])
    for end in range(1, count + 1):
        within = squares[end] - squares[starts] - (sums[end] - sums[starts]) ** 2 / (end - starts)
        costs = best[starts] + within
        chosen = int(np.argmin(costs))
        best[end], previous[end] = costs[chosen] + penalty, starts[chosen]
        starts = np.append(starts[costs <= best[end]], end)
    cuts, end = [], int(previous[count])
    while end > 0:
        cuts.append(end)
        end = int(previous[end])
    return cuts[::-1]


def _large_enough(values: Floats, cuts: list[int], metric: Metric) -> list[int]:
    """Cuts without those whose change is below a floor, the smallest one first."""
    cuts = list(cuts)
    while cuts:
        edges = [0, *cuts, len(values)]
        pieces = pairwise(edges)
        levels = [_level(values[left:right][-LEVEL_NIGHTS:]) for left, right in pieces]
        lacks = [
            abs(after - before) - max(metric.relative_floor * abs(before), metric.absolute_floor)
            for before, after in pairwise(levels)
        ]
        smallest = int(np.argmin(lacks))
        if lacks[smallest] >= 0:
            break
        del cuts[smallest]
    return cuts


def _gains(values: Floats) -> Floats:
    """What one cut after each value but the last takes off the squares; shape (n - 1,)."""
    sums, count = np.cumsum(values), len(values)
    left = np.arange(1, count)
    return np.asarray((sums[:-1] - left * sums[-1] / count) ** 2 * count / (left * (count - left)), dtype=np.float64)


def _thinned(values: Floats) -> Floats:
    """At most ``NOISE_NIGHTS`` of the values, evenly spread."""
    chosen = np.linspace(0, len(values) - 1, min(len(values), NOISE_NIGHTS)).astype(np.intp)
    return np.asarray(values[chosen], dtype=np.float64)


def _level(values: Floats) -> float:
    return hodges_lehmann(values)


def _cumulated(values: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(values)])
