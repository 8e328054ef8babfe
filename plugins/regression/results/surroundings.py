"""What a stored run was made with, beside what its baseline was made with."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, select

from gpu_tasks.records import DEVICE_KINDS
from regression.detectors import CheckVerdict
from regression.detectors.environment import Surroundings, beside, differences
from regression.results import tables
from regression.results.history import SIMULATED, conditions_of, run_by_id

VERSIONS = ("driver", "cuda", "python", "platform")
NO_PLATFORM = (*DEVICE_KINDS, "not recorded")
"""What stands for the platform in records that state none: those that ship name the kind of device in its place, for
they are of no machine, and the original ones of the learner say that they have none."""


def surroundings_of(connection: Connection, run: Row[Any]) -> Surroundings:
    """Of a run as ``history.find_run`` gives it; a simulated device's versions start no new segment."""
    environment, source = tables.environment.c, tables.source_state.c
    found = connection.execute(
        select(*(environment[name] for name in VERSIONS), environment.packages).where(
            environment.environment_id == run.environment_id
        )
    ).one_or_none()
    sources = connection.execute(
        select(source.sources).where(source.source_state_id == run.source_state_id)
    ).scalar_one_or_none()
    conditions = conditions_of(connection, run)
    return Surroundings(
        device=conditions.device if run.device_id is not None else None,
        protocol=run.protocol,
        payload_manifest_sha256=run.manifest_sha256,
        environment_class=SIMULATED if run.kind == SIMULATED else run.environment_class,
        versions=_versions(found) if found else {},
        packages=found.packages or None if found else None,
        sources=sources or None,
        kernel_sha256=run.kernel_ptx_sha256,
        power_limit_w=min(conditions.power_limits_w, default=None),
    )


def _versions(environment: Any) -> dict[str, str | None]:
    """Those that the record states."""
    versions = {name: getattr(environment, name) for name in VERSIONS}
    return {name: value for name, value in versions.items() if name != "platform" or value not in NO_PLATFORM}


def environment_baseline(connection: Connection, run: Row[Any]) -> tuple[Surroundings | None, int | None]:
    """Surroundings of the closest current baseline of the same device and protocol, and its key.

    Of the same payload by name: another set or protocol was asked for, and has not changed unnoticed.
    """
    baseline, payload, mine = tables.baseline.c, tables.payload.c, tables.payload.alias()
    closeness = (baseline.payload_id == run.payload_id, baseline.environment_class == run.environment_class)
    name = select(mine.c.name).where(mine.c.payload_id == run.payload_id).scalar_subquery()
    found = connection.execute(
        select(baseline.baseline_id, baseline.run_id)
        .select_from(tables.baseline.join(tables.payload))
        .where(
            baseline.retired_at.is_(None),
            baseline.workload == run.workload,
            baseline.device_id == run.device_id,
            baseline.protocol == run.protocol,
            payload.name == name,
        )
        .order_by(*(part.is_(True).desc() for part in closeness), baseline.accepted_at.desc(), baseline.baseline_id)
        .limit(1)
    ).one_or_none()
    if found is None:
        return None, None
    return surroundings_of(connection, run_by_id(connection, found.run_id)), found.baseline_id


def beside_changes(
    connection: Connection, run: Row[Any], found: CheckVerdict, baseline_run_id: str | None
) -> CheckVerdict:
    """The verdict with what else differs from the run it was compared with, where it tells of a change."""
    if baseline_run_id is None or found.direction is None:
        return found
    before = surroundings_of(connection, run_by_id(connection, baseline_run_id))
    return beside(found, differences(surroundings_of(connection, run), before))
