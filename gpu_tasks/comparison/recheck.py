"""A comparison held against itself: everything in it that follows from its validations and readings, once more."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from gpu_tasks.comparison.differing import differing
from gpu_tasks.energy.blocks import block_figures, candidate_ms
from gpu_tasks.energy.recheck import Difference, recomputed_round
from gpu_tasks.records import BadInput, ComparisonRecord, DifferingPrediction, Outcome, ValidationRecord


def recomputed_comparison(
    record: ComparisonRecord, validations: Sequence[ValidationRecord], where: str
) -> Iterator[Difference]:
    """Fields, what follows from the rest, and what they say; ``validations`` are the candidate's on the device.

    Where there are none, the candidate was judged on the emulator. Raises ``BadInput`` for readings without figures.
    """
    _refuse_impossible(record, where)
    for index, measured in enumerate(record.rounds):
        yield from recomputed_round(measured, f"{where}.rounds[{index}]")
        turns = [turn for turn in record.turns if turn.round == measured.round]
        if turns:
            yield f"{where}.rounds[{index}].energy", None, measured.energy
            yield f"{where}.rounds[{index}].cuda_ms", candidate_ms(turns), measured.cuda_ms
    known = {measured.round for measured in record.rounds}
    for index, turn in enumerate(record.turns):
        yield f"{where}.turns[{index}].round", True, turn.round in known
    try:
        blocks = block_figures(record.rounds, record.turns)
    except ArithmeticError as error:
        message = f"{where}.rounds: expected readings that blocks can be made of, found {type(error).__name__}: {error}"
        raise BadInput("bad_readings", message) from None
    yield f"{where}.blocks", blocks, record.blocks
    judged = validations or record.emulated
    found = differing(judged, record.pinned_validations)
    yield f"{where}.differing_total", found.total, record.differing_total
    yield f"{where}.differing", found.listed, [_classes(one) for one in record.differing]
    for index, one in enumerate(record.differing):
        own, other = one.candidate_score, one.pinned_score
        yield f"{where}.differing[{index}].gap", None if own is None or other is None else other - own, one.gap
    if any(validation.outcome is not Outcome.OK for validation in judged):
        yield f"{where}.outcome", Outcome.REGRESSION, record.outcome
        yield f"{where}.rounds", [], record.rounds
    yield from _devices(record, where)


def _refuse_impossible(record: ComparisonRecord, where: str) -> None:
    """Before anything is divided by what the turns say."""
    for index, turn in enumerate(record.turns):
        for name, expected, found in turn.impossible():
            shown = repr(found) if len(repr(found)) <= 80 else f"{found!r:.77}..."
            message = f"{where}.turns[{index}].{name}: expected {expected}, found {shown}"
            raise BadInput("bad_readings", message)


def _devices(record: ComparisonRecord, where: str) -> Iterator[Difference]:
    """Both kernels were validated and measured on one device: two devices say nothing of two kernels."""
    for name in ("validations", "pinned_validations", "rounds") if record.device_uuid is not None else ():
        for index, part in enumerate(getattr(record, name)):
            yield f"{where}.{name}[{index}].device_uuid", record.device_uuid, part.device_uuid


def _classes(one: DifferingPrediction) -> DifferingPrediction:
    return dataclasses.replace(one, candidate_score=None, pinned_score=None, gap=None)
