"""What the reference load costs by model of GPU, learnt from the runs that were accepted for energy."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from regression.results import tables
from regression.results.history import SIMULATED

LOW_SHARE, HIGH_SHARE = 0.75, 1.25
"""A healthy board differs from its like by a few percent; a sensor that lies does so by a factor of two or more."""


def learnt_bands(connection: Connection, *, simulated: bool) -> dict[str, list[float]]:
    """Model to the joules per 10^12 operations that pass: [0.75 * smallest, 1.25 * largest] of its accepted runs.

    Accepted are the runs of the current baselines for energy; each has a figure before and one after its rounds, of
    which those with a verified result count. Simulated devices and real ones learn apart from each other.
    """
    run, device, baseline, telemetry = tables.run, tables.device, tables.baseline, tables.telemetry
    joules = telemetry.c.reference_joules_per_1e12_operations
    is_simulated = device.c.kind == SIMULATED
    found = connection.execute(
        select(device.c.name, func.min(joules).label("low"), func.max(joules).label("high"))
        .select_from(baseline.join(run, run.c.run_id == baseline.c.run_id))
        .join(device, device.c.device_id == run.c.device_id)
        .join(telemetry, telemetry.c.run_id == run.c.run_id)
        .where(
            baseline.c.retired_at.is_(None),
            baseline.c.for_energy,
            telemetry.c.reference_result_verified,
            joules > 0,
            is_simulated if simulated else ~is_simulated,
        )
        .group_by(device.c.name)
        .order_by(device.c.name)
    )
    return {row.name: [LOW_SHARE * row.low, HIGH_SHARE * row.high] for row in found}
