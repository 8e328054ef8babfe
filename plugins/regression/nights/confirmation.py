"""The look at the first rounds: do they call for confirmation rounds in the same run?

The records of the night's tasks are held against the accepted baselines by the rules that judge the run later, from
what is known by then: the load of the night's end and the gates over all rounds are still to come.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from airflow.sdk.exceptions import AirflowException

from gpu_tasks.records import (
    BadInput,
    ConfirmationRecord,
    DeviceFingerprint,
    FirstLook,
    GpuState,
    Outcome,
    PayloadIdentity,
    Reason,
    RoundRecord,
    TelemetryRecord,
    VerifyRecord,
    read_record,
    utc_now,
)
from regression.detectors import (
    CheckVerdict,
    EnergyRun,
    MeasurementConditions,
    Problem,
    RoundEnergy,
    judge_energy,
)
from regression.detectors.confirmation import out_of_spread
from regression.detectors.time import RoundTime, TimeRun, judge_time
from regression.detectors.window import worked
from regression.nights.folder import Night

if TYPE_CHECKING:
    from sqlalchemy import Engine

OF_THE_RUN = "candidate"  # subject of the figures of what was measured
T = TypeVar("T")
JUDGED = ("cuda", "simulated")
"""Devices whose energy and time say something about a kernel."""
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FirstRounds:
    """What the night's folder holds when the first rounds are measured; damaged and missing parts are left out."""

    night: Night
    device: DeviceFingerprint
    payload: PayloadIdentity | None
    telemetry: TelemetryRecord | None
    rounds: tuple[RoundRecord, ...]

    @property
    def environment_class(self) -> str | None:
        """As the database has it."""
        from regression.results.rows import environment_class

        found = self.night.provision.environment
        return environment_class(found) if found else None


def plan(night: Night, results: Callable[[], Engine]) -> ConfirmationRecord:
    """The plan of the confirmation rounds; none where nothing can be compared, and no failed night for that.

    ``results`` gives the results database, and is asked only where there is something to look up. Raises ``BadInput``
    where the request or what was provisioned cannot be read.
    """
    request, kind = night.request, night.device.kind
    if not request.confirm_rounds:
        return _plan(night, [], [], Reason("not_asked", "confirm_rounds is 0: the first rounds have the last word"))
    if kind not in JUDGED:
        reason = Reason("no_figures", f"neither energy nor time of the {kind} device are judged")
        return _plan(night, [], [], reason)
    try:
        looks = _looks(_first_rounds(night), results)
    except (_database_errors(), AirflowException) as error:
        reason = Reason("results_unavailable", f"no baseline could be read: {' '.join(str(error).split())}"[:500])
        log.warning("%s", reason.message)
        return _plan(night, [], [], reason)
    tripped = [(found, run_id) for found, run_id in looks if out_of_spread(found)]
    if not tripped:
        within = any(found.baseline_low is not None for found, _ in looks)
        told = "; ".join(f"{found.check}: {found.reason}" for found, _ in looks)
        return _plan(night, [], looks, Reason("within_spread" if within else "nothing_to_compare", told))
    numbers = list(range(request.rounds, request.rounds + request.confirm_rounds))
    told = "; ".join(f"{found.check}: {found.reason}" for found, _ in tripped)
    return _plan(night, numbers, looks, Reason("out_of_spread", told))


def _plan(
    night: Night, rounds: list[int], looks: Sequence[tuple[CheckVerdict, str | None]], reason: Reason
) -> ConfirmationRecord:
    return ConfirmationRecord(
        kind="confirmation",
        created_at=utc_now(),
        outcome=Outcome.OK,
        reason=reason,
        workload=night.request.workload,
        rounds=rounds,
        looks=[_first_look(found, run_id) for found, run_id in looks],
    )


def _first_look(found: CheckVerdict, baseline_run_id: str | None) -> FirstLook:
    return FirstLook(
        check=found.check,
        verdict=found.verdict.value,
        reason_code=found.reason_code,
        metric=found.metric,
        unit=found.unit,
        value=found.value,
        baseline_low=found.baseline_low,
        baseline_high=found.baseline_high,
        baseline_run_id=baseline_run_id,
        out_of_spread=out_of_spread(found),
    )


def _database_errors() -> type[Exception]:
    from sqlalchemy.exc import SQLAlchemyError

    return SQLAlchemyError


def _first_rounds(night: Night) -> FirstRounds:
    verified = _part(night.folder / "verify-payload.json", VerifyRecord)
    paths = (night.folder / f"round-{number:02d}.json" for number in range(night.request.rounds))
    rounds = [_part(path, RoundRecord) for path in paths]
    return FirstRounds(
        night=night,
        device=night.device,
        payload=verified.payload if verified else None,
        telemetry=_part(night.folder / "telemetry-before.json", TelemetryRecord),
        rounds=tuple(measured for measured in rounds if measured),
    )


def _part(path: Path, cls: type[T]) -> T | None:
    """A part of the run, if it is there and whole; what is wrong with it the summary says."""
    try:
        return read_record(path, cls)
    except BadInput:
        return None


def _looks(first: FirstRounds, results: Callable[[], Engine]) -> list[tuple[CheckVerdict, str | None]]:
    """What the checks of energy and time would say now, each with the run it compared with."""
    from regression.results.history import energy_baseline
    from regression.results.times import time_baseline
    from regression.results.unstored import unstored_run

    with results().connect() as connection:
        run = unstored_run(
            connection,
            workload=first.night.request.workload,
            device=first.device,
            payload=first.payload,
            protocol=first.night.protocol,
            environment_class=first.environment_class,
            energy_trust=_trust(first),
        )
        energy, energy_of = energy_baseline(connection, run)
        time, time_of = time_baseline(connection, run)
    return [
        (judge_energy(_energy_run(first), energy), energy_of.run_id if energy_of else None),
        (judge_time(_time_run(first), time), time_of.run_id if time_of else None),
    ]


def _trust(first: FirstRounds) -> str:
    """What the telemetry before the rounds vouches for; the run may turn out to be worth less."""
    if not first.device.energy_counter:
        return "unavailable"
    gates = first.telemetry.gates if first.telemetry else []
    if any(gate.passed is False for gate in gates):
        return "failed"
    return "verified" if gates and all(gate.passed for gate in gates) else "unverified"


def _conditions(first: FirstRounds) -> MeasurementConditions:
    """As ``results.history.conditions_of`` has them of a stored run."""
    device, kernel = first.device, first.night.provision.kernel
    states = _states(first)
    return MeasurementConditions(
        device=f"{device.name} ({device.uuid})",
        payload_manifest_sha256=first.payload.manifest_sha256 if first.payload else None,
        protocol=first.night.protocol,
        environment_class=None if device.kind == "simulated" else first.environment_class,
        kernel_sha256=kernel.ptx_sha256 if kernel else None,
        uuid=device.uuid,
        power_limits_w=tuple(sorted({s.power_limit_w for s in states if s.power_limit_w is not None})),
        power_kinds=tuple(sorted({s.power_kind for s in states if s.power_kind is not None})),
    )


def _states(first: FirstRounds) -> list[GpuState]:
    before = [first.telemetry.state_before] if first.telemetry else []
    before += [measured.energy.state_before for measured in first.rounds if measured.valid and measured.energy]
    return [state for state in before if state is not None]


def _energy_run(first: FirstRounds) -> EnergyRun:
    missing = first.device.energy_counter_reason
    no_counter = Problem("ok", missing.code, missing.message) if missing else None
    return EnergyRun(
        conditions=_conditions(first),
        rounds=tuple(
            RoundEnergy(
                *(r.round, r.valid, r.adjusted_mj, _figures(r)),
                reason_code=r.reason.code if r.reason else None,
                window=worked(r.repeats, r.wall_ms),
            )
            for r in first.rounds
        ),
        rounds_expected=first.night.request.rounds,
        trust=_trust(first),
        counter_reason=no_counter if not first.device.energy_counter else None,
    )


def _figures(measured: RoundRecord) -> dict[str, float]:
    """Energies of what was measured, by figure."""
    figures = measured.energy.figures if measured.energy else []
    return {figure.figure: figure.adjusted_mj for figure in figures if figure.subject == OF_THE_RUN}


def _time_run(first: FirstRounds) -> TimeRun:
    return TimeRun(
        conditions=_conditions(first),
        rounds=tuple(
            RoundTime(r.round, r.valid, r.cuda_ms, r.repeats, r.reason.code if r.reason else None) for r in first.rounds
        ),
        rounds_expected=first.night.request.rounds,
    )
