"""``summarise``: the records of a run's tasks, put together into the one record that is complete by itself."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_tasks.energy.figures import summarise
from gpu_tasks.records import (
    FORMAT,
    BadInput,
    Outcome,
    ProvisionRecord,
    Reason,
    RoundRecord,
    RunRecord,
    RunRequest,
    ValidationRecord,
    VerifyRecord,
    parse_utc,
    read_record,
    utc_now,
)
from gpu_tasks.workloads.registry import get_workload

MOST_PARTS = 1000
"""Draws or rounds of one run at most."""

NO_GATE = Reason("no_telemetry_gate", "no telemetry gate of this version vouches for the energy counter")
NO_DEVICE = Reason("no_device", "no device was provisioned")


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
        _read("provision", 0, folder, ProvisionRecord, common | {"kind": "provision"}),
        _read("verify-sources", 1, folder, VerifyRecord, common | {"subject": "sources"}),
        _read("verify-payload", 1, folder, VerifyRecord, common | {"subject": "payload"}),
    ]
    device = parts[0].record.device if parts[0].record else None
    common |= {"payload": request.payload, "device_uuid": device.uuid if device else None}
    for draw in request.draws:
        expected = common | {"kind": "validation", "draw": draw}
        parts.append(_read(f"validation-{draw:02d}", 2, folder, ValidationRecord, expected))
    for number in range(request.rounds):
        expected = common | {"kind": "round", "round": number}
        parts.append(_read(f"round-{number:02d}", 3, folder, RoundRecord, expected))
    return parts


def check_request(request: RunRequest, path: Path) -> None:
    """Refuse a request that no run can have; raises ``BadInput`` with file, field, expected and found."""
    draws = request.draws
    rules = (
        ("rounds", 0 <= request.rounds <= MOST_PARTS, f"0 to {MOST_PARTS}", request.rounds),
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


def _read(name: str, stage: int, folder: Path, cls: type[Any], expected: dict[str, object]) -> Part:
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
    outcome, reason = judge(parts)
    trust, trust_reason = _energy_trust(provision)
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
        summary=summarise(len(request.draws), validations, request.rounds, rounds),
        energy_trust=trust,
        energy_trust_reason=trust_reason,
    )


def judge(parts: list[Part]) -> tuple[Outcome, Reason | None]:
    """Outcome of the run and its reason: the worst of the parts, as ``Outcome.worst`` orders them.

    The reason is that of the first part with that outcome. A part that never ran is explained when a part of an
    earlier stage did not end well (a verification mismatch stops the validations, say); otherwise it counts as an
    infrastructure failure. Either way the reason names the parts that are missing.
    """
    missing = [part for part in parts if part.outcome is None]
    failed = [part for part in parts if part.outcome not in (None, Outcome.OK)]
    first_failure = min((part.stage for part in failed), default=None)
    unexplained = [part for part in missing if first_failure is None or part.stage <= first_failure]
    outcomes = [part.outcome for part in parts if part.outcome is not None]
    if unexplained:
        outcomes.append(Outcome.INFRASTRUCTURE_FAILURE)
    worst = Outcome.worst(outcomes)
    if worst is Outcome.OK:
        return worst, None
    culprit = next((part for part in failed if part.outcome is worst), None)
    not_run = f"did not run: {', '.join(_names(missing))}" if missing else None
    if culprit is None or culprit.reason is None:
        return worst, Reason("parts_missing", not_run or "a part failed without a reason")
    message = f"{culprit.name}: {culprit.reason.message}" + (f"; {not_run}" if not_run else "")
    return worst, Reason(culprit.reason.code, message)


def _names(parts: Iterable[Part]) -> list[str]:
    return [part.name for part in parts]


def _energy_trust(provision: ProvisionRecord | None) -> tuple[str, Reason | None]:
    if provision is None or provision.device is None:
        return "unavailable", NO_DEVICE
    if not provision.device.energy_counter:
        return "unavailable", provision.device.energy_counter_reason
    return "unverified", NO_GATE
