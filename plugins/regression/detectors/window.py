"""Whether the rounds of two runs worked for about as long: what a plain figure reads too little depends on that.

The tail of the power and the counter's last step are lost once a window, however long it was: 1.5 % of the energy over
20 s of work, and 6 % over 5 s. A window is another one where both its length and its replays are: a kernel that became
slower works as long with fewer replays, or for longer with as many.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

ALIKE = 1.25
"""Windows this much longer or shorter change the audited figure by less than 0.4 %."""

Window = tuple[int, float]
"""Replays in a round, and seconds of work."""


def worked(replays: int | None, wall_ms: float | None) -> Window | None:
    """Window of a round of so many replays of ``wall_ms`` each; None where one of the two is not known."""
    return None if replays is None or wall_ms is None else (replays, replays * wall_ms / 1000)


def other_window(mine: Sequence[Window], other: Sequence[Window], name: str) -> tuple[str, str] | None:
    """Reason code and text where baseline ``name`` worked for another time; None where it did not, or nobody says."""
    if not mine or not other:
        return None
    (replays, seconds), (their_replays, their_seconds) = _medians(mine), _medians(other)
    if _alike(replays, their_replays) or _alike(seconds, their_seconds):
        return None
    text = (
        f"baseline {name} worked {their_seconds:.3g} s a round ({their_replays:.0f} replays), "
        f"this run {seconds:.3g} s ({replays:.0f})"
    )
    return "baseline_other_window", text


def _medians(windows: Sequence[Window]) -> tuple[float, float]:
    return statistics.median(replays for replays, _ in windows), statistics.median(seconds for _, seconds in windows)


def _alike(one: float, other: float) -> bool:
    return one <= ALIKE * other and other <= ALIKE * one
