"""Where predictions part: each query on which candidate, pinned kernel and frozen prediction are not all the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpu_tasks.payload.draws import Payload
from gpu_tasks.records import DifferingPrediction, ValidationRecord
from gpu_tasks.workloads.base import Workload

MOST_LISTED = 1000


@dataclass(frozen=True)
class Differing:
    """The first thousand in order of draw and index, and how many there are."""

    listed: list[DifferingPrediction]
    total: int


def differing(candidate: Sequence[ValidationRecord], pinned: Sequence[ValidationRecord]) -> Differing:
    """Classes alone, from the validations of both sides; scores are null.

    A draw that a side did not get through has no classes of that side, and one that neither did has nothing to tell.
    """
    found = list(_classes(candidate, pinned))
    return Differing(found[:MOST_LISTED], len(found))


def with_scores(
    listed: Sequence[DifferingPrediction], workload: Workload, payload: Payload
) -> list[DifferingPrediction]:
    """``listed`` with the float64 reference's score of each class, and their gap."""
    scored = []
    for number in dict.fromkeys(one.draw for one in listed):
        draw = payload.load(number)
        scores = workload.scores(draw.x, draw.labels, draw.q)
        for one in (one for one in listed if one.draw == number):
            compared = one.pinned if one.pinned not in (None, one.candidate) else one.frozen
            own = None if one.candidate is None else float(scores[one.index, one.candidate])
            other = float(scores[one.index, compared])
            gap = None if own is None else other - own
            scored.append(
                DifferingPrediction(one.draw, one.index, one.candidate, one.pinned, one.frozen, own, other, gap)
            )
    return scored


def _classes(
    candidate: Sequence[ValidationRecord], pinned: Sequence[ValidationRecord]
) -> Iterator[DifferingPrediction]:
    sides = [{record.draw: record for record in records} for records in (candidate, pinned)]
    for draw in sorted({draw for side in sides for draw in side}):
        records = [side.get(draw) for side in sides]
        wrong = [{m.index: m for m in record.mismatches} if record else {} for record in records]
        for index in sorted({index for found in wrong for index in found}):
            frozen = next(found[index].expected for found in wrong if index in found)
            own, other = (
                None if record is None or record.agreed is None else (found[index].found if index in found else frozen)
                for record, found in zip(records, wrong, strict=True)
            )
            yield DifferingPrediction(draw, index, own, other, frozen, None, None, None)
