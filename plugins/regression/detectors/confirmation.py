"""First rounds and confirmation rounds: what calls for more of them, and how the two looks are told as one.

A median of seven unchanged rounds leaves the spread of seven others on one night in fourteen. Where it does, as many
rounds again are measured in the same run, and the last word is that of all of them together.
"""

from __future__ import annotations

from dataclasses import replace

from regression.detectors.spread import SMALL
from regression.detectors.verdict import CheckVerdict, Verdict

UNSURE = (Verdict.INCONCLUSIVE, Verdict.INVALID, Verdict.UNAVAILABLE)


def out_of_spread(found: CheckVerdict) -> bool:
    """Whether the figure lies out of its baseline's round spread, on either side; never where nothing was compared.

    A change that can be seen to be smaller than what matters is not worth the time of more rounds.
    """
    return _side(found) in ("above", "below") and found.reason_code != SMALL


def with_first_look(first: CheckVerdict, last: CheckVerdict, rounds: int, more: int) -> CheckVerdict:
    """``last``, over ``rounds`` first rounds and ``more`` confirmation rounds, told with what the first ones said.

    Where neither can be compared, the reason is all there is to say.
    """
    if _side(first) is None and _side(last) is None:
        return last
    told = f"first {rounds} rounds: {_place(first)}; with {more} confirmation rounds: {_place(last)}"
    return replace(last, reason=f"{told}; {last.reason}")


def _place(found: CheckVerdict) -> str:
    side = _side(found)
    if side is None:
        return found.verdict.value
    return f"{side}, {found.verdict.value}" if found.verdict in UNSURE else side


def _side(found: CheckVerdict) -> str | None:
    """Where the figure lies: above, below or within the spread; None where there is nothing to lie in."""
    if found.value is None or found.baseline_low is None or found.baseline_high is None:
        return None
    if found.value > found.baseline_high:
        return "above"
    return "below" if found.value < found.baseline_low else "within"
