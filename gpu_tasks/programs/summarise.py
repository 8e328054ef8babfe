"""``summarise``: the records of a run's tasks, put together into the one record that is complete by itself."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from gpu_tasks.energy.figures import summarise
from gpu_tasks.energy.trust import comparison_trust, energy_trust
from gpu_tasks.programs.bounds import Rule, shortened
from gpu_tasks.programs.judging import judge
from gpu_tasks.programs.parts import Part, read_parts
from gpu_tasks.records import (
    FORMAT,
    MAX_BLOCKS,
    MAX_DRAWS,
    MAX_REPEATS,
    MAX_ROUNDS,
    MAX_SEED,
    BadInput,
    ComparisonRecord,
    ConfirmationRecord,
    ProvisionRecord,
    RoundRecord,
    RunRecord,
    RunRequest,
    TelemetryRecord,
    ValidationRecord,
    parse_utc,
    read_record,
    utc_now,
)
from gpu_tasks.workloads.registry import get_workload


def run(arguments: Namespace) -> RunRecord:
    """Read the request and every part that is there; raises ``BadInput`` only when the request cannot be read."""
    request = read_record(arguments.request, RunRequest)
    check_request(request, arguments.request)
    if arguments.out is not None and arguments.out.resolve() == arguments.request.resolve():
        raise BadInput("out_is_input", f"--out: expected another file than --request, found {arguments.out}")
    return run_record(request, read_parts(request, arguments.folder))


def check_request(request: RunRequest, path: Path) -> None:
    """Refuse a request that no run can have; raises ``BadInput`` with file, field, expected and found."""
    draws = request.draws
    numbers = (
        ("rounds", request.rounds, 0, MAX_ROUNDS),
        ("confirm_rounds", request.confirm_rounds, 0, MAX_ROUNDS),
        ("blocks", request.blocks, 0, MAX_BLOCKS),
        ("repeats", request.repeats, 1, MAX_REPEATS),
        ("seed", request.seed, 0, MAX_SEED),
    )
    rules: list[Rule] = [
        (field, found is None or low <= found <= high, f"{low} to {high}", found) for field, found, low, high in numbers
    ]
    last, distinct = MAX_DRAWS - 1, len(set(draws)) == len(draws)
    rules += [
        ("draws", bool(draws), f"1 to {MAX_DRAWS} of them", "none"),
        ("draws", distinct and all(0 <= n <= last for n in draws), f"distinct numbers from 0 to {last}", draws),
    ]
    for field, holds, expected, found in rules:
        if not holds:
            raise BadInput("bad_request", f"{path}: $.{field}: expected {expected}, found {shortened(found)}")
    get_workload(request.workload)
    parse_utc(request.accepted_at)


def run_record(request: RunRequest, parts: list[Part]) -> RunRecord:
    """The record of a run from its parts."""
    records = {part.name: part.record for part in parts}
    provision: ProvisionRecord | None = records["provision"]
    comparison: ComparisonRecord | None = records.get("comparison")
    validations = [part.record for part in parts if isinstance(part.record, ValidationRecord)]
    if comparison is not None:
        validations = comparison.validations
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
        candidate=records.get("candidate"),
        qualification=records.get("qualification"),
        memory=records.get("memory"),
        comparison=_with_trust(comparison, request, provision, telemetry) if comparison else None,
    )


def _with_trust(
    record: ComparisonRecord,
    request: RunRequest,
    provision: ProvisionRecord | None,
    telemetry: Sequence[TelemetryRecord],
) -> ComparisonRecord:
    """The comparison as a run has it: its validations are the run's, and its trust is what all telemetry says."""
    device = provision.device if provision else None
    bands = request.reference_bands
    trust, reason = comparison_trust(device, telemetry, record.rounds, bands, record.not_measured)
    return dataclasses.replace(record, validations=[], energy_trust=trust, energy_trust_reason=reason)
