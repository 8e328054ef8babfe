"""How far the medians of two runs must be apart to count as different, from how their rounds spread.

The figure is that of a two-sample t test of means with unequal variances (Welch, Biometrika 34, 1947), planned for: the
test finds a difference ``d`` with a probability of ``POWER`` at the two-sided level ``LEVEL`` when
``d = (t(1 - LEVEL/2) + t(POWER)) * s``, ``s`` the standard error of the difference. For two runs of seven rounds with
equal spread that is 1.63 standard deviations, which the non-central t distribution confirms to 0.1 %.

That power is the test's. The nights take ``d`` as a threshold for the measured difference of the medians (``spread``),
so a true change of ``d`` is on either side of it about as often: they find 45 % of those, 80 % of changes of 1.45 times
and 84 % of 1.5 times ``d`` (seven rounds against seven). In return they call 1 % of unchanged nights changed, not 5.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

LEVEL = 0.05
POWER = 0.8


def detectable_difference(one: Sequence[float], other: Sequence[float]) -> float | None:
    """The difference of two samples that counts, in their unit; None when neither has two values.

    A sample of one value has no spread of its own and is taken to have the other's.
    """
    if not one or not other or max(len(one), len(other)) < 2:
        return None
    variances = [statistics.variance(sample) if len(sample) > 1 else None for sample in (one, other)]
    known = [variance for variance in variances if variance is not None]
    parts = [
        (known[0] if variance is None else variance) / len(sample)
        for variance, sample in zip(variances, (one, other), strict=True)
    ]
    if sum(parts) == 0:
        return 0.0
    freedom = _degrees_of_freedom(parts, [len(one) - 1, len(other) - 1])
    return (t_quantile(1 - LEVEL / 2, freedom) + t_quantile(POWER, freedom)) * math.sqrt(sum(parts))


def _degrees_of_freedom(parts: Sequence[float], freedoms: Sequence[int]) -> float:
    """Welch and Satterthwaite's; where one sample has none, those of the other, whose spread it was given."""
    if 0 in freedoms:
        return float(max(freedoms))
    shares = [part / sum(parts) for part in parts]
    return 1 / sum(share**2 / freedom for share, freedom in zip(shares, freedoms, strict=True))


def t_quantile(probability: float, degrees_of_freedom: float) -> float:
    """What a t variable of so many degrees of freedom stays below with ``probability``."""
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # half a second, which only this needs

    return float(stdtrit(degrees_of_freedom, probability))
