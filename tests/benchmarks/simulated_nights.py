"""Seeded series of nights with a known truth: seven rounds a night, noise of every kind that a machine room offers.

The figure of a night is the median of its rounds. Its standard deviation is 1 % of a level of 100 and its correlation
with the night before is ``phi``, whatever the rounds add.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from regression.detectors.series import Floats

LEVEL = 100.0
ROUNDS = 7
ROUND_SD = 0.5
MEDIAN_VARIANCE = 0.2104
"""Variance of the median of seven standard normal values (Teichroew, Ann. Math. Stat. 27, 1956)."""
WARM_UP = 60


@dataclass(frozen=True)
class Noise:
    """One kind of noise: correlation, tails of Student's t (0: normal), and shares of wild and of missing nights."""

    name: str
    phi: float = 0.0
    tails: float = 0.0
    wild: float = 0.0
    missing: float = 0.0


NOISES = (
    Noise("iid"),
    Noise("AR(1) 0.4", phi=0.4),
    Noise("AR(1) 0.6", phi=0.6),
    Noise("heavy tails", tails=4),
    Noise("outlier nights", wild=0.02),
    Noise("gaps", missing=0.1),
    Noise("gaps, AR(1) 0.4", phi=0.4, missing=0.1),
)


def nights(
    rng: np.random.Generator, count: int, noise: Noise, shape: Callable[[Floats], Floats] | None = None
) -> Floats:
    """Figures of ``count`` nights, NaN where a night is missing; ``shape`` adds percents to their level, by number."""
    round_share = ROUND_SD**2 * MEDIAN_VARIANCE
    phi, spread = noise.phi / (1 - round_share), math.sqrt(1 - round_share)
    kicks = rng.normal(size=count + WARM_UP)
    if noise.tails:
        kicks = rng.standard_t(noise.tails, size=count + WARM_UP) / math.sqrt(noise.tails / (noise.tails - 2))
    level = np.empty(count + WARM_UP)
    level[0] = kicks[0]
    for night in range(1, count + WARM_UP):
        level[night] = phi * level[night - 1] + math.sqrt(1 - phi**2) * kicks[night]
    figures = spread * level[WARM_UP:] + np.median(rng.normal(0, ROUND_SD, (count, ROUNDS)), axis=1)
    figures += 6 * (rng.random(count) < noise.wild) * rng.choice([-1, 1], count)
    figures = LEVEL * (1 + figures / 100)
    if shape is not None:
        figures *= 1 + shape(np.arange(count, dtype=np.float64)) / 100
    figures[rng.random(count) < noise.missing] = np.nan
    return figures


def step(first: int, percent: float = 3.0) -> Callable[[Floats], Floats]:
    """A step from night ``first`` on."""
    return lambda number: percent * (number >= first)


def creep(first: int, percent: float = 0.5) -> Callable[[Floats], Floats]:
    """So many percent more each night from night ``first`` on."""
    return lambda number: percent * np.maximum(0, number - first + 1)
