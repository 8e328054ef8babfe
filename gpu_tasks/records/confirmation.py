"""The plan of a run's confirmation rounds: what the first rounds showed, and how many more are measured for it."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_tasks.records.outcomes import Outcome
from gpu_tasks.records.reason import Reason


@dataclass(frozen=True)
class FirstLook:
    """One figure of the first rounds against the round spread of its baseline, ``baseline_low`` to ``baseline_high``.

    ``check`` is energy or time, ``verdict`` and ``reason_code`` are what the check says of these rounds alone.
    ``out_of_spread`` is whether the median calls for confirmation. Figures are null where nothing could be compared.
    """

    check: str
    verdict: str
    reason_code: str
    metric: str
    unit: str
    value: float | None
    baseline_low: float | None
    baseline_high: float | None
    baseline_run_id: str | None
    out_of_spread: bool


@dataclass(frozen=True)
class ConfirmationRecord:
    """Whether the first rounds call for more of them in the same run, and why.

    ``rounds`` are the numbers of the confirmation rounds, on from those of the first rounds; empty where there is
    nothing to confirm. ``reason`` is always there: what is to be confirmed, or why nothing is.
    """

    kind: str  # "confirmation"
    created_at: str
    outcome: Outcome
    reason: Reason | None
    workload: str
    rounds: list[int]
    looks: list[FirstLook]
