"""Baselines for people: which there are, what one is made of, and what came before it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, select

from gpu_tasks.records import BadInput
from regression.results import tables
from regression.results.history import of_the_run
from regression.results.times import WITH_GPU_TIME

KEY = ("workload", "payload_id", "device_id", "protocol", "environment_class")


@dataclass(frozen=True)
class BaselineRow:
    """One acceptance of a run: its key, what it is for, its figures (mJ and ms a replay), who, when and why."""

    baseline_id: int
    workload: str
    payload: str
    device: str
    device_kind: str
    device_uuid: str
    protocol: str
    environment_class: str
    for_agreement: bool
    for_time: bool
    for_energy: bool
    energy_trust: str
    energy_trust_reason: str | None
    run_id: str
    dag_id: str
    dag_run_id: str
    started_at: datetime
    kernel_variant: str | None
    kernel_ptx_sha256: str | None
    agreed: int | None
    total: int | None
    rounds_valid: int
    adjusted_mj_median: float | None
    adjusted_mj_min: float | None
    adjusted_mj_max: float | None
    adjusted_mj_sample_sd: float | None
    cuda_ms_median: float | None
    wall_ms_median: float | None
    accepted_by: str
    accepted_at: datetime
    reason: str
    retired_at: datetime | None
    retired_by: str | None
    retired_reason: str | None

    @property
    def has_gpu_time(self) -> bool:
        """Whether its times are a GPU's, or stand for one's."""
        return self.device_kind in WITH_GPU_TIME

    @property
    def purposes(self) -> tuple[str, ...]:
        """What runs are compared with it for, whatever it was accepted for: the times of a CPU never are."""
        for_time = self.for_time and self.has_gpu_time
        told = {"predictions": self.for_agreement, "time": for_time, "energy": self.for_energy}
        return tuple(name for name, wanted in told.items() if wanted)

    def as_json(self) -> dict[str, Any]:
        """For scripts: every field, times as ISO 8601."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: v.isoformat() if isinstance(v, datetime) else v for name, v in values.items()}


@dataclass(frozen=True)
class RoundRow:
    """One round of a baseline's run: times in ms and energy in mJ a replay, and why it is not valid."""

    arm: str
    round: int
    valid: bool
    cuda_ms: float | None
    wall_ms: float | None
    adjusted_mj: float | None
    reason_code: str | None


@dataclass(frozen=True)
class DrawRow:
    """Agreement of one draw of a baseline's run."""

    case_name: str
    agreed: int | None
    total: int | None
    mismatches: list[dict[str, int]]


@dataclass(frozen=True)
class Withdrawn:
    """What of a run must not be used any more, and why."""

    scope: str
    withdrawn_by: str
    withdrawn_at: datetime
    reason: str
    successor_run_id: str | None


def baselines(connection: Connection, *, ended: bool = False, workload: str | None = None) -> list[BaselineRow]:
    """Current baselines, or all that ever were, by key and time."""
    baseline = tables.baseline.c
    wanted = [] if ended else [baseline.retired_at.is_(None)]
    return _baselines(connection, *wanted, *([baseline.workload == workload] if workload else []))


def baselines_of_run(connection: Connection, run_id: str) -> list[BaselineRow]:
    """Every acceptance of a run, oldest first; raises ``BadInput`` (``no_baseline``) where there is none."""
    found = _baselines(connection, tables.baseline.c.run_id == run_id)
    if not found:
        message = f"run {run_id}: expected a baseline, current or ended, found a run that was never accepted"
        raise BadInput("no_baseline", message)
    return found


def baseline_by_id(connection: Connection, baseline_id: int) -> BaselineRow:
    """One acceptance by its key, which must be there."""
    (found,) = _baselines(connection, tables.baseline.c.baseline_id == baseline_id)
    return found


def of_the_same_key(connection: Connection, baseline_id: int) -> list[BaselineRow]:
    """Every baseline of the key of this one, itself included, oldest first."""
    baseline = tables.baseline
    key = connection.execute(
        select(*(baseline.c[name] for name in KEY)).where(baseline.c.baseline_id == baseline_id)
    ).one()
    return _baselines(connection, and_(*(baseline.c[name] == getattr(key, name) for name in KEY)))


def replaced_by(connection: Connection, baseline_id: int) -> BaselineRow | None:
    """The baseline that gave way to this one, in the transaction that accepted it; None for the first of a key."""
    accepted_at = baseline_by_id(connection, baseline_id).accepted_at
    others = [row for row in of_the_same_key(connection, baseline_id) if row.baseline_id != baseline_id]
    return next((row for row in others if row.retired_at == accepted_at), None)


def rounds_of(connection: Connection, run_id: str) -> list[RoundRow]:
    """Every round of the run's own kernel, in order."""
    measured = tables.round_.c
    columns = [measured[field.name] for field in fields(RoundRow)]
    stored = connection.execute(
        select(*columns).where(measured.run_id == run_id, of_the_run()).order_by(measured.arm, measured.round)
    )
    return [RoundRow(*row) for row in stored]


def draws_of(connection: Connection, run_id: str) -> list[DrawRow]:
    """Every validated draw of a run, in order; not those of a kernel that it was held against."""
    validation = tables.validation.c
    columns = [validation[field.name] for field in fields(DrawRow)]
    order = (validation.draw, validation.case_name)
    wanted = (validation.run_id == run_id, validation.draw.is_not(None))
    stored = connection.execute(select(*columns).where(*wanted).order_by(*order))
    return [DrawRow(*row) for row in stored]


def withdrawals_of(connection: Connection, run_id: str) -> list[Withdrawn]:
    """What was withdrawn of a run."""
    withdrawal = tables.withdrawal.c
    columns = [withdrawal[field.name] for field in fields(Withdrawn)]
    stored = connection.execute(select(*columns).where(withdrawal.run_id == run_id).order_by(withdrawal.scope))
    return [Withdrawn(*row) for row in stored]


def _baselines(connection: Connection, *wanted: ColumnElement[bool]) -> list[BaselineRow]:
    baseline, run, device, payload = tables.baseline, tables.run, tables.device, tables.payload
    sources: dict[str, Any] = {
        "payload": payload.c.name,
        "device": device.c.name,
        "device_kind": device.c.kind,
        "device_uuid": device.c.uuid,
    }
    columns = [
        sources[name] if name in sources else baseline.c[name] if name in baseline.c else run.c[name]
        for name in (field.name for field in fields(BaselineRow))
    ]
    stored = connection.execute(
        select(*columns)
        .select_from(
            baseline.join(run, run.c.run_id == baseline.c.run_id)
            .join(device, device.c.device_id == baseline.c.device_id)
            .join(payload, payload.c.payload_id == baseline.c.payload_id)
        )
        .where(*wanted)
        .order_by(
            *(baseline.c.workload, payload.c.name, device.c.name, device.c.uuid, baseline.c.protocol),
            *(baseline.c.environment_class, baseline.c.accepted_at, baseline.c.baseline_id),
        )
    )
    return [BaselineRow(*row) for row in stored]
