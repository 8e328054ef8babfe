"""What calls for confirmation rounds, and how two looks are told as one."""

from __future__ import annotations

import dataclasses

import pytest

from regression.detectors import CheckVerdict, Verdict
from regression.detectors.confirmation import out_of_spread, with_first_look
from regression.detectors.spread import SMALL, UNDETECTABLE, WIDE

BASE = CheckVerdict("energy", Verdict.OK, "adjusted", "mJ", "within_spread", "it is so", 1.0, 1.0, 0.9, 1.1)


def found(value: float | None, verdict: Verdict = Verdict.OK, code: str = "x", **changes: float | None) -> CheckVerdict:
    return dataclasses.replace(BASE, value=value, verdict=verdict, reason_code=code, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("look", "expected"),
    [
        (found(1.2, Verdict.REGRESSED), True),
        (found(0.8, Verdict.REGRESSED), True),
        (found(0.8, Verdict.IMPROVED), True),
        (found(1.1000001, Verdict.INCONCLUSIVE, UNDETECTABLE), True),
        (found(1.1), False),
        (found(0.9), False),
        (found(1.05, Verdict.INCONCLUSIVE, WIDE), False),
        (found(1.2, Verdict.OK, SMALL), False),
        (found(None), False),
        (found(9.0, baseline_low=None, baseline_high=None), False),
    ],
)
def test_out_of_the_spread_on_either_side_calls_for_more_rounds(look: CheckVerdict, expected: bool) -> None:
    assert out_of_spread(look) is expected


@pytest.mark.parametrize(
    ("first", "last", "told"),
    [
        (found(1.2, Verdict.REGRESSED), found(1.0), "above; with 5 confirmation rounds: within"),
        (found(0.8, Verdict.REGRESSED), found(0.7, Verdict.REGRESSED), "below; with 5 confirmation rounds: below"),
        (found(1.2, Verdict.INCONCLUSIVE), found(1.2, Verdict.REGRESSED), "above, inconclusive; with 5 "),
        (found(1.2, Verdict.REGRESSED), found(None, Verdict.INVALID), "above; with 5 confirmation rounds: invalid"),
    ],
)
def test_both_looks_are_told_and_the_last_one_counts(first: CheckVerdict, last: CheckVerdict, told: str) -> None:
    both = with_first_look(first, last, 7, 5)
    assert both.reason.startswith(f"first 7 rounds: {told}")
    assert both.reason.endswith("; it is so")
    assert dataclasses.replace(both, reason=last.reason) == last


def test_where_neither_look_can_be_compared_the_reason_is_told_alone() -> None:
    last = found(None, Verdict.INVALID)
    assert with_first_look(found(None, Verdict.INVALID), last, 7, 5) == last
