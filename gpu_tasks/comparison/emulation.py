"""Kernels on the emulator: all draws, races looked for, and what can be counted or modelled of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpu_tasks.comparison.moved import CODE, moved_fault
from gpu_tasks.comparison.parallel import in_parallel
from gpu_tasks.devices.base import Device
from gpu_tasks.devices.emulated.critical_path import run_modelled_draw
from gpu_tasks.devices.emulated.device import EmulatedQda
from gpu_tasks.devices.host import cpu_fingerprint
from gpu_tasks.devices.manifest import Kernels
from gpu_tasks.payload.draws import Payload
from gpu_tasks.records import BadInput, Outcome, Reason, StaticFigures, ValidationRecord, utc_now
from gpu_tasks.validation import ChosenDraw, chosen_draw, validate_draw
from gpu_tasks.workloads.base import Workload


@dataclass(frozen=True)
class Emulated:
    """One variant's validations, and its static figures (null: not made, as a draw went wrong)."""

    validations: list[ValidationRecord]
    static: StaticFigures | None


@dataclass(frozen=True)
class Wanted:
    """Kernels, what to call them, the draws to run, and what to look for besides: races, static figures, arithmetic.

    ``moved``: the first draw has to come out right where it is moved as well. What ``beside``, other kernels, gets
    wrong there too is no fault of these.
    """

    name: str
    kernels: Kernels
    draws: Sequence[int]
    races: bool = True
    static: bool = True
    moved: bool = True
    beside: Kernels | None = None


def emulate(
    workload: Workload, payload: Payload, wanted: Sequence[Wanted], processes: int | None = None
) -> list[Emulated]:
    """Each of ``wanted``, shared out over the CPUs; it ends after the first finding, of which one is enough.

    What would have come after a finding is missing. A draw that the kernels do not get through is a validation with
    outcome ``regression`` whose reason is the finding. Raises ``BadInput`` where kernels cannot be launched at all.
    """
    chosen = {number: chosen_draw(payload, number) for one in wanted for number in one.draws}
    devices = [EmulatedQda(workload, one.kernels, check_races=one.races) for one in wanted]
    jobs: list[tuple[int, int | None]] = [(k, draw) for k, one in enumerate(wanted) for draw in one.draws]
    jobs += [(k, None) for k, one in enumerate(wanted) if one.static]

    def work(job: tuple[int, int | None]) -> tuple[int, ValidationRecord | StaticFigures | None]:
        k, draw = job
        if draw is None:
            return k, _static_figures(devices[k], wanted[k].kernels)
        uuid = cpu_fingerprint("emulated").uuid
        record = validated(devices[k], workload, payload, chosen[draw], uuid)
        if record.outcome is not Outcome.OK or not wanted[k].moved or draw != wanted[k].draws[0]:
            return k, record
        worse = _worse_arithmetic(devices[k], workload, chosen[draw], wanted[k].beside)
        return k, finding(workload, payload, draw, uuid, worse) if worse else record

    results = in_parallel(work, jobs, enough=lambda result: _is_finding(result[1]), processes=processes)
    found = []
    for k in range(len(wanted)):
        parts = [part for owner, part in results if owner == k]
        static = next((part for part in parts if isinstance(part, StaticFigures)), None)
        found.append(Emulated([part for part in parts if isinstance(part, ValidationRecord)], static))
    return found


def validated(
    device: Device, workload: Workload, payload: Payload, chosen: ChosenDraw, device_uuid: str
) -> ValidationRecord:
    """As ``validate_draw``, but what the kernels do wrong is a ``regression`` of the draw and no error of the caller.

    The draws are good, so that whatever ``BadInput`` a device says of one is said of its kernels.
    """
    try:
        record = validate_draw(device, workload, payload, chosen)
    except BadInput as error:
        return finding(workload, payload, chosen.number, device_uuid, error)
    return dataclasses.replace(record, device_uuid=device_uuid)


def finding(workload: Workload, payload: Payload, number: int, device_uuid: str, error: BadInput) -> ValidationRecord:
    """The validation of a draw that the kernels did not get through."""
    entry = payload.manifest.draw(number)
    return ValidationRecord(
        kind="validation",
        created_at=utc_now(),
        outcome=Outcome.REGRESSION,
        reason=Reason(error.code, error.message),
        workload=workload.name,
        payload=payload.name,
        device_uuid=device_uuid,
        draw=number,
        dataset_seed=entry.dataset_seed,
        payload_sha256=entry.sha256,
        total=None,
        agreed=None,
        device_correct=None,
        reference_correct=None,
        predictions_int32_sha256=None,
        mismatches=[],
        replays_equal_eager=[],
        scratch_poisoned_before_eager_and_each_replay=None,
        captured_graph_reused_across_changed_inputs=None,
        intermediate_floats_equal_reference_bitwise=None,
        duration_s=None,
    )


def _worse_arithmetic(
    device: EmulatedQda, workload: Workload, chosen: ChosenDraw, beside: Kernels | None
) -> BadInput | None:
    """Why the kernels' arithmetic does not do, where that of ``beside`` does."""
    fault = moved_fault(device, workload, chosen.draw)
    if fault is None:
        return None
    if beside and moved_fault(EmulatedQda(workload, beside, check_races=False), workload, chosen.draw):
        return None
    text = "right as it is, wrong where every feature is moved by a constant, which changes nothing but rounding"
    return BadInput(CODE, f"{text}: {fault}")


def first_wrong(validations: Sequence[ValidationRecord]) -> Reason | None:
    """Why the first draw that did not go well did not, with its number; None where all did."""
    return next(wrongs(validations), None)


def wrongs(validations: Sequence[ValidationRecord]) -> Iterator[Reason]:
    """The same of every draw: a finding does not name the draw by itself, a disagreement does."""
    for record in validations:
        if record.outcome is not Outcome.OK and record.reason is not None:
            where = f"draw {record.draw}: " if record.agreed is None else ""
            yield Reason(record.reason.code, where + record.reason.message)


def _is_finding(part: ValidationRecord | StaticFigures | None) -> bool:
    return isinstance(part, ValidationRecord) and part.agreed is None


def _static_figures(device: EmulatedQda, kernels: Kernels) -> StaticFigures | None:
    """None where the kernels do not get through the draw that the model is defined on."""
    try:
        cycles = run_modelled_draw(device)
    except BadInput:
        return None
    return StaticFigures(
        ptx_lines=sum(len(text.splitlines()) for text in kernels.texts),
        instructions=sum(len(machine.kernel.code) for machine in device.machines),
        shared_bytes=max(launch.shared_static_bytes + launch.shared_dynamic_bytes for launch in kernels.launches),
        modelled_cycles=sum(cycles),
    )
