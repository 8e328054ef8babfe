"""The stored history replayed: what the history checks would have alerted when, held against what people said of it.

What people said: acknowledged alerts, whose reason is a cause (unless it begins with "false"), and baselines that took
the place of others, because something changed on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row, select

from regression.detectors.backtest import Alert, Backtest, Cause, Usual, backtest
from regression.detectors.drift import DriftSettings, slow_drift
from regression.detectors.history import HistorySettings, history_shift
from regression.detectors.long_term import ENERGY, METRICS, TIME, HistoryMetric, looked_at, metric_names
from regression.detectors.series import Series, SeriesKey, usable_nights
from regression.results import tables
from regression.results.history import SIMULATED
from regression.results.series import HistoryKey, Segment, segment_of, series_of, stored_keys
from regression.results.times import WITH_GPU_TIME

CHECKS = {metric.check: metric for metric in METRICS}
THRESHOLD = HistorySettings().threshold
DRIFT_ABOVE = DriftSettings().threshold - THRESHOLD
"""How much higher the threshold of a slow drift is than that of a shift."""
FALSE = "false"
EARLIER = timedelta(days=7)
"""How long before an acknowledged alert another threshold may see its cause."""
CHANGE = timedelta(days=30)
"""How long before its acceptance a change on purpose may be seen."""


@dataclass(frozen=True)
class History:
    """Series of the stored figures, the causes that people named, and when what was usual began anew."""

    series: tuple[Series, ...]
    causes: tuple[Cause, ...]
    usual: tuple[Usual, ...]


def stored_history(connection: Connection, *, device: str | None = None, checks: Sequence[str] = ()) -> History:
    """Everything of the devices that are judged (``device``: uuid or model name), and of the metrics of ``checks``."""
    wanted = [CHECKS[name] for name in checks] or list(METRICS)
    keys = {key: _judged(connection, key) for key in stored_keys(connection)}
    found: list[Series] = []
    named: dict[tuple[Any, ...], SeriesKey] = {}
    for key in (key for key, judged in keys.items() if judged and device in (None, key.device_uuid, key.device_name)):
        for metric in wanted:
            segment = Segment(trusts=segment_of(connection, key, metric).trusts)
            own, *others = (series_of(connection, key, each, segment) for each in looked_at(metric, key.protocol))
            own = replace(own, sharper=others[0] if others else None)
            for series in (own, *others):
                if series.key is not None and len(usable_nights(series)):
                    found.append(series)
                    named[_identity(key)] = series.key
    accepted = list(_accepted(connection, named))
    changes = [change for change in (_change(row, before) for row, before in accepted) if change]
    causes = merged(changes, _acknowledged(connection, named))
    return History(tuple(found), tuple(causes), tuple(usual for pair in accepted for usual in _usual(*pair)))


def replayed(
    history: History,
    threshold: float,
    since: datetime | None = None,
    judged: Callable[[datetime], None] = lambda _: None,
) -> Backtest:
    """The alerts that the history checks would have given with that threshold, from ``since`` on (default: all).

    ``judged`` is called after each night of each series: ten years of one take a good quarter of a minute.
    """
    shift, drift = HistorySettings(threshold=threshold), DriftSettings(threshold=threshold + DRIFT_ABOVE)
    detectors = [partial(history_shift, settings=shift), partial(slow_drift, settings=drift)]
    usual = history.usual
    return backtest(history.series, history.causes, since=since, detectors=detectors, usual=usual, judged=judged)


def as_json(found: Backtest, threshold: float) -> dict[str, Any]:
    """The figures of a backtest, its alerts with their causes, and the causes that gave no alert."""
    figures = ("precision", "recall", "false_per_series_year", "median_delay")
    return {
        "threshold": threshold,
        "series_years": found.series_years,
        "causes": found.causes,
        "alerts_of_a_cause": sum(cause is not None for _, cause in found.alerts),
        "alerts_false": sum(cause is None for _, cause in found.alerts),
        **{name: getattr(found, name) for name in figures},
        "alerts": [_alert_json(alert, cause) for alert, cause in found.alerts],
        "missed": [{"start": cause.start.isoformat(), "note": cause.note} for cause in found.missed],
    }


def merged(changes: Sequence[Cause], acknowledged: Iterable[Cause]) -> list[Cause]:
    """Causes by start; what was acknowledged and then accepted as the new baseline is one change, not two."""
    others = [cause for cause in acknowledged if not any(_covers(change, cause) for change in changes)]
    return sorted([*changes, *others], key=lambda c: c.start)


def _covers(change: Cause, cause: Cause) -> bool:
    inside = change.start - change.lead <= cause.start <= (change.end or change.start)
    return inside and change.key == cause.key and cause.metrics <= change.metrics


def _alert_json(alert: Alert, cause: Cause | None) -> dict[str, Any]:
    key = alert.series.key
    return {
        "opened": alert.opened.isoformat(),
        "last": alert.last.isoformat(),
        "nights": alert.nights,
        "device": key.device_name if key else None,
        "device_uuid": key.device_uuid if key else None,
        "metric": alert.series.metric.name,
        "direction": alert.direction,
        "reason": alert.first.reason,
        "cause": cause.note if cause else None,
    }


def _judged(connection: Connection, key: HistoryKey) -> bool:
    """Whether the history of this device is judged at all: the times of a CPU say nothing about a kernel."""
    kind = connection.execute(select(tables.device.c.kind).where(tables.device.c.device_id == key.device_id)).scalar()
    return kind in WITH_GPU_TIME


def _identity(key: HistoryKey) -> tuple[Any, ...]:
    return (key.workload, key.device_id, key.payload_id, key.protocol, key.environment_class)


def _accepted(
    connection: Connection, named: dict[tuple[Any, ...], SeriesKey]
) -> Iterator[tuple[tuple[SeriesKey, Row[Any]], Row[Any] | None]]:
    """Each acceptance of the keys of these series, with the one of the same key before it."""
    baseline, run, device = tables.baseline, tables.run, tables.device
    rows = connection.execute(
        select(baseline, run.c.started_at, run.c.candidate, device.c.kind)
        .select_from(baseline.join(run, run.c.run_id == baseline.c.run_id))
        .join(device, device.c.device_id == baseline.c.device_id)
        .order_by(baseline.c.accepted_at, baseline.c.baseline_id)
    )
    latest: dict[SeriesKey, Row[Any]] = {}
    for row in rows:
        environment = None if row.kind == SIMULATED else row.environment_class
        key = named.get((row.workload, row.device_id, row.payload_id, row.protocol, environment))
        if key is not None:
            yield (key, row), latest.get(key)
            latest[key] = row


def _metrics(row: Row[Any]) -> frozenset[str]:
    """Names of the metrics that a baseline is for."""
    groups = {ENERGY: row.for_energy, TIME: row.for_time}
    return _names(metric for metric in METRICS if groups[metric.group])


def _names(metrics: Iterable[HistoryMetric]) -> frozenset[str]:
    return frozenset(name for metric in metrics for name in metric_names(metric))


def _usual(accepted: tuple[SeriesKey, Row[Any]], before: Row[Any] | None) -> list[Usual]:
    """The segment that an acceptance begins, as ``series.segment_of`` has it."""
    key, row = accepted
    metrics = _metrics(row)
    late = row.candidate or (before is not None and before.started_at > row.started_at)
    start = row.accepted_at if late else row.started_at
    return [Usual(start, row.accepted_at, key, metrics)] if metrics else []


def _change(accepted: tuple[SeriesKey, Row[Any]], before: Row[Any] | None) -> Cause | None:
    """The change on purpose that an acceptance is; None for the first of its key, and for another look at one run."""
    key, row = accepted
    metrics = _metrics(row)
    if before is None or before.run_id == row.run_id or not metrics:
        return None
    start = min(row.started_at, row.accepted_at)
    lead = max(timedelta(0), min(CHANGE, start - before.started_at))
    note = f"baseline accepted by {row.accepted_by}: {row.reason}"
    return Cause(start, note, key, end=row.accepted_at, patience=timedelta(0), lead=lead, metrics=metrics)


def _acknowledged(connection: Connection, named: dict[tuple[Any, ...], SeriesKey]) -> Iterator[Cause]:
    """What people said of alerts about energy and time."""
    alert, run, environment, device = tables.alert, tables.run, tables.environment, tables.device
    last = run.alias("last")
    rows = connection.execute(
        select(alert, run, environment.c.environment_class, device.c.kind, last.c.started_at.label("last_started_at"))
        .select_from(alert.join(run, run.c.run_id == alert.c.first_run_id).join(environment))
        .join(device, device.c.device_id == run.c.device_id)
        .join(last, last.c.run_id == alert.c.last_run_id)
        .where(alert.c.acknowledged_reason.is_not(None), alert.c.metric.in_([ENERGY, TIME]))
        .order_by(alert.c.alert_id)
    )
    for row in rows:
        environment_class = None if row.kind == SIMULATED else row.environment_class
        key = named.get((row.workload, row.device_id, row.payload_id, row.protocol, environment_class))
        if key is None or row.acknowledged_reason.strip().lower().startswith(FALSE):
            continue
        yield Cause(
            row.started_at,
            f"alert {row.alert_id}, {row.acknowledged_by}: {row.acknowledged_reason}",
            key,
            direction=row.direction if row.direction in ("higher", "lower") else None,
            end=max(row.started_at, row.last_started_at),
            lead=EARLIER,
            metrics=_names(metric for metric in METRICS if metric.group == row.metric),
        )


__all__ = ["CHECKS", "THRESHOLD", "History", "as_json", "merged", "replayed", "stored_history"]
