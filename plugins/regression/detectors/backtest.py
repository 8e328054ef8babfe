"""Replay of the detectors over a history: what would have been alerted when, and how much of it was right.

Each night is judged with what was known then. Alerts follow the rule of the alert life cycle: one open alert for a
series, metric and direction, which further nights update; it ends after some nights that say nothing. Acknowledged
causes are the truth that alerts are held against.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from regression.detectors.drift import slow_drift
from regression.detectors.history import DEFAULT, history_shift
from regression.detectors.series import Metric, Nights, NightsInTime, Series, SeriesKey
from regression.detectors.verdict import CheckVerdict, Verdict

Detector = Callable[[Metric, Nights], CheckVerdict]
DETECTORS: tuple[Detector, ...] = (history_shift, slow_drift)


@dataclass(frozen=True)
class Cause:
    """Something that someone acknowledged as the reason of a change that began at ``start`` (aware).

    ``key``, ``metric``, ``metrics`` and ``direction`` narrow what it explains (None or empty: any). An alert from
    ``lead`` before the start up to ``patience`` after it (or ``end``, where it ended) is its: what is known of a start
    is often that of the first alert. From ``accepted`` on, what it made is the new usual: a segment that begins at
    ``start``.
    """

    start: datetime
    note: str
    key: SeriesKey | None = None
    metric: str | None = None
    direction: str | None = None
    end: datetime | None = None
    accepted: datetime | None = None
    patience: timedelta = timedelta(days=30)
    lead: timedelta = timedelta(0)
    metrics: frozenset[str] = frozenset()

    def concerns(self, series: Series) -> bool:
        """Whether it can have moved this series."""
        name = series.metric.name
        return self.key in (None, series.key) and self.metric in (None, name) and name in (self.metrics or {name})

    def explains(self, alert: Alert) -> bool:
        """Whether the alert is about it."""
        within = self.start - self.lead <= alert.opened <= (self.end or self.start) + self.patience
        return within and self.concerns(alert.series) and self.direction in (None, alert.direction)


@dataclass(frozen=True)
class Usual:
    """Figures of a series begin anew at ``start``, as was known from ``known`` on: a baseline was accepted."""

    start: datetime
    known: datetime
    key: SeriesKey | None = None
    metrics: frozenset[str] = frozenset()

    def concerns(self, series: Series) -> bool:
        """Whether it is of this series."""
        return self.key in (None, series.key) and series.metric.name in (self.metrics or {series.metric.name})


@dataclass(frozen=True)
class Alert:
    """One alert from its first night to its last; ``first`` is the verdict that opened it, ``nights`` how many told."""

    series: Series
    direction: str
    opened: datetime
    last: datetime
    nights: int
    first: CheckVerdict


@dataclass(frozen=True)
class Backtest:
    """Alerts in order of opening with the cause of each (None: a false one), and the causes without any.

    ``delays`` are the nights from the start of a found cause to its first alert, both included.
    """

    alerts: tuple[tuple[Alert, Cause | None], ...]
    missed: tuple[Cause, ...]
    causes: int
    delays: tuple[int, ...]
    series_years: float

    @property
    def precision(self) -> float | None:
        """Share of the alerts that had a cause; None without alerts."""
        return sum(c is not None for _, c in self.alerts) / len(self.alerts) if self.alerts else None

    @property
    def recall(self) -> float | None:
        """Share of the causes that were alerted; None without causes."""
        return 1 - len(self.missed) / self.causes if self.causes else None

    @property
    def false_per_series_year(self) -> float | None:
        """Alerts without a cause in a year of one series; None without time."""
        false = sum(cause is None for _, cause in self.alerts)
        return false / self.series_years if self.series_years else None

    @property
    def median_delay(self) -> float | None:
        """Median nights to the alert, of the causes that were found."""
        return statistics.median(self.delays) if self.delays else None


def backtest(
    series: Sequence[Series],
    causes: Sequence[Cause] = (),
    *,
    since: datetime | None = None,
    detectors: Sequence[Detector] = DETECTORS,
    quiet_nights: int = 7,
    usual: Sequence[Usual] = (),
    judged: Callable[[datetime], None] = lambda _: None,
) -> Backtest:
    """Replay every night from ``since`` on (default: all) and compare with the causes from then on.

    ``judged`` is called after each night of each series, for whoever waits.
    """
    replays = (replay(one, causes, since, detectors, quiet_nights, usual=usual, judged=judged) for one in series)
    alerts = sorted(
        (alert for found in replays for alert in found),
        key=lambda alert: (alert.opened, alert.series.metric.name, alert.direction),
    )
    explained = [(alert, next((c for c in causes if c.explains(alert)), None)) for alert in alerts]
    counted = [c for c in causes if (since is None or c.start >= since) and any(c.concerns(s) for s in series)]
    first = {id(cause): alert for alert, cause in reversed(explained) if cause is not None}
    found = [c for c in counted if id(c) in first]
    return Backtest(
        alerts=tuple(explained),
        missed=tuple(c for c in counted if id(c) not in first),
        causes=len(counted),
        delays=tuple(_nights_between(c, first[id(c)]) for c in found),
        series_years=sum(_years(_nights_of(one, since)) for one in series),
    )


def replay(
    series: Series,
    causes: Iterable[Cause] = (),
    since: datetime | None = None,
    detectors: Sequence[Detector] = DETECTORS,
    quiet_nights: int = 7,
    *,
    usual: Iterable[Usual] = (),
    judged: Callable[[datetime], None] = lambda _: None,
) -> list[Alert]:
    """Alerts of one series, night by night. An alert ends with ``quiet_nights`` nights in a row that say nothing.

    ``judged`` is called after each night, for whoever waits.
    """
    accepted = [Usual(c.start, c.accepted) for c in causes if c.accepted is not None and c.concerns(series)]
    accepted += [each for each in usual if each.concerns(series)]
    open_alerts: dict[str, tuple[Alert, int]] = {}
    closed: list[Alert] = []
    known, sharper = NightsInTime(series), NightsInTime(series.sharper) if series.sharper else None
    for time in _nights_of(series, since):
        start = _start(time, accepted)
        alone = sharper is not None and len(sharper.between(start, time)) < DEFAULT.needed
        metric = replace(series.metric, looks=1) if alone else series.metric
        told = _told(metric, known.between(start, time), detectors)
        judged(time)
        for direction, verdict in told.items():
            alert = open_alerts[direction][0] if direction in open_alerts else None
            if alert is None:
                alert = Alert(series, direction, time, time, 0, verdict)
            open_alerts[direction] = replace(alert, last=time, nights=alert.nights + 1), 0
        for direction, (alert, quiet) in list(open_alerts.items()):
            if direction not in told:
                open_alerts[direction] = alert, quiet + 1
                if quiet + 1 >= quiet_nights:
                    closed.append(open_alerts.pop(direction)[0])
    return sorted([*closed, *(alert for alert, _ in open_alerts.values())], key=lambda alert: alert.opened)


def _told(metric: Metric, nights: Nights, detectors: Sequence[Detector]) -> dict[str, CheckVerdict]:
    """The first verdict of a change for each direction."""
    told: dict[str, CheckVerdict] = {}
    for detector in detectors:
        verdict = detector(metric, nights)
        if verdict.verdict in (Verdict.REGRESSED, Verdict.IMPROVED) and verdict.direction:
            told.setdefault(verdict.direction, verdict)
    return told


def _start(time: datetime, accepted: Sequence[Usual]) -> datetime | None:
    """Beginning of the segment that was current at a night: an acceptance makes history of what was before."""
    return max((usual.start for usual in accepted if usual.known <= time), default=None)


def _nights_of(series: Series, since: datetime | None) -> list[datetime]:
    return sorted({f.time for f in series.figures if since is None or f.time >= since})


def _nights_between(cause: Cause, alert: Alert) -> int:
    return len([t for t in _nights_of(alert.series, cause.start) if t <= alert.opened])


def _years(times: Sequence[datetime]) -> float:
    return (times[-1] - times[0]).total_seconds() / (365.25 * 86400) if times else 0.0
