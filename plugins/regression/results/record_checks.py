"""What a run record from elsewhere must not contradict: itself. Fields are named as they stand in the file.

The database refuses impossible rows, too, but can only name its own columns; whoever imports a file is told the field.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gpu_tasks.records import (
    DEVICE_KINDS,
    GATES,
    MAX_SEED,
    STORED_PROTOCOLS,
    TELEMETRY_MOMENTS,
    BadInput,
    ComparisonRecord,
    Outcome,
    RoundRecord,
    RunRecord,
    ValidationRecord,
    parse_utc,
    run_id_for,
)
from regression.results.candidate_columns import COMPARISON
from regression.results.columns import ENERGY_TRUST, TRIGGERS
from regression.results.training_checks import training_rules

Rule = tuple[str, bool, str, Any]
"""Field, whether it holds, what was expected, what was found."""

OF_TRAINING = ("qualification", "memory")
TIMES = ("created_at", "started_at", "completed_at", "accepted_at", "logical_date")
MOST_REPEATS = 2**63 - 1
LONGEST_ID = 250  # of a DAG and of a DAG run, in Airflow


def check_run(record: RunRecord, source: str) -> None:
    """Raise ``BadInput`` naming ``source``, field, expected and found for the first contradiction."""
    for where, text in _times(record):
        try:
            parse_utc(text)
        except BadInput as error:
            raise BadInput(error.code, f"{source}: {where}: {error.message}") from None
    for where, holds, expected, found in _rules(record):
        if not holds:
            shown = repr(found)
            shown = shown if len(shown) <= 80 else shown[:77] + "..."
            code = "bad_run_id" if where.endswith("run_id") else "record_contradicts_itself"
            raise BadInput(code, f"{source}: {where}: expected {expected}, found {shown}")


def _times(record: RunRecord) -> Iterator[tuple[str, str]]:
    parts = [("$", record), ("$.request", record.request), *_parts(record)]
    for where, part in parts:
        for name in TIMES:
            text = getattr(part, name, None)
            if text is not None:
                yield f"{where}.{name}", text


def _parts(record: RunRecord) -> Iterator[tuple[str, Any]]:
    """Every record within the record, with its field."""
    for name in (
        "provision",
        "verify_sources",
        "verify_payload",
        "confirmation",
        "candidate",
        "comparison",
        *OF_TRAINING,
    ):
        part = getattr(record, name)
        if part is not None:
            yield f"$.{name}", part
    for name in ("validations", "rounds", "telemetry"):
        for index, part in enumerate(getattr(record, name)):
            yield f"$.{name}[{index}]", part
    for name in ("emulated", "validations", "pinned_validations", "rounds"):
        for index, part in enumerate(getattr(record.comparison, name, ())):
            yield f"$.comparison.{name}[{index}]", part


def _rules(record: RunRecord) -> Iterator[Rule]:
    request = record.request
    for name in ("dag_id", "dag_run_id"):
        text = getattr(request, name)
        yield f"$.request.{name}", 0 < len(text) <= LONGEST_ID, f"1 to {LONGEST_ID} characters", text
    run_id = run_id_for(request.dag_id, request.dag_run_id)
    yield (
        "$.request.run_id",
        request.run_id == run_id,
        f"{run_id}, of {request.dag_id}/{request.dag_run_id}",
        request.run_id,
    )
    yield from _one_of("$.request.trigger", request.trigger, TRIGGERS)
    seed = request.seed  # no run could ever be asked for with another one
    yield "$.request.seed", seed is None or 0 <= seed <= MAX_SEED, f"0 to {MAX_SEED}", seed
    yield from _one_of("$.energy_trust", record.energy_trust, ENERGY_TRUST)
    if record.completed_at is not None:
        in_order = parse_utc(record.completed_at) >= parse_utc(record.started_at)
        yield "$.completed_at", in_order, f"{record.started_at} or later", record.completed_at
    for where, part in [("$", record), *_parts(record)]:
        fine = part.outcome is Outcome.OK or part.reason is not None
        yield f"{where}.reason", fine, f"a reason for {part.outcome.value}", None
    for where, part in _parts(record):
        yield f"{where}.workload", part.workload == request.workload, repr(request.workload), part.workload
    if record.provision and record.provision.device:
        yield from _one_of("$.provision.device.kind", record.provision.device.kind, DEVICE_KINDS)
    for index, validation in enumerate(record.validations):
        yield from _validation(f"$.validations[{index}]", validation)
    for index, measured in enumerate(record.rounds):
        yield from _round(f"$.rounds[{index}]", measured)
        own = measured.arm != COMPARISON
        yield f"$.rounds[{index}].arm", own, f"another than that of the comparison's rounds, {COMPARISON}", measured.arm
    for index, telemetry in enumerate(record.telemetry):
        yield from _one_of(f"$.telemetry[{index}].when", telemetry.when, TELEMETRY_MOMENTS)
    for index, gate in enumerate(record.gates):
        yield from _one_of(f"$.gates[{index}].gate", gate.gate, GATES)
    yield from _distinct("$.validations[{}].draw", [validation.draw for validation in record.validations])
    yield from _distinct("$.rounds[{}].round", [(measured.arm, measured.round) for measured in record.rounds])
    yield from _distinct("$.telemetry[{}].when", [telemetry.when for telemetry in record.telemetry])
    yield from _distinct("$.gates[{}].where", [(gate.gate, gate.where) for gate in record.gates])
    yield from _confirmation(record)
    yield from _candidate(record)
    yield from training_rules(record)
    yield from _summary(record)


def _one_of(where: str, found: str, words: Sequence[str]) -> Iterator[Rule]:
    yield where, found in words, f"one of {', '.join(words)}", found


def _distinct(where: str, keys: Sequence[Any]) -> Iterator[Rule]:
    for index, key in enumerate(keys):
        yield where.format(index), key not in keys[:index], "another one than before", key


def _validation(where: str, validation: ValidationRecord) -> Iterator[Rule]:
    total, agreed = validation.total, validation.agreed
    yield f"{where}.draw", validation.draw >= 0, "0 or more", validation.draw
    yield f"{where}.total", (total is None) == (agreed is None), "both total and agreed, or neither", total
    for name in ("total", "agreed", "device_correct", "reference_correct"):
        count, most = getattr(validation, name), total if name != "total" else None
        if count is not None:
            yield f"{where}.{name}", count >= 0, "0 or more", count
            yield f"{where}.{name}", name == "total" or (most is not None and count <= most), f"at most {most}", count
    if total is not None and agreed is not None:
        found = len(validation.mismatches)
        yield f"{where}.mismatches", found == total - agreed, f"{total - agreed} of them", found


def _round(where: str, measured: RoundRecord) -> Iterator[Rule]:
    yield from _one_of(f"{where}.protocol", measured.protocol, STORED_PROTOCOLS)
    yield f"{where}.round", measured.round >= 0, "0 or more", measured.round
    repeats = measured.repeats
    yield f"{where}.repeats", repeats is None or 0 < repeats <= MOST_REPEATS, "1 or more", repeats
    fine = measured.outcome is Outcome.OK
    yield f"{where}.valid", not measured.valid or fine, f"false with outcome {measured.outcome.value}", measured.valid
    yield f"{where}.reason", measured.valid or measured.reason is not None, "a reason for not being valid", None
    if measured.valid:
        for name in ("cuda_ms", "wall_ms"):
            value = getattr(measured, name)
            yield f"{where}.{name}", value is None or value > 0, "more than 0", value


def _confirmation(record: RunRecord) -> Iterator[Rule]:
    """The plan of the confirmation rounds is that of the request, and there are no other rounds."""
    plan, first = record.confirmation, record.request.rounds
    if plan is None:
        return
    allowed = list(range(first, first + (record.request.confirm_rounds or 0)))
    expected = f"none or {first} to {first + len(allowed) - 1}" if allowed else "none"
    yield "$.confirmation.rounds", plan.rounds in ([], allowed), expected, plan.rounds
    yield "$.confirmation.reason", plan.reason is not None, "a reason", None
    for index, measured in enumerate(record.rounds):
        known = measured.round < first or measured.round in plan.rounds
        yield f"$.rounds[{index}].round", known, "a round that was asked for or planned", measured.round


def _candidate(record: RunRecord) -> Iterator[Rule]:
    """Only a run that tries a kernel has one, and what it is compared with."""
    for name in ("candidate", "comparison"):
        fine = getattr(record, name) is None or record.request.candidate is not None
        yield f"$.{name}", fine, "none, as the request names no candidate", "one"
    if record.comparison is not None:
        yield from _comparison(record.comparison)


def _comparison(compared: ComparisonRecord) -> Iterator[Rule]:
    where = "$.comparison"
    yield from _one_of(f"{where}.energy_trust", compared.energy_trust, ENERGY_TRUST)
    found = len(compared.validations)
    yield f"{where}.validations", not found, "none, as the run has its own", found
    for name in ("emulated", "pinned_validations"):
        validations = getattr(compared, name)
        for index, validation in enumerate(validations):
            yield from _validation(f"{where}.{name}[{index}]", validation)
        yield from _distinct(f"{where}.{name}[{{}}].draw", [validation.draw for validation in validations])
    for index, measured in enumerate(compared.rounds):
        yield from _round(f"{where}.rounds[{index}]", measured)
        yield f"{where}.rounds[{index}].arm", measured.arm == COMPARISON, repr(COMPARISON), measured.arm
    yield from _distinct(f"{where}.rounds[{{}}].round", [measured.round for measured in compared.rounds])
    for index, turn in enumerate(compared.turns):
        for name, expected, said in turn.impossible():
            yield f"{where}.turns[{index}].{name}", False, expected, said
    valid = {measured.round: measured.valid for measured in compared.rounds}
    for index, block in enumerate(compared.blocks):
        yield f"{where}.blocks[{index}].round", block.round in valid, "a round of the comparison", block.round
        same = block.valid == valid.get(block.round)
        yield f"{where}.blocks[{index}].valid", same, "what its round says", block.valid
        yield f"{where}.blocks[{index}].block", block.block >= 0, "0 or more", block.block
    yield from _distinct(f"{where}.blocks[{{}}].block", [(block.round, block.block) for block in compared.blocks])
    for index, one in enumerate(compared.differing):
        parts = one.frozen != one.candidate or one.frozen != one.pinned
        yield f"{where}.differing[{index}].frozen", parts, "another class than one of the two", one.frozen
        yield f"{where}.differing[{index}].index", one.index >= 0, "0 or more", one.index
    yield from _distinct(f"{where}.differing[{{}}].index", [(one.draw, one.index) for one in compared.differing])
    least = len(compared.differing)
    yield f"{where}.differing_total", compared.differing_total >= least, f"{least} or more", compared.differing_total


def _summary(record: RunRecord) -> Iterator[Rule]:
    """Counts over the parts. Medians and spreads are not computed twice: ``gpu_tasks`` alone knows how."""
    summary, ran = record.summary, [v for v in record.validations if v.agreed is not None]
    for name in ("total", "agreed", "device_correct", "reference_correct"):
        counts = [getattr(validation, name) for validation in ran]
        expected = sum(count or 0 for count in counts) if any(count is not None for count in counts) else None
        yield f"$.summary.{name}", getattr(summary, name) == expected, repr(expected), getattr(summary, name)
    for name, expected in (
        ("draws_validated", len(ran)),
        ("rounds_valid", sum(measured.valid for measured in record.rounds)),
        ("draws_expected", len(record.request.draws)),
        ("rounds_expected", record.rounds_expected),
    ):
        yield f"$.summary.{name}", getattr(summary, name) == expected, str(expected), getattr(summary, name)
