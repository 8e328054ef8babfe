"""Series of nights: one metric of one device, workload, protocol and segment, as the history detectors take it.

Everything untidy is settled here, at the door: units become the metric's own, times must be aware, order does not
matter, and a night without a usable figure is dropped and counted, so that it changes nothing for the others.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

UNITS: dict[str, tuple[str, float]] = {
    "J": ("energy", 1.0),
    "mJ": ("energy", 1e-3),
    "uJ": ("energy", 1e-6),
    "s": ("time", 1.0),
    "ms": ("time", 1e-3),
    "us": ("time", 1e-6),
    "ns": ("time", 1e-9),
    "W": ("power", 1.0),
    "mW": ("power", 1e-3),
}
"""Units that are known: what they measure, and how many of its base unit one is."""

HIGHER, LOWER = "higher", "lower"


class SeriesError(ValueError):
    """A series that cannot be what it says: names the field, what was expected and what was found."""


@dataclass(frozen=True)
class Metric:
    """What is measured. ``worse`` is the side, higher or lower, on which a change is a regression.

    A change is told only when it is ``relative_floor`` of the usual figure (0.01: one percent) and
    ``absolute_floor`` (in ``unit``) at least. ``positive``: a figure of zero or less cannot be and is a failed
    measurement (adjusted energy may be negative and is not ``positive``). ``looks``: how many figures of the same thing
    are judged each night, this one among them; the thresholds rise with it, so that all of them together give no more
    false alerts than one.
    """

    name: str
    unit: str
    worse: str = HIGHER
    relative_floor: float = 0.01
    absolute_floor: float = 0.0
    positive: bool = True
    looks: int = 1

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise SeriesError(f"unit of {self.name}: expected one of {', '.join(UNITS)}, found {self.unit!r}")
        if self.worse not in (HIGHER, LOWER):
            raise SeriesError(f"worse side of {self.name}: expected {HIGHER} or {LOWER}, found {self.worse!r}")
        for name, floor in (("relative", self.relative_floor), ("absolute", self.absolute_floor)):
            if not (math.isfinite(floor) and floor >= 0):
                raise SeriesError(f"{name} floor of {self.name}: expected a number of 0 or more, found {floor}")
        if self.looks < 1:
            raise SeriesError(f"looks of {self.name}: expected 1 or more, found {self.looks}")


@dataclass(frozen=True)
class SeriesKey:
    """What figures must share to be one series; ``segment`` changes with the class of environment or the baseline."""

    workload: str
    device_uuid: str
    device_name: str
    protocol: str
    payload_manifest_sha256: str | None
    segment: str


@dataclass(frozen=True)
class Figure:
    """One night's figure: median over its valid rounds, in ``unit``; None where there is none. ``run`` names it.

    ``measure`` False: it is judged on its own night, and no other night is held against it.
    """

    time: datetime
    value: float | None
    unit: str
    valid: bool = True
    run: str | None = None
    measure: bool = True


@dataclass(frozen=True)
class Series:
    """Figures of one metric under one key, in any order.

    ``sharper`` is the other figure of the same thing that ``metric.looks`` counts, where this one is judged as if it
    were alone until that one has a history.
    """

    metric: Metric
    figures: tuple[Figure, ...]
    key: SeriesKey | None = None
    sharper: Series | None = None

    def __post_init__(self) -> None:
        dimension = UNITS[self.metric.unit][0]
        for figure in self.figures:
            if figure.time.utcoffset() is None:
                raise SeriesError(f"time of {figure.run or 'a figure'}: expected an aware one, found {figure.time}")
            if figure.unit not in UNITS or UNITS[figure.unit][0] != dimension:
                expected = f"{self.metric.unit} or another unit of {dimension}"
                raise SeriesError(f"unit of {figure.run or 'a figure'}: expected {expected}, found {figure.unit!r}")

    def until(self, time: datetime) -> Series:
        """What was known at ``time``: the figures up to and with it."""
        figures = tuple(figure for figure in self.figures if figure.time <= time)
        return replace(self, figures=figures, sharper=self.sharper and self.sharper.until(time))


@dataclass(frozen=True)
class Nights:
    """Usable nights in order of time (ties by value): ``days`` since 1970 (UTC) and ``values`` in the metric's unit.

    Both have shape (nights,). ``dropped`` counts figures that are not there or not valid, by reason. ``last_dropped``
    is that reason for the newest figure, None when it is the last of the values.
    """

    days: Floats
    values: Floats
    dropped: dict[str, int]
    last_dropped: str | None

    def __len__(self) -> int:
        return len(self.values)

    def date(self, index: int) -> str:
        """UTC time of a night, as ISO 8601."""
        return datetime.fromtimestamp(round(float(self.days[index]) * 86400), UTC).isoformat()

    def steps(self) -> Floats:
        """Distance of each night from the one before in usual distances, whole and 1 at least; shape (nights - 1,).

        The usual distance is the median one: a missing night among nightly runs is a distance of two.
        """
        gaps = np.diff(self.days)
        usual = float(np.median(gaps)) if len(gaps) else 1.0
        return np.maximum(1.0, np.rint(gaps / usual)) if usual > 0 else np.ones(len(gaps))

    def as_json(self) -> dict[str, Any]:
        """How many nights there were and why others were left out."""
        return {"nights": len(self), "dropped": dict(self.dropped)}


def usable_nights(series: Series) -> Nights:
    """The figures that can be computed with, in order, and an account of the others."""
    metric, kept, dropped = series.metric, [], dict[str, int]()
    factors = {unit: UNITS[unit][1] / UNITS[metric.unit][1] for unit in {f.unit for f in series.figures}}
    factors[metric.unit] = 1.0
    newest, last = max((figure.time for figure in series.figures), default=None), ""
    for figure in series.figures:
        reason = _unusable(figure, metric, tonight=figure.time == newest)
        if reason:
            dropped[reason] = dropped.get(reason, 0) + 1
        elif figure.value is not None:
            kept.append((figure.time.timestamp() / 86400, figure.value * factors[figure.unit]))
        if figure.time == newest:
            last = max(last, reason or "")
    kept.sort()
    table = np.array(kept, dtype=np.float64).reshape(-1, 2)
    return Nights(table[:, 0], table[:, 1], dict(sorted(dropped.items())), last or None)


class NightsInTime:
    """The usable nights of a series between any two times, each in no more time than it takes to cut them out.

    For a replay, which asks for every night of a long history what was known then.
    """

    def __init__(self, series: Series) -> None:
        together: dict[datetime, list[Figure]] = {}
        for figure in series.figures:
            together.setdefault(figure.time, []).append(figure)
        self._times = sorted(together)
        self._nights = {time: usable_nights(Series(series.metric, tuple(found))) for time, found in together.items()}
        measures = usable_nights(Series(series.metric, tuple(figure for figure in series.figures if figure.measure)))
        self._days, self._values = measures.days, measures.values
        reasons = sorted((figure.time, _unusable(figure, series.metric) or "") for figure in series.figures)
        whys = sorted({reason for _, reason in reasons if reason})
        self._kept = [time for time, reason in reasons if not reason]
        self._dropped = {why: [time for time, reason in reasons if reason == why] for why in whys}

    def between(self, start: datetime | None, end: datetime) -> Nights:
        """As ``usable_nights`` of the figures from ``start`` (None: all) to ``end``, both included."""
        newest = bisect_right(self._times, end) - 1
        if newest < 0 or (start is not None and self._times[newest] < start):
            return Nights(self._days[:0], self._values[:0], {}, None)
        time = self._times[newest]
        tonight, (first, stop) = self._nights[time], _before(self._kept, start, time)
        dropped = Counter(tonight.dropped)
        for reason, times in self._dropped.items():
            begin, last = _before(times, start, time)
            dropped[reason] += last - begin
        return Nights(
            np.append(self._days[first:stop], tonight.days),
            np.append(self._values[first:stop], tonight.values),
            {reason: count for reason, count in sorted(dropped.items()) if count},
            tonight.last_dropped,
        )


def _before(times: list[datetime], start: datetime | None, end: datetime) -> tuple[int, int]:
    """Where the times from ``start`` (None: the first) to the last one before ``end`` are."""
    stop = bisect_left(times, end)
    return min(stop, 0 if start is None else bisect_left(times, start)), stop


def of_values(metric: Metric, days: Iterable[float], values: Iterable[float | None]) -> Series:
    """A series from plain numbers: days since 1970 (UTC) and figures in the metric's unit."""
    rows = zip(days, values, strict=True)
    return Series(metric, tuple(Figure(datetime.fromtimestamp(d * 86400, UTC), v, metric.unit) for d, v in rows))


def _unusable(figure: Figure, metric: Metric, *, tonight: bool = False) -> str | None:
    if not figure.valid or not (figure.measure or tonight):
        return "not_valid"
    if figure.value is None:
        return "missing"
    if not math.isfinite(figure.value):
        return "not_finite"
    if metric.positive and figure.value <= 0:
        return "not_positive"
    return None
