"""Paired differences of two kernels that took turns: their mean, how sure it is, and what the pairs could have shown.

A block has both kernels within seconds of each other, so what the board does slowly is in both and cancels in their
difference. The mean of the differences has Student's t interval with one degree of freedom less than there are blocks
(Student, Biometrika 6, 1908); how independent blocks are, and how often the interval is wrong, is measured in
docs/comparing.md.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from regression.detectors.detectable import LEVEL, POWER, t_quantile
from regression.detectors.verdict import finite

MOST_BLOCKS = 10_000


@dataclass(frozen=True)
class BlockPair:
    """Both kernels in one block, a replay, in one unit; None or NaN: not known. ``valid`` is that of its round."""

    candidate: float | None
    pinned: float | None
    valid: bool = True

    @property
    def usable(self) -> tuple[float, float] | None:
        """Both figures, None where the block is not valid or one of them is no number."""
        candidate, pinned = finite(self.candidate), finite(self.pinned)
        return (candidate, pinned) if self.valid and candidate is not None and pinned is not None else None


@dataclass(frozen=True)
class PairedEffect:
    """Candidate less pinned over ``blocks``: the mean difference with its two-sided 95 % interval, in one unit.

    ``candidate`` and ``pinned`` are the means of either, ``sample_sd`` that of the differences. ``detectable`` is the
    true difference that so many blocks find with a probability of 80 %.
    """

    blocks: int
    candidate: float
    pinned: float
    effect: float
    sample_sd: float
    low: float
    high: float
    detectable: float

    @property
    def level(self) -> float:
        """Mean size of both kernels' figures: what a percentage that treats both alike is of."""
        return (abs(self.candidate) + abs(self.pinned)) / 2

    @property
    def farthest(self) -> float:
        """How large the difference may be, on either side, within the interval."""
        return max(abs(self.low), abs(self.high))

    @property
    def differs(self) -> bool:
        """Whether the interval excludes zero, which 5 in 100 comparisons of a kernel with itself do."""
        return self.low > 0 or self.high < 0


def paired_effect(pairs: Sequence[BlockPair]) -> PairedEffect | None:
    """Mean difference of the usable ``pairs``; None under two of them: one difference has no spread.

    The order of the pairs does not matter, to the last bit.
    """
    usable = [pair.usable for pair in pairs]
    found = [pair for pair in usable if pair is not None]
    if len(found) < 2:
        return None
    differences = [candidate - pinned for candidate, pinned in found]
    count, effect, sd = len(found), statistics.fmean(differences), statistics.stdev(differences)
    half = half_width(sd, count)
    return PairedEffect(
        blocks=count,
        candidate=statistics.fmean(candidate for candidate, _ in found),
        pinned=statistics.fmean(pinned for _, pinned in found),
        effect=effect,
        sample_sd=sd,
        low=effect - half,
        high=effect + half,
        detectable=detectable(sd, count),
    )


def half_width(sample_sd: float, blocks: int) -> float:
    """Half of the interval of the mean of so many differences."""
    return t_quantile(1 - LEVEL / 2, blocks - 1) * sample_sd / math.sqrt(blocks)


def detectable(sample_sd: float, blocks: int) -> float:
    """The true difference whose interval excludes zero in 80 of 100 comparisons of so many blocks."""
    freedom = blocks - 1
    return (t_quantile(1 - LEVEL / 2, freedom) + t_quantile(POWER, freedom)) * sample_sd / math.sqrt(blocks)


def blocks_needed(found: PairedEffect, margin: float) -> int | None:
    """How many blocks would decide, if effect and scatter stay as they are; None: more than ``MOST_BLOCKS``.

    As many as put the interval on one side of zero or within ``margin`` of it, and find a true difference of ``margin``
    with a probability of 80 %.
    """
    reach = max(abs(found.effect), margin - abs(found.effect))

    def enough(blocks: int) -> bool:
        return half_width(found.sample_sd, blocks) <= reach and detectable(found.sample_sd, blocks) <= margin

    if not enough(MOST_BLOCKS):
        return None
    low, high = 1, MOST_BLOCKS  # one block is never enough, and more blocks never do worse
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
