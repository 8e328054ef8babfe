"""Stored runs and baselines in the form the detectors take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, select, union_all

from gpu_tasks.records import BadInput
from regression.detectors import (
    AgreementBaseline,
    AgreementRun,
    BaselineDraw,
    DrawResult,
    EnergyBaseline,
    EnergyRun,
    FailedGate,
    MeasurementConditions,
    Problem,
    RoundEnergy,
)
from regression.detectors.window import worked
from regression.results import tables
from regression.results.candidate_columns import COMPARISON
from regression.results.gates import gates_not_passed

SIMULATED = "simulated"
SUBJECT = "candidate"  # what a figure is of when nothing else is said
SHAM = "idle - idle"  # what interleaved rounds read where nothing runs: for its gate, no energy of anything
NO_ENERGY = "unavailable"
LAST_STEP = 1
EXPLAINED = {"bad_input", "invalid_measurement", "verification_mismatch", "infrastructure_failure"}


@dataclass(frozen=True)
class StoredBaseline:
    """A current baseline that a run is compared with: its key and the run that was accepted."""

    baseline_id: int
    run_id: str
    for_time: bool
    for_energy: bool


def find_run(connection: Connection, dag_id: str, dag_run_id: str) -> Row[Any]:
    """The stored run with its device, environment and payload; raises ``BadInput`` when there is none."""
    found = connection.execute(
        _runs().where(tables.run.c.dag_id == dag_id, tables.run.c.dag_run_id == dag_run_id)
    ).one_or_none()
    if found is None:
        raise BadInput("run_not_stored", f"{dag_id}/{dag_run_id}: no such run in the results database")
    return found


def of_the_run() -> ColumnElement[bool]:
    """Rounds of the kernel that the run is of, as every night has them: not those in which two kernels took turns."""
    return tables.round_.c.arm != COMPARISON


def rounds_expected(run: Row[Any], step: int) -> int:
    """Rounds that a run should have in ``step`` and those before."""
    expected: int = run.rounds_expected
    return expected if step else expected - (run.confirmation_rounds or 0)


def agreement_run(connection: Connection, run: Row[Any]) -> AgreementRun:
    """Draws of a run as the agreement detector takes them."""
    stored = connection.execute(select(tables.validation).where(tables.validation.c.run_id == run.run_id))
    return AgreementRun(
        payload_manifest_sha256=run.manifest_sha256,
        draws_expected=tuple(run.params["draws"]),
        results=tuple(_draw_result(row) for row in stored if row.draw is not None),
        problem=problem_of(run),
    )


def agreement_baseline(connection: Connection, run: Row[Any]) -> tuple[AgreementBaseline | None, StoredBaseline | None]:
    """The baseline for predictions, of any real device: same payload first, then same device, then the newest."""
    baseline, device = tables.baseline.c, tables.device.c
    closeness = (baseline.payload_id == run.payload_id, baseline.device_id == run.device_id, device.kind == run.kind)
    found = _closest(connection, run, closeness, baseline.for_agreement)
    if found is None:
        return None, None
    accepted = run_by_id(connection, found.run_id)
    validations = connection.execute(select(tables.validation).where(tables.validation.c.run_id == found.run_id))
    draws = {
        row.draw: BaselineDraw(
            row.total, row.agreed, frozenset(m["index"] for m in row.mismatches), row.predictions_int32_sha256
        )
        for row in validations
        if row.draw is not None and row.total is not None
    }
    return AgreementBaseline(name_of(accepted), accepted.manifest_sha256, draws), found


def energy_run(connection: Connection, run: Row[Any], step: int) -> EnergyRun:
    """Rounds of a run, of ``step`` and those before, as the energy detector takes them."""
    no_counter, gates = None, gates_not_passed(connection, run.run_id)
    if run.device_id is not None and run.energy_trust == NO_ENERGY:
        message = run.energy_trust_reason or f"{run.device_name} has no energy counter"
        no_counter = Problem("ok", "no_energy_counter", message)
    return EnergyRun(
        conditions=conditions_of(connection, run) if run.device_id is not None else None,
        rounds=_rounds(connection, run.run_id, step),
        rounds_expected=rounds_expected(run, step),
        trust=run.energy_trust,
        trust_reason=run.energy_trust_reason,
        counter_reason=no_counter,
        problem=problem_of(run),
        failed_gates=tuple(FailedGate(g.gate, g.at, g.reason) for g in gates if g.passed is False),
    )


def energy_baseline(connection: Connection, run: Row[Any]) -> tuple[EnergyBaseline | None, StoredBaseline | None]:
    """The baseline for energy: the closest one there is, so that the detector can say what is different about it.

    Of a simulated device for a simulated one only, and of real ones for real ones. For a run without energy it is
    before all others one for energy of the very same device, if there is one: then that run should have had it, too.
    """
    of_this_board: tuple[ColumnElement[bool], ...] = ()
    if run.energy_trust == NO_ENERGY:
        of_this_board = (and_(tables.baseline.c.for_energy, tables.device.c.uuid == run.uuid),)
    found = closest_of_device_kind(connection, run, tables.baseline.c.for_energy, of_this_board)
    if found is None:
        return None, None
    accepted = run_by_id(connection, found.run_id)
    detector_input = EnergyBaseline(
        name=name_of(accepted),
        conditions=conditions_of(connection, accepted),
        rounds=_rounds(connection, found.run_id),
        accepted=found.for_energy,
        trust=accepted.energy_trust,
        trust_reason=accepted.energy_trust_reason,
    )
    return detector_input, found


def _runs() -> Any:
    run, device, environment, payload = tables.run, tables.device, tables.environment, tables.payload
    joined = run.outerjoin(device).outerjoin(environment).outerjoin(payload)
    return select(
        run,
        device.c.kind,
        device.c.uuid,
        device.c.name.label("device_name"),
        environment.c.environment_class,
        payload.c.manifest_sha256,
    ).select_from(joined)


def run_by_id(connection: Connection, run_id: str) -> Row[Any]:
    """A stored run as ``find_run`` gives it, by its key."""
    row: Row[Any] = connection.execute(_runs().where(tables.run.c.run_id == run_id)).one()
    return row


def closest_of_device_kind(
    connection: Connection,
    run: Row[Any],
    purpose: ColumnElement[bool],
    first: tuple[ColumnElement[bool], ...] = (),
) -> StoredBaseline | None:
    """The baseline that fits a measurement best: of a simulated device for a simulated one, of real ones for real ones.

    ``purpose`` is what it should have been accepted for; ``first`` is looked at before everything else.
    """
    baseline, simulated = tables.baseline.c, tables.device.c.kind == SIMULATED
    closeness = (
        *first,
        baseline.payload_id == run.payload_id,
        baseline.device_id == run.device_id,
        baseline.protocol == run.protocol,
        purpose,
        baseline.environment_class == run.environment_class,
    )
    return _closest(connection, run, closeness, simulated if run.kind == SIMULATED else ~simulated)


def _closest(
    connection: Connection,
    run: Row[Any],
    closeness: tuple[ColumnElement[bool], ...],
    *conditions: ColumnElement[bool],
) -> StoredBaseline | None:
    """The current baseline of the workload that fits best; a simulated device's only for a simulated device."""
    baseline, device = tables.baseline, tables.device
    wanted = [baseline.c.workload == run.workload, baseline.c.retired_at.is_(None), *conditions]
    if run.kind != SIMULATED:
        wanted.append(device.c.kind != SIMULATED)
    order = [(part.is_(True)).desc() for part in closeness]
    found = connection.execute(
        select(baseline.c.baseline_id, baseline.c.run_id, baseline.c.for_time, baseline.c.for_energy)
        .select_from(baseline.join(device))
        .where(and_(*wanted))
        .order_by(*order, baseline.c.accepted_at.desc(), baseline.c.baseline_id.desc())
        .limit(1)
    ).one_or_none()
    return StoredBaseline(*found) if found else None


def _draw_result(row: Row[Any]) -> DrawResult:
    return DrawResult(
        draw=row.draw,
        total=row.total,
        agreed=row.agreed,
        mismatches=tuple((m["index"], m["expected"], m["found"]) for m in row.mismatches),
        predictions_sha256=row.predictions_int32_sha256,
        replays_equal_eager=tuple(row.replays_equal_eager),
        problem=problem_of(row),
    )


def problem_of(row: Row[Any]) -> Problem | None:
    """Why a run or a part of it cannot be judged; a regression is a finding, not an excuse."""
    if row.outcome not in EXPLAINED:
        return None
    return Problem(row.outcome, row.reason_code, row.reason_message or row.reason_code)


def _rounds(connection: Connection, run_id: str, last_step: int = LAST_STEP) -> tuple[RoundEnergy, ...]:
    measured, energy = tables.round_.c, tables.round_energy.c
    figures: dict[tuple[str, int], dict[str, float]] = {}
    for row in connection.execute(select(tables.round_energy).where(energy.run_id == run_id, energy.subject != SHAM)):
        name = row.figure if row.subject == SUBJECT else f"{row.figure} {row.subject}"
        figures.setdefault((row.arm, row.round), {})[name] = row.adjusted_mj
    stored = connection.execute(
        select(
            *(measured.arm, measured.round, measured.valid, measured.adjusted_mj, measured.reason_code),
            *(measured.repeats, measured.wall_ms),
        )
        .where(measured.run_id == run_id, measured.step <= last_step, of_the_run())
        .order_by(measured.arm, measured.round)
    )
    return tuple(
        RoundEnergy(
            *(row.round, row.valid, row.adjusted_mj, figures.get((row.arm, row.round), {}), row.reason_code),
            window=worked(row.repeats, row.wall_ms),
        )
        for row in stored
    )


def conditions_of(connection: Connection, run: Row[Any]) -> MeasurementConditions:
    """What must be the same; a simulated device's figures come from its model, whatever versions it is run with."""
    states = _states(connection, run.run_id)
    return MeasurementConditions(
        device=f"{run.device_name} ({run.uuid})",
        payload_manifest_sha256=run.manifest_sha256,
        protocol=run.protocol,
        environment_class=None if run.kind == SIMULATED else run.environment_class,
        kernel_sha256=run.kernel_ptx_sha256,
        uuid=run.uuid,
        power_limits_w=tuple(sorted({s["power_limit_w"] for s in states if s.get("power_limit_w") is not None})),
        power_kinds=tuple(sorted({s["power_kind"] for s in states if s.get("power_kind") is not None})),
    )


def _states(connection: Connection, run_id: str) -> list[dict[str, Any]]:
    """States of the GPU before telemetry and before each valid round, as they were recorded."""
    telemetry, measured, state = tables.telemetry.c, tables.round_.c, "state_before"
    looks = select(telemetry.readings[state]).where(telemetry.run_id == run_id)
    rounds = select(measured.counters[state]).where(measured.run_id == run_id, measured.valid, of_the_run())
    return [found for found in connection.execute(union_all(looks, rounds)).scalars() if found is not None]


def name_of(run: Row[Any]) -> str:
    """What messages call a baseline."""
    return f"{run.device_name} {run.dag_run_id}"
