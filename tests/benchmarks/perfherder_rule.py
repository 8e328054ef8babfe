"""The alert rule of Mozilla's Perfherder, written from its description: the peer that is never wrong and late.

A point is a change when the weighted means of the 12 to 24 values before it and of the 12 from it on differ by more
than 7 in Welch's t, and its t is a local maximum. Weights fall linearly with the distance; a back window grows from 12
to 24 with the values since the last likely change.
"""

from __future__ import annotations

import numpy as np

from regression.detectors.series import Floats

MIN_BACK, MAX_BACK, FORE, THRESHOLD = 12, 24, 12, 7.0


def changes(values: Floats) -> list[int]:
    """Indices of the changes, oldest first."""
    scores = np.zeros(len(values))
    since = 0
    for point in range(1, len(values)):
        width = min(max(since, MIN_BACK), MAX_BACK)
        scores[point] = _welch_t(values[max(0, point - width) : point][::-1], values[point : point + FORE])
        since = 0 if scores[point] > THRESHOLD else since + 1
    return [
        point
        for point in range(MIN_BACK, len(values) - FORE + 1)
        if scores[point] > THRESHOLD
        and scores[point] >= scores[point - 1]
        and (point + 1 == len(values) or scores[point] >= scores[point + 1])
    ]


def _welch_t(before: Floats, after: Floats) -> float:
    """Absolute t of two windows, each with its nearest value first."""
    means, errors = [], 0.0
    for window in (before, after):
        weights = np.arange(len(window), 0, -1) / len(window)
        mean = float(weights @ window / weights.sum())
        variance = float(np.sum((window - mean) ** 2)) / (len(window) - 1) if len(window) > 1 else 0.0
        means.append(mean)
        errors += variance / len(window)
    difference = abs(means[1] - means[0])
    if errors == 0:
        return np.inf if difference else 0.0
    return difference / errors**0.5
