"""What the reference load shows on a model of GPU, learnt from the runs that were accepted for energy."""

from __future__ import annotations

import logging
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, func, or_, select

from regression.results import tables
from regression.results.baselines import KEY
from regression.results.history import SIMULATED

LOW_SHARE, HIGH_SHARE = 0.75, 1.25
"""A healthy board differs from its like by a few percent; a sensor that lies does so by a factor of two or more."""

FEWEST_RUNS = 3
LARGEST_RATIO = 1.3
"""Largest over smallest joules of the accepted runs: farther apart, one of their sensors is wrong, and which one nobody
knows."""

log = logging.getLogger(__name__)


def learnt_bands(connection: Connection, *, simulated: bool) -> dict[str, list[float]]:
    """Model to [joules low, high, speed low, high]: J per 10^12 operations, and 10^12 operations a second, that pass.

    The edges are 0.75 of the smallest and 1.25 of the largest figure of its accepted runs, before and after their
    rounds, results verified. Fewer than three such runs, or runs whose joules are more than 1.3 times apart, teach no
    band; the log says so. Simulated devices and real ones learn apart from each other.
    """
    bands = {}
    for found in _reference_loads(connection, simulated):
        reason = _not_learnt(found)
        if reason:
            log.info("no band of the reference load is learnt for %s: %s", found.name, reason)
            continue
        edges = (found.joules_low, found.joules_high, found.speed_low, found.speed_high)
        bands[found.name] = [share * edge for share, edge in zip((LOW_SHARE, HIGH_SHARE) * 2, edges, strict=True)]
    return bands


def _not_learnt(found: Row[Any]) -> str | None:
    if found.runs < FEWEST_RUNS:
        return f"expected {FEWEST_RUNS} accepted runs or more, found {found.runs}"
    if found.joules_low <= 0 or found.joules_high > LARGEST_RATIO * found.joules_low:
        apart = f"{found.joules_low:.3g} to {found.joules_high:.3g} J per 10^12 operations"
        return f"expected accepted runs within a factor of {LARGEST_RATIO:g}, found {apart}"
    return None


def _reference_loads(connection: Connection, simulated: bool) -> list[Row[Any]]:
    """By model of GPU: the number of accepted runs, and their smallest and largest figures."""
    run, device, baseline, telemetry = tables.run, tables.device, tables.baseline, tables.telemetry
    joules = telemetry.c.reference_joules_per_1e12_operations
    speed = telemetry.c.reference_tera_operations_per_s
    is_simulated = device.c.kind == SIMULATED
    withdrawn = select(tables.withdrawal.c.run_id).where(tables.withdrawal.c.run_id == run.c.run_id).exists()
    found = connection.execute(
        select(
            device.c.name,
            func.count(run.c.run_id.distinct()).label("runs"),
            func.min(joules).label("joules_low"),
            func.max(joules).label("joules_high"),
            func.min(speed).label("speed_low"),
            func.max(speed).label("speed_high"),
        )
        .select_from(baseline.join(run, run.c.run_id == baseline.c.run_id))
        .join(device, device.c.device_id == run.c.device_id)
        .join(telemetry, telemetry.c.run_id == run.c.run_id)
        .where(
            baseline.c.for_energy,
            _stands(),
            ~withdrawn,
            run.c.inject.is_(None),
            telemetry.c.reference_result_verified,
            is_simulated if simulated else ~is_simulated,
        )
        .group_by(device.c.name)
        .order_by(device.c.name)
    )
    return list(found)


def _stands() -> ColumnElement[bool]:
    """Whether an acceptance holds: it is current, or another one for energy took its place; nobody just ended it."""
    baseline, next_one = tables.baseline, tables.baseline.alias()
    same_key = and_(*(next_one.c[name] == baseline.c[name] for name in KEY))
    took_its_place = select(next_one.c.baseline_id).where(
        same_key, next_one.c.accepted_at == baseline.c.retired_at, next_one.c.for_energy
    )
    return or_(baseline.c.retired_at.is_(None), took_its_place.exists())
