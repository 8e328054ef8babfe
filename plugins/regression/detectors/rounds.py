"""What the checks of a run's rounds have in common: energy and time are measured in the same ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from regression.detectors.verdict import Problem

LEAST_BASELINE_ROUNDS = 2  # one round has no spread: every other value would be out of it
WITHOUT_SPREAD = "baseline_without_spread"


class MeasuredRound(Protocol):
    """One round; ``reason_code`` says why it is not valid."""

    @property
    def valid(self) -> bool: ...
    @property
    def reason_code(self) -> str | None: ...


def nothing_usable(rounds: Sequence[MeasuredRound], problem: Problem | None, what: str) -> tuple[str, str]:
    """Reason code and text where no round has a figure (``what``) that can be used; ``problem`` is the run's own."""
    if problem:
        return problem.code, f"no usable round: {problem.message}"
    if not rounds:
        return "no_rounds", "no round was measured and no record says why"
    reasons = Counter(r.reason_code for r in rounds if not r.valid and r.reason_code)
    why = f" ({', '.join(f'{code}: {count}' for code, count in reasons.most_common())})" if reasons else ""
    return "no_valid_round", f"none of {len(rounds)} rounds has a valid {what}{why}"


def few_rounds(baseline: str) -> str:
    """What is said of a baseline without a spread."""
    return f"baseline {baseline} has fewer than {LEAST_BASELINE_ROUNDS} valid rounds"
