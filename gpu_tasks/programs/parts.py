"""Reading the parts of a run from its folder: each is checked by itself, and that it is of this run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_tasks.comparison.recheck import recomputed_comparison
from gpu_tasks.convert.own_parts import recomputed_memory, recomputed_qualification, recomputed_validation
from gpu_tasks.energy.recheck import check_part, refuse_difference
from gpu_tasks.programs.interleaving import ARM
from gpu_tasks.records import (
    TELEMETRY_MOMENTS,
    BadInput,
    CandidateRecord,
    ComparisonRecord,
    ConfirmationRecord,
    MemoryRecord,
    Outcome,
    ProvisionRecord,
    QualificationRecord,
    Reason,
    RoundRecord,
    RunRequest,
    TelemetryRecord,
    ValidationRecord,
    VerifyRecord,
    parse_utc,
    read_record,
)
from gpu_tasks.workloads.base import QualifiedWorkload
from gpu_tasks.workloads.registry import get_workload

CANDIDATE, PROVISION, VERIFY, VALIDATIONS, ROUNDS, CONFIRMATION, CONFIRMATION_ROUNDS, TELEMETRY_AFTER = range(8)
"""Stages of the night in their order. The telemetry before the rounds is of the validations' stage, and so is the
comparison of a run that tries a kernel, which validates in their place."""


@dataclass(frozen=True)
class Part:
    """One task of the run: its name, its stage in the order of the night, and its record or why there is none.

    ``outcome`` is null for a task that never wrote a record.
    """

    name: str
    stage: int
    record: Any
    outcome: Outcome | None
    reason: Reason | None


def read_parts(request: RunRequest, folder: Path) -> list[Part]:
    """All parts the request calls for, in the order of the night."""
    common: dict[str, object] = {"workload": request.workload}
    parts: list[Part] = []
    if request.candidate is not None:
        expected = common | {"kind": "candidate", "spec": request.candidate}
        parts.append(_read("candidate", CANDIDATE, folder, CandidateRecord, expected=expected))
    parts += [
        _read("provision", PROVISION, folder, ProvisionRecord, expected=common | {"kind": "provision"}),
        _read("verify-sources", VERIFY, folder, VerifyRecord, expected=common | {"subject": "sources"}),
        _read("verify-payload", VERIFY, folder, VerifyRecord, expected=common | {"subject": "payload"}),
    ]
    provision: ProvisionRecord | None = next(part.record for part in parts if part.name == "provision")
    device = provision.device if provision else None
    common |= {"payload": request.payload, "device_uuid": device.uuid if device else None}
    kernel = provision.kernel if provision else None
    if request.candidate is not None:
        expected = common | {"kind": "comparison"}
        compared = _read("comparison", VALIDATIONS, folder, ComparisonRecord, expected=expected)
        parts.append(_of_this_run(compared, request, provision, parts[0].record, folder))
    if "qualification" in request.parts or isinstance(get_workload(request.workload), QualifiedWorkload):
        expected = {"workload": request.workload, "device_uuid": common["device_uuid"], "kind": "qualification"}
        parts.append(_read("qualification", VALIDATIONS, folder, QualificationRecord, expected=expected))
    for draw in request.draws if request.candidate is None else []:
        expected = common | {"kind": "validation", "draw": draw}
        parts.append(_read(f"validation-{draw:02d}", VALIDATIONS, folder, ValidationRecord, expected=expected))
    asked = {
        "protocol": request.protocol or (provision.protocol if provision else None),
        "repeats": request.repeats if request.protocol != "interleaved" else None,
        "kernel_ptx_sha256": kernel.ptx_sha256 if kernel else None,
        "inject": request.inject,
        "arm": "candidate",
    }
    confirmation = _confirmation(request, folder)
    planned = confirmation.record.rounds if confirmation.record else []
    numbers = [(number, ROUNDS) for number in range(request.rounds)]
    for number, stage in numbers + [(number, CONFIRMATION_ROUNDS) for number in planned]:
        expected = common | {"kind": "round", "round": number}
        parts.append(_read(f"round-{number:02d}", stage, folder, RoundRecord, expected=expected, asked=asked))
    parts += [confirmation] if request.confirm_rounds is not None or confirmation.outcome is not None else []
    memory = _read("memory", TELEMETRY_AFTER, folder, MemoryRecord, expected=common | {"kind": "memory"})
    parts += [memory] if memory.outcome is not None or "memory" in request.parts else []
    for moment, stage in zip(TELEMETRY_MOMENTS, (VALIDATIONS, TELEMETRY_AFTER), strict=True):
        device_uuid = common["device_uuid"]
        expected = {"workload": request.workload, "device_uuid": device_uuid, "kind": "telemetry", "when": moment}
        part = _read(f"telemetry-{moment}", stage, folder, TelemetryRecord, expected=expected)
        # Never made is no failure by itself: the gates are then unchecked, and the energy unverified.
        parts += [part] if part.outcome is not None else []
    return parts


def _of_this_run(
    part: Part, request: RunRequest, provision: ProvisionRecord | None, tried: CandidateRecord | None, folder: Path
) -> Part:
    """The comparison, or why it is none of this run's kernels and draws."""
    record: ComparisonRecord | None = part.record
    if record is None:
        return part
    own, other = (kernel.ptx_sha256 if kernel else None for kernel in (record.candidate, record.pinned))
    known = [
        ("candidate", provision.kernel if provision else None, own),
        ("candidate", tried.kernel if tried else None, own),
        ("pinned", tried.against if tried else None, other),
    ]
    rules: list[tuple[str, object, object]] = [
        (f"$.{side}.ptx_sha256", kernel.ptx_sha256, found) for side, kernel, found in known if kernel and found
    ]
    sides = {"emulated": record.emulated, "validations": record.validations, "pinned": record.pinned_validations}
    for name, validations in sides.items():
        strange = [validation.draw for validation in validations if validation.draw not in request.draws]
        rules.append((f"$.{name}.draw", [], strange))
    if record.outcome is Outcome.OK:
        rules.append(("$.validations.draw", request.draws, [validation.draw for validation in record.validations]))
    for field, expected, found in rules:
        if expected != found:
            message = f"{folder / 'comparison.json'}: {field}: expected {expected!r}, found {found!r}"
            return Part(part.name, part.stage, None, Outcome.BAD_INPUT, Reason("wrong_part", message))
    return part


def _confirmation(request: RunRequest, folder: Path) -> Part:
    """The plan of the confirmation rounds; one that names other rounds than those after the first is none."""
    expected: dict[str, object] = {"workload": request.workload, "kind": "confirmation"}
    part = _read("confirmation", CONFIRMATION, folder, ConfirmationRecord, expected=expected)
    if part.record is None:
        return part
    first, last = request.rounds, request.rounds + (request.confirm_rounds or 0) - 1
    if part.record.rounds in ([], list(range(first, last + 1))):
        return part
    message = f"{folder / 'confirmation.json'}: $.rounds: expected none or {first} to {last}, found "
    reason = Reason("wrong_part", message + f"{part.record.rounds}"[:80])
    return Part(part.name, part.stage, None, Outcome.BAD_INPUT, reason)


def _check_counts(record: ValidationRecord, path: Path) -> None:
    """Counts that contradict each other are no measurement of anything."""
    if record.total is None or record.agreed is None:
        return
    indices = [mismatch.index for mismatch in record.mismatches]
    rules = (
        ("agreed", 0 <= record.agreed <= record.total, f"0 to {record.total}", record.agreed),
        ("mismatches", len(set(indices)) == record.total - record.agreed, "one for each disagreement", len(indices)),
        ("mismatches", all(0 <= index < record.total for index in indices), "indices of queries", indices[:5]),
        ("outcome", record.outcome is not Outcome.OK or not indices, "ok only without mismatches", record.outcome),
        ("outcome", record.outcome is not Outcome.OK or all(record.replays_equal_eager), "equal replays", "ok"),
    )
    for field, holds, expected, found in rules:
        if not holds:
            raise BadInput("contradictory_part", f"{path}: $.{field}: expected {expected}, found {found}")


def _check_round(record: RoundRecord, path: Path, asked: Mapping[str, object]) -> None:
    """A round of another protocol, kernel or effect is not one of this run; what nobody asked for is not compared."""
    for field, value in asked.items():
        found = getattr(record, field)
        if None not in (value, found) and found != value:  # rounds from before the field existed do not say
            raise BadInput("wrong_part", f"{path}: $.{field}: expected {value!r}, found {found!r}")
    if record.energy is not None and record.inject != asked["inject"]:
        raise BadInput("wrong_part", f"{path}: $.inject: expected {asked['inject']!r}, found {record.inject!r}")


def _check_comparison(record: ComparisonRecord, path: Path) -> None:
    """Its validations and rounds like those of a night, and what is derived from them."""
    for validation in [*record.emulated, *record.validations, *record.pinned_validations]:
        _check_counts(validation, path)
    own = record.candidate.ptx_sha256 if record.candidate else None
    for measured in record.rounds:
        for field, expected in (("arm", ARM), ("protocol", "interleaved"), ("kernel_ptx_sha256", own)):
            found = getattr(measured, field)
            if found != expected:
                raise BadInput("wrong_part", f"{path}: $.rounds.{field}: expected {expected!r}, found {found!r}")
    refuse_difference(recomputed_comparison(record, record.validations, "$"), str(path))


def _read(
    name: str,
    stage: int,
    folder: Path,
    cls: type[Any],
    *,
    expected: dict[str, object],
    asked: Mapping[str, object] | None = None,
) -> Part:
    path = folder / f"{name}.json"
    if not path.exists():
        return Part(name, stage, None, None, None)
    try:
        record = read_record(path, cls)
        parse_utc(record.created_at)
        for field, value in expected.items():
            found = getattr(record, field)
            if found != value and not (field == "device_uuid" and found is None):  # it failed before it had a device
                raise BadInput("wrong_part", f"{path}: $.{field}: expected {value!r}, found {found!r}")
        if isinstance(record, ValidationRecord):
            _check_counts(record, path)
            refuse_difference(recomputed_validation(record, "$"), str(path))
        if isinstance(record, QualificationRecord):
            refuse_difference(recomputed_qualification(record, "$"), str(path))
        if isinstance(record, MemoryRecord):
            refuse_difference(recomputed_memory(record, "$"), str(path))
        if isinstance(record, RoundRecord) and record.valid:
            _check_round(record, path, asked or {})
        if isinstance(record, RoundRecord | TelemetryRecord):
            check_part(record, str(path))
        if isinstance(record, ComparisonRecord):
            _check_comparison(record, path)
    except BadInput as error:
        return Part(name, stage, None, Outcome.BAD_INPUT, Reason(error.code, error.message))
    return Part(name, stage, record, record.outcome, record.reason)
