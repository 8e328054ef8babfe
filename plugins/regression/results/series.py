"""Stored figures as series of nights: one metric of one key, for the checks of a run and for backtests.

A key is what figures must share to be compared: workload, device, payload, protocol and class of environment. The
kernel is not part of it: its change is to be seen. A simulated device's figures come from its model, whatever versions
it is run with. Left out are runs that were withdrawn (for energies also those whose energy was), runs that try a kernel
which nights do not run, runs with injected effects unless the run under judgement has some itself, and runs by hand of
a variant that was asked for by name, unless it is one of them that is judged: that one is held against its own variant.
So are runs of another number of replays by request: what a figure reads too little depends on how long a round works.
Figures whose energy nothing vouches for are there and not valid; those of a run that predicted wrong are judged
themselves, and no other run is measured by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, case, func, literal, null, or_, select, true

from regression.detectors.long_term import ADJUSTED, CUDA, ENERGY, GROSS, WALL, HistoryMetric
from regression.detectors.series import Figure, Series, SeriesKey
from regression.results import tables
from regression.results.good_runs import predicted_wrong
from regression.results.history import SIMULATED, SUBJECT, of_the_run

VOUCHED_FOR = "verified"
MANUAL = "manual"
MEDIANS = {
    ADJUSTED.check: tables.run.c.adjusted_mj_median,
    GROSS.check: tables.run.c.gross_mj_median,
    CUDA.check: tables.run.c.cuda_ms_median,
    WALL.check: tables.run.c.wall_ms_median,
}
"""By check the figures that a run has a median of; any other is made of its rounds."""


@dataclass(frozen=True)
class HistoryKey:
    """Key of a series, with the names of device and payload; ``environment_class`` None: any, as for simulated ones."""

    workload: str
    device_id: int
    payload_id: int
    protocol: str
    environment_class: str | None
    device_uuid: str
    device_name: str
    payload_manifest_sha256: str


@dataclass(frozen=True)
class Segment:
    """What belongs together under a key: figures since the current baseline was accepted, or all where there is none.

    ``trusts`` are the words of trust in an energy that make it valid: an energy that was accepted unverified is held
    against others like it.
    """

    baseline_id: int | None = None
    baseline_run_id: str | None = None
    since: datetime | None = None
    trusts: frozenset[str] = frozenset({VOUCHED_FOR})


ALL = Segment()


def key_of(run: Row[Any]) -> HistoryKey | None:
    """Key of a run as ``history.find_run`` gives it; None where device, payload or environment are not known."""
    if None in (run.device_id, run.payload_id, run.environment_class):
        return None
    environment = None if run.kind == SIMULATED else run.environment_class
    key = (run.workload, run.device_id, run.payload_id, run.protocol, environment)
    return HistoryKey(*key, run.uuid, run.device_name, run.manifest_sha256)


def stored_keys(connection: Connection) -> list[HistoryKey]:
    """Every key there are nights of, in a fixed order."""
    run, device, environment, payload = tables.run, tables.device, tables.environment, tables.payload
    versions = case((device.c.kind == SIMULATED, null()), else_=environment.c.environment_class)
    key = (run.c.workload, run.c.device_id, run.c.payload_id, run.c.protocol, versions)
    names = (device.c.uuid, device.c.name, payload.c.manifest_sha256)
    found = connection.execute(
        select(*key, *names)
        .select_from(run.join(device).join(environment).join(payload))
        .where(~run.c.candidate)
        .distinct()
        .order_by(*key)
    )
    return [HistoryKey(*row) for row in found]


def segment_of(connection: Connection, key: HistoryKey, metric: HistoryMetric) -> Segment:
    """The segment of a key that is current.

    It begins with the run that was accepted; with its acceptance where that run is older than one it took the place
    of, or tried a kernel that nights did not run yet: what lies between the two may be another level.
    """
    baseline, run = tables.baseline, tables.run
    columns = (
        baseline.c.baseline_id,
        baseline.c.run_id,
        baseline.c.accepted_at,
        baseline.c.retired_at,
        run.c.candidate,
    )
    rows = connection.execute(
        select(*columns, baseline.c.energy_trust, run.c.started_at)
        .select_from(baseline.join(run, run.c.run_id == baseline.c.run_id))
        .where(
            _of_key(baseline, baseline.c.environment_class, key),
            baseline.c.for_energy if metric.group == ENERGY else baseline.c.for_time,
        )
        .order_by(baseline.c.accepted_at, baseline.c.baseline_id)
    ).all()
    current = next((row for row in reversed(rows) if row.retired_at is None), None)
    if current is None:
        return ALL
    newer = any(r.started_at > current.started_at for r in rows if r.accepted_at < current.accepted_at)
    since = current.accepted_at if newer or current.candidate else current.started_at
    return Segment(current.baseline_id, current.run_id, since, frozenset({VOUCHED_FOR, current.energy_trust}))


def series_of(
    connection: Connection,
    key: HistoryKey,
    metric: HistoryMetric,
    segment: Segment = ALL,
    *,
    run: Row[Any] | None = None,
) -> Series:
    """Figures of ``metric`` under ``key`` in ``segment`` (all of them by default), in one query.

    With ``run``, those before it and its own, which is then the newest: what was known at that night.
    """
    stored, environment = tables.run, tables.environment
    valid = stored.c.energy_trust.in_(sorted(segment.trusts)) if metric.group == ENERGY else literal(True)
    wanted = and_(
        ~_withdrawn(metric),
        ~stored.c.candidate,
        true() if run is not None and run.inject else stored.c.inject.is_(None),
        _same_kernels(run),
        _same_replays(run),
        true() if segment.since is None else stored.c.started_at >= segment.since,
    )
    if run is not None:
        wanted = or_(and_(wanted, stored.c.started_at < run.started_at), stored.c.run_id == run.run_id)
    rows = connection.execute(
        select(stored.c.started_at, _figure(metric), valid, stored.c.dag_run_id, ~predicted_wrong())
        .select_from(stored.join(environment))
        .where(_of_key(stored, environment.c.environment_class, key), wanted)
        .order_by(stored.c.started_at, stored.c.run_id)
    ).all()
    unit, repeats = metric.metric.unit, _repeats(connection, run) if run is not None else None
    figures = tuple(Figure(at, value, unit, good, name, measure) for at, value, good, name, measure in rows)
    return Series(metric.over(repeats), figures, _series_key(key, segment))


def _of_key(table: Any, environment_class: ColumnElement[str], key: HistoryKey) -> ColumnElement[bool]:
    wanted = [table.c[name] == getattr(key, name) for name in ("workload", "device_id", "payload_id", "protocol")]
    if key.environment_class is not None:
        wanted.append(environment_class == key.environment_class)
    return and_(*wanted)


def _withdrawn(metric: HistoryMetric) -> ColumnElement[bool]:
    withdrawal = tables.withdrawal.c
    scopes = ("energy", "all") if metric.group == ENERGY else ("all",)
    return (
        select(withdrawal.run_id).where(withdrawal.run_id == tables.run.c.run_id, withdrawal.scope.in_(scopes)).exists()
    )


def _same_kernels(run: Row[Any] | None) -> ColumnElement[bool]:
    """Without what somebody tried by hand; only that, and only of the same variant, where such a run is judged."""
    stored = tables.run.c
    if run is not None and run.trigger == MANUAL and run.params.get("variant"):
        return and_(stored.kernel_variant == run.kernel_variant)
    return or_(stored.trigger != MANUAL, stored.params["variant"].astext.is_(None))


def _same_replays(run: Row[Any] | None) -> ColumnElement[bool]:
    """With as many replays a round as the run asked for; else without what was asked for by hand."""
    stored = tables.run.c
    asked = stored.params["repeats"].astext
    if run is None:
        return or_(stored.trigger != MANUAL, asked.is_(None))
    repeats = run.params.get("repeats")
    return and_(asked.is_not_distinct_from(None if repeats is None else str(repeats)))


def _figure(metric: HistoryMetric) -> ColumnElement[float]:
    """The run's median of ``metric``; of the power while idle, that of its valid rounds, before and after each."""
    if metric.figure is not None:
        energy = tables.run_energy.c
        own = (energy.run_id == tables.run.c.run_id, energy.figure == metric.figure, energy.subject == SUBJECT)
        return select(energy.median_mj).where(*own).scalar_subquery()
    if metric.check in MEDIANS:
        return MEDIANS[metric.check]
    measured = tables.round_.c
    idle_w = (measured.idle_before_w + measured.idle_after_w) / 2
    return (
        select(func.percentile_cont(0.5).within_group(idle_w))
        .where(measured.run_id == tables.run.c.run_id, measured.valid, of_the_run())
        .scalar_subquery()
    )


def _repeats(connection: Connection, run: Row[Any]) -> int | None:
    """Replays in the shortest valid window of a run."""
    measured = tables.round_.c
    return connection.execute(
        select(func.min(measured.repeats)).where(measured.run_id == run.run_id, measured.valid, of_the_run())
    ).scalar()


def _series_key(key: HistoryKey, segment: Segment) -> SeriesKey:
    name = f"{key.environment_class or SIMULATED} since {segment.since.isoformat() if segment.since else 'ever'}"
    return SeriesKey(key.workload, key.device_uuid, key.device_name, key.protocol, key.payload_manifest_sha256, name)
