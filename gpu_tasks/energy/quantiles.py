"""Quantiles that the intervals need, by plain numerical integration: the GPU programs have numpy only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

_TWO_SIDED_95 = 0.975
_NARROW = 0.2
_CELLS = 1001
_STEPS = 20_000
_FAR = 1e5
_ENOUGH = 300.0
"""From here on the normal distribution is used: the 97.5 % quantiles differ by less than 0.5 %."""


def t_quantile(probability: float, degrees_of_freedom: float | None) -> float:
    """The value that a t variable stays below with ``probability``, in (0.5, 1); None: of a normal one.

    By numerical integration of the density over t = sinh(u), where heavy tails are short; good to 1e-5, for one or
    more degrees of freedom. Below one, the quantile of one is no longer an upper bound, so it raises ``ValueError``.
    """
    if not 0.5 < probability < 1:
        raise ValueError(f"probability: expected 0.5 to 1, found {probability}")
    if degrees_of_freedom is None or degrees_of_freedom > _ENOUGH:
        return NormalDist().inv_cdf(probability)
    n = degrees_of_freedom
    if n < 1:
        raise ValueError(f"degrees_of_freedom: expected 1 or more, found {n}")
    u = np.linspace(0, math.asinh(_FAR), _STEPS)
    t = np.sinh(u)
    constant = math.exp(math.lgamma((n + 1) / 2) - math.lgamma(n / 2)) / math.sqrt(n * math.pi)
    density = constant * (1 + t * t / n) ** (-(n + 1) / 2) * np.cosh(u)
    area = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(u))])
    return float(np.interp(probability - 0.5, area, t))


def half_width_95(uniform_half_widths: Sequence[float], normal_sd: float) -> float:
    """Half the length of the 95 % interval of a sum of independent errors: uniform ones, and a normal one.

    One wide uniform error reaches 1.65 standard deviations and no further, where a normal one of the same size has
    1.96: the boxes are convolved on a grid. Those that are narrow beside the rest count as normal. 0 of nothing.
    """
    variance = normal_sd**2 + sum(half**2 for half in uniform_half_widths) / 3
    if variance == 0:
        return 0.0
    wide = [half for half in uniform_half_widths if half > _NARROW * math.sqrt(variance)]
    rest = math.sqrt(max(0.0, variance - sum(half**2 for half in wide) / 3))
    reach = sum(wide) + 6 * rest
    grid = np.linspace(-reach, reach, _CELLS)
    step = grid[1] - grid[0]
    if rest > step:
        density = np.exp(-0.5 * (grid / rest) ** 2)
    else:
        density = np.zeros(_CELLS)
        density[_CELLS // 2] = 1.0
    for half in wide:
        box = np.ones(max(1, 2 * round(half / step) + 1))
        density = np.convolve(density, box, mode="same")
    below = np.cumsum(density) - density / 2
    return float(np.interp(_TWO_SIDED_95, below / density.sum(), grid))


def detectable_difference(sample_sd: float, rounds: int, *, level: float = 0.05, power: float = 0.8) -> float | None:
    """Smallest difference between two runs of ``rounds`` rounds each that is found with probability ``power``.

    ``(t(1 - level/2) + t(power)) * sample_sd * sqrt(2/rounds)`` with 2*rounds - 2 degrees of freedom, in the unit of
    ``sample_sd``; 1.63 standard deviations for 7 rounds. None below two rounds: there is no spread to go by.
    """
    if rounds < 2:
        return None
    freedom = 2.0 * rounds - 2
    return (t_quantile(1 - level / 2, freedom) + t_quantile(power, freedom)) * sample_sd * math.sqrt(2 / rounds)
