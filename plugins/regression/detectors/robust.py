"""Location, scale, autocorrelation and tails that a few wild nights do not move.

Each is the estimator of its literature, small enough to be read beside it; all take at least one finite value.
"""

from __future__ import annotations

import math

import numpy as np

from regression.detectors.series import Floats

QN_EFFICIENCY = 0.82
"""Variance of the best scale estimator over Qn's on normal values (Rousseeuw and Croux 1993)."""
HL_EFFICIENCY = 3 / math.pi
"""The same of the Hodges-Lehmann location (Hodges and Lehmann 1963)."""
TAILS = (2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0)
"""Degrees of freedom of Student's t that heavy tails are looked for with."""
TAIL_EVIDENCE = 3.0
"""Twice the log likelihood that a t must gain over the normal before tails are called heavy."""
TAIL_CAUTION = 1.5
"""Log likelihood that the heaviest tails may lack to the likeliest ones: taken too light they cost false alerts."""
EM_STEPS = 8


def hodges_lehmann(values: Floats) -> float:
    """Median of the means of all pairs, each value with itself too (Hodges and Lehmann, Ann. Math. Stat. 34, 1963)."""
    rows, columns = _pairs(len(values), 0)
    return float(np.median((values[rows] + values[columns]) / 2))


def qn_scale(values: Floats) -> float:
    """Qn: first quartile of the distances of all pairs, consistent for the normal standard deviation.

    Rousseeuw and Croux, J. Am. Stat. Assoc. 88, 1993; their correction for few values is the asymptotic one of
    odd and even counts. The plain standard deviation when Qn is 0 because many values are equal; 0 when all are.
    """
    count = len(values)
    if count < 2:
        return 0.0
    rows, columns = _pairs(count, 1)
    distances = np.abs(values[rows] - values[columns])
    half = count // 2 + 1
    rank = half * (half - 1) // 2 - 1
    found = 2.2219 * float(np.partition(distances, rank)[rank])
    if found == 0:
        return float(np.std(values, ddof=1))
    return found * (count / (count + 1.4) if count % 2 else count / (count + 3.8))


def mad_scale(values: Floats) -> float:
    """Median distance from the median, made consistent for the normal standard deviation (Hampel 1974): rough and fast.

    The plain standard deviation when more than half of the values are equal.
    """
    found = 1.4826 * float(np.median(np.abs(values - np.median(values))))
    return found or float(np.std(values))


def lag_one(values: Floats, steps: Floats) -> tuple[float, float]:
    """Autocorrelation at one usual distance and its standard error, of centred values in units of their scale.

    Values beyond three are pulled in to three, only neighbours one step apart count, and the downward bias of
    (1 + 3 phi) / n is taken out (Kendall, Biometrika 41, 1954).
    """
    clipped = np.clip(values, -3, 3)
    neighbours = np.flatnonzero(steps == 1)
    count, power = len(neighbours), float(np.mean(clipped**2))
    if count < 3 or power == 0:
        return 0.0, 1.0
    raw = float(np.mean(clipped[neighbours] * clipped[neighbours + 1])) / power
    phi = min(0.95, max(-0.95, raw + (1 + 3 * raw) / count))
    return phi, math.sqrt((1 - phi**2) / count)


def heavy_tail(values: Floats) -> tuple[float, float] | None:
    """Degrees of freedom and scale of the Student t that fits centred values, None where the normal will do.

    The heaviest of ``TAILS`` that are nearly as likely as the likeliest; scale by expectation and maximisation
    (Lange, Little and Taylor, J. Am. Stat. Assoc. 84, 1989).
    """
    from scipy.special import gammaln  # type: ignore[import-untyped]  # slow to import, and only needed here

    squares, freedom = values**2, np.array(TAILS)[:, None]
    variance = float(np.mean(squares))
    if variance == 0:
        return None
    spread = np.full((len(TAILS), 1), variance)
    for _ in range(EM_STEPS):
        weights = (freedom + 1) / (freedom + squares / spread)
        spread = np.mean(weights * squares, axis=1, keepdims=True)
    constant = gammaln((freedom + 1) / 2) - gammaln(freedom / 2) - 0.5 * np.log(freedom * math.pi * spread)
    logs = constant - (freedom + 1) / 2 * np.log1p(squares / (freedom * spread))
    likelihoods = logs.sum(axis=1)
    normal = -0.5 * len(values) * (math.log(2 * math.pi * variance) + 1)
    if 2 * (float(np.max(likelihoods)) - normal) < TAIL_EVIDENCE:
        return None
    heaviest = int(np.argmax(likelihoods >= np.max(likelihoods) - TAIL_CAUTION))
    return TAILS[heaviest], math.sqrt(float(spread[heaviest, 0]))


_INDICES: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}


def _pairs(count: int, offset: int) -> tuple[np.ndarray, np.ndarray]:
    """Index pairs of the upper triangle; kept, as the same counts come back night after night."""
    if (count, offset) not in _INDICES:
        if len(_INDICES) >= 16:
            _INDICES.clear()
        _INDICES[count, offset] = np.triu_indices(count, offset)
    return _INDICES[count, offset]
