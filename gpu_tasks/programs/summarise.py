"""``summarise``: the records of a run's tasks, put together into the one record that is complete by itself."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_tasks.energy.figures import summarise
from gpu_tasks.energy.gates import failed as failed_gates
from gpu_tasks.energy.recheck import check_part
from gpu_tasks.energy.trust import energy_trust
from gpu_tasks.programs.console import in_short
from gpu_tasks.records import (
    FORMAT,
    TELEMETRY_MOMENTS,
    BadInput,
    ConfirmationRecord,
    GateResult,
    Outcome,
    ProvisionRecord,
    Reason,
    RoundRecord,
    RunRecord,
    RunRequest,
    TelemetryRecord,
    ValidationRecord,
    VerifyRecord,
    parse_utc,
    read_record,
    utc_now,
)
from gpu_tasks.workloads.registry import get_workload

MOST_PARTS = 1000
"""Draws or rounds of one run at most."""

PROVISION, VERIFY, VALIDATIONS, ROUNDS, CONFIRMATION, CONFIRMATION_ROUNDS, TELEMETRY_AFTER = range(7)
"""Stages of the night in their order; the telemetry before the rounds is of the validations' stage."""

FEWEST_ROUNDS = 3
"""Valid rounds that a run needs, as far as so many were asked for, and more than half of them: a few invalid ones are
left out, not made up for."""

NEVER_LEFT_OUT = "output_not_verified"
"""A round with wrong output is no disturbed measurement: something computed wrongly."""


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


def run(arguments: Namespace) -> RunRecord:
    """Read the request and every part that is there; raises ``BadInput`` only when the request cannot be read."""
    request = read_record(arguments.request, RunRequest)
    check_request(request, arguments.request)
    if arguments.out is not None and arguments.out.resolve() == arguments.request.resolve():
        raise BadInput("out_is_input", f"--out: expected another file than --request, found {arguments.out}")
    return run_record(request, read_parts(request, arguments.folder))


def read_parts(request: RunRequest, folder: Path) -> list[Part]:
    """All parts the request calls for, in the order of the night."""
    common: dict[str, object] = {"workload": request.workload}
    parts = [
        _read("provision", PROVISION, folder, ProvisionRecord, expected=common | {"kind": "provision"}),
        _read("verify-sources", VERIFY, folder, VerifyRecord, expected=common | {"subject": "sources"}),
        _read("verify-payload", VERIFY, folder, VerifyRecord, expected=common | {"subject": "payload"}),
    ]
    device = parts[0].record.device if parts[0].record else None
    common |= {"payload": request.payload, "device_uuid": device.uuid if device else None}
    for draw in request.draws:
        expected = common | {"kind": "validation", "draw": draw}
        parts.append(_read(f"validation-{draw:02d}", VALIDATIONS, folder, ValidationRecord, expected=expected))
    kernel = parts[0].record.kernel if parts[0].record else None
    asked = {
        "protocol": request.protocol or (parts[0].record.protocol if parts[0].record else None),
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
    for moment, stage in zip(TELEMETRY_MOMENTS, (VALIDATIONS, TELEMETRY_AFTER), strict=True):
        device_uuid = common["device_uuid"]
        expected = {"workload": request.workload, "device_uuid": device_uuid, "kind": "telemetry", "when": moment}
        part = _read(f"telemetry-{moment}", stage, folder, TelemetryRecord, expected=expected)
        # Never made is no failure by itself: the gates are then unchecked, and the energy unverified.
        parts += [part] if part.outcome is not None else []
    return parts


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


def check_request(request: RunRequest, path: Path) -> None:
    """Refuse a request that no run can have; raises ``BadInput`` with file, field, expected and found."""
    draws, confirm = request.draws, request.confirm_rounds or 0
    rules = (
        ("rounds", 0 <= request.rounds <= MOST_PARTS, f"0 to {MOST_PARTS}", request.rounds),
        ("confirm_rounds", 0 <= confirm <= MOST_PARTS, f"0 to {MOST_PARTS}", confirm),
        ("draws", 0 < len(draws) <= MOST_PARTS, f"1 to {MOST_PARTS} of them", len(draws)),
        ("draws", len(set(draws)) == len(draws) and min(draws, default=0) >= 0, "distinct numbers from 0", draws),
    )
    for field, holds, expected, found in rules:
        if not holds:
            raise BadInput("bad_request", f"{path}: $.{field}: expected {expected}, found {str(found)[:80]}")
    get_workload(request.workload)
    parse_utc(request.accepted_at)


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
        if isinstance(record, RoundRecord) and record.valid:
            _check_round(record, path, asked or {})
        if isinstance(record, RoundRecord | TelemetryRecord):
            check_part(record, str(path))
    except BadInput as error:
        return Part(name, stage, None, Outcome.BAD_INPUT, Reason(error.code, error.message))
    return Part(name, stage, record, record.outcome, record.reason)


def run_record(request: RunRequest, parts: list[Part]) -> RunRecord:
    """The record of a run from its parts."""
    records = {part.name: part.record for part in parts}
    provision: ProvisionRecord | None = records["provision"]
    validations = [part.record for part in parts if isinstance(part.record, ValidationRecord)]
    rounds = [part.record for part in parts if isinstance(part.record, RoundRecord)]
    times = sorted((part.record.created_at for part in parts if part.record is not None), key=parse_utc)
    telemetry = [part.record for part in parts if isinstance(part.record, TelemetryRecord)]
    gates, trust, trust_reason = energy_trust(provision, telemetry, rounds, request.reference_bands)
    confirmation: ConfirmationRecord | None = records.get("confirmation")
    rounds_expected = request.rounds + len(confirmation.rounds if confirmation else [])
    outcome, reason = judge(parts, rounds_expected, gates)
    return RunRecord(
        kind="run",
        format=FORMAT,
        created_at=utc_now(),
        started_at=request.accepted_at,
        completed_at=times[-1] if times else None,
        outcome=outcome,
        reason=reason,
        request=request,
        provision=provision,
        verify_sources=records["verify-sources"],
        verify_payload=records["verify-payload"],
        kernel=provision.kernel if provision else None,
        validations=validations,
        rounds=rounds,
        summary=summarise(len(request.draws), validations, rounds_expected, rounds, telemetry),
        energy_trust=trust,
        energy_trust_reason=trust_reason,
        telemetry=telemetry,
        gates=gates,
        confirmation=confirmation,
    )


def judge(parts: list[Part], rounds_expected: int, gates: Sequence[GateResult]) -> tuple[Outcome, Reason | None]:
    """Outcome of the run and its reason: the worst of the parts, as ``Outcome.worst`` orders them.

    The reason is that of the first part with that outcome. A part that never ran is explained when a part of an
    earlier stage did not end well (a verification mismatch stops the validations, say); otherwise it counts as an
    infrastructure failure. Either way the reason names the parts that are missing. Rounds that are invalid are left
    out as long as enough valid ones remain, and explain nothing; a failed gate makes the measurement invalid whatever
    its rounds say.
    """
    missing = [part for part in parts if part.outcome is None]
    failed = [part for part in parts if part.outcome not in (None, Outcome.OK) and not _may_be_left_out(part)]
    first_failure = min((part.stage for part in failed), default=None)
    unexplained = [part for part in missing if first_failure is None or part.stage <= first_failure]
    counted = [part for part in parts if part.outcome is not None and not _may_be_left_out(part)]
    outcomes = [part.outcome for part in counted if part.outcome is not None]
    if unexplained:
        outcomes.append(Outcome.INFRASTRUCTURE_FAILURE)
    measurement = _measurement_problem(parts, rounds_expected, gates)
    if measurement is not None:
        outcomes.append(Outcome.INVALID_MEASUREMENT)
    worst = Outcome.worst(outcomes)
    if worst is Outcome.OK:
        return worst, None
    not_run = f"did not run: {in_short([part.name for part in missing])}" if missing else None
    culprit = next((part for part in counted if part.outcome is worst), None)
    if culprit is not None and culprit.reason is not None:
        found = Reason(culprit.reason.code, f"{culprit.name}: {culprit.reason.message}")
    elif worst is Outcome.INVALID_MEASUREMENT and measurement is not None:
        found = measurement
    else:
        return worst, Reason("parts_missing", not_run or "a part failed without a reason")
    return worst, Reason(found.code, found.message + (f"; {not_run}" if not_run else ""))


def _may_be_left_out(part: Part) -> bool:
    """A disturbed round, and what telemetry found: the gates of the run say that."""
    if part.outcome is not Outcome.INVALID_MEASUREMENT:
        return False
    if isinstance(part.record, TelemetryRecord):
        return bool(part.record.gates)
    code = part.reason.code if part.reason else ""
    return isinstance(part.record, RoundRecord) and code != NEVER_LEFT_OUT


def _measurement_problem(parts: list[Part], expected: int, gates: Sequence[GateResult]) -> Reason | None:
    """Why the rounds as a whole cannot be used: a failed gate, or too few of them valid."""
    wrong = failed_gates(gates)
    if wrong:
        names = ", ".join(dict.fromkeys(gate.gate for gate in wrong))
        details = "; ".join(gate.reason.message for gate in wrong if gate.reason)
        return Reason("gate_failed", f"telemetry gate {names}: {details}")
    rounds = [part.record for part in parts if isinstance(part.record, RoundRecord)]
    invalid = [record for record in rounds if not record.valid]
    valid = len(rounds) - len(invalid)
    if not invalid or valid >= max(min(FEWEST_ROUNDS, expected), expected // 2 + 1):
        return None
    counts = Counter(record.reason.code for record in invalid if record.reason)
    told = ", ".join(f"{count} {code}" for code, count in counts.most_common())
    first = next((record.reason.message for record in invalid if record.reason), "")
    code = "too_few_valid_rounds" if valid else "no_valid_round"
    return Reason(code, f"{valid} of {expected} rounds are valid ({told}); the first: {first}")
