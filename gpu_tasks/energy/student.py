"""Quantiles of Student's t, because the GPU programs have numpy only."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

_STEPS = 20_000
_FAR = 200.0
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


def detectable_difference(sample_sd: float, rounds: int, *, level: float = 0.05, power: float = 0.8) -> float | None:
    """Smallest difference between two runs of ``rounds`` rounds each that is found with probability ``power``.

    ``(t(1 - level/2) + t(power)) * sample_sd * sqrt(2/rounds)`` with 2*rounds - 2 degrees of freedom, in the unit of
    ``sample_sd``; 1.63 standard deviations for 7 rounds. None below two rounds: there is no spread to go by.
    """
    if rounds < 2:
        return None
    freedom = 2.0 * rounds - 2
    return (t_quantile(1 - level / 2, freedom) + t_quantile(power, freedom)) * sample_sd * math.sqrt(2 / rounds)
