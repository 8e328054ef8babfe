"""The record of a qualification: whether a workload on a device computes what an independent implementation does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpu_tasks.records.outcomes import Outcome
from gpu_tasks.records.reason import Reason


@dataclass(frozen=True)
class QualificationCase:
    """One thing that was checked, in ``checks`` single comparisons; ``failures`` names those that did not hold.

    ``figures`` are the case's own: of the learner by the names of the original records (docs/learner.md).
    """

    name: str
    passed: bool
    checks: int
    failures: list[str]
    figures: dict[str, Any]


@dataclass(frozen=True)
class QualificationRecord:
    """All cases on one device; ``outcome`` is ``regression`` when a check failed.

    ``computed_on`` names what the cases ran on where they ask for a device, ``captured`` whether as CUDA graphs;
    ``checks`` and ``maximum_abs_error`` are over all cases, ``tolerance`` is what the differences were held against.
    All are null when the device could not be asked.
    """

    kind: str  # "qualification"
    created_at: str
    outcome: Outcome
    reason: Reason | None
    workload: str
    device_uuid: str | None
    computed_on: str | None
    captured: bool | None
    passed: bool | None
    checks: int | None
    maximum_abs_error: float | None
    tolerance: dict[str, float]
    cases: list[QualificationCase]
    duration_s: float | None
