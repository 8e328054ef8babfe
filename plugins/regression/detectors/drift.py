"""Slow drift: a change too small for any one night, seen by its growth or by what it adds up to.

Two looks. Growth: for each of several lengths, the evidence that the figure has been growing evenly over the last
nights (a ramp, matched as in ``reference``). Sum: the newest nights against the first ones of the segment, which are
those that its baseline was accepted with; so 4 % and 4 % again, each of them under a 5 % gate or long since usual, are
seen as 8 %. Both use the threshold of the settings, calibrated together with the history shift.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from regression.detectors.history import Shift, nothing_to_judge, shared_threshold, verdict_of, worse_of
from regression.detectors.reference import Reference, hold_against, learn, ramp_evidence, raw_threshold
from regression.detectors.robust import HL_EFFICIENCY, hodges_lehmann
from regression.detectors.series import Floats, Metric, Nights, Series, usable_nights
from regression.detectors.verdict import CheckVerdict

CHECK = "drift"
CAP = 4.5
"""How far one night may count, in standard deviations."""


@dataclass(frozen=True)
class DriftSettings:
    """``threshold`` is a normal score; ``lengths`` are the nights over which growth is looked for.

    The reference of the growth is the ``reference_nights`` before the longest length that leaves a reference of
    ``minimum_reference`` and two thirds of the history. ``anchor_nights`` first nights of the segment and
    ``newest_nights`` last ones are compared for the sum.
    """

    threshold: float = 4.1
    lengths: tuple[int, ...] = (4, 6, 9, 13, 19, 28, 41, 60)
    reference_nights: int = 180
    minimum_reference: int = 12
    anchor_nights: int = 30
    newest_nights: int = 10


DEFAULT = DriftSettings()


def judge_drift(series: Series, settings: DriftSettings = DEFAULT) -> CheckVerdict:
    """Judge whether the figures of ``series``, one segment from its first night on, have been creeping away."""
    return slow_drift(series.metric, usable_nights(series), settings)


def slow_drift(metric: Metric, nights: Nights, settings: DriftSettings = DEFAULT) -> CheckVerdict:
    """The same on nights that are in order already."""
    needed = max(settings.minimum_reference + settings.lengths[0], 3 * settings.lengths[0])
    missing = nothing_to_judge(CHECK, metric, nights, needed)
    if missing:
        return missing
    settings = replace(settings, threshold=shared_threshold(settings.threshold, metric.looks))
    count = len(nights)
    lengths = [n for n in settings.lengths if n <= count // 3 and n <= count - settings.minimum_reference]
    window = lengths[-1]
    first = max(0, count - window - settings.reference_nights)
    noise = learn(nights.values[first : count - window], nights.steps()[first : count - window - 1])
    if noise.scale == 0:
        return _no_spread(metric, nights, noise)
    grown = _growth(metric, nights, noise, lengths, settings)
    if count < 2 * settings.anchor_nights + settings.newest_nights:
        return grown
    return worse_of(grown, _sum(metric, nights, noise, settings))


def _growth(
    metric: Metric, nights: Nights, reference: Reference, lengths: list[int], settings: DriftSettings
) -> CheckVerdict:
    """The likeliest even growth over the last nights, of one of ``lengths``; the longest is the last."""
    window = lengths[-1]
    steps = nights.steps()[len(nights) - window - 1 :]
    recent = hold_against(reference, nights.values[len(nights) - window - 1 :], steps, CAP)
    elapsed = np.cumsum(steps)
    shapes = np.stack([_ramp(elapsed, window - length) for length in lengths])
    evidence, slopes = ramp_evidence(reference, recent, shapes)
    best = int(np.argmax(np.abs(evidence)))
    size = float(slopes[best] * shapes[best, -1]) * reference.scale
    since, score = nights.date(len(nights) - lengths[best]), float(evidence[best])
    found = Shift(since, lengths[best], size, score, settings.threshold, "drift")
    detectable = settings.threshold * size / score if score else 0.0
    return verdict_of(CHECK, metric, nights, reference=reference, found=found, detectable=detectable)


def _sum(metric: Metric, nights: Nights, noise: Reference, settings: DriftSettings) -> CheckVerdict:
    """The newest nights against the first ones."""
    anchor, newest, steps = settings.anchor_nights, settings.newest_nights, nights.steps()
    then, now = hodges_lehmann(nights.values[:anchor]), hodges_lehmann(nights.values[-newest:])
    reference = replace(noise, location=then, nights=anchor)
    spread = noise.scale * (_level_error(noise, steps[: anchor - 1]) + _level_error(noise, steps[1 - newest :])) ** 0.5
    score = (now - then) / spread * settings.threshold / raw_threshold(noise, settings.threshold)
    found = Shift(nights.date(anchor), len(nights) - anchor, now - then, score, settings.threshold, "creep")
    return verdict_of(CHECK, metric, nights, reference=reference, found=found, detectable=spread * settings.threshold)


def _level_error(noise: Reference, steps: Floats) -> float:
    """Variance of the location of nights so far apart, in units of the scale squared."""
    memory = noise.phi**steps
    return 1 / (HL_EFFICIENCY * (1 + float(np.sum((1 - memory) / (1 + memory)))))


def _ramp(elapsed: Floats, before: int) -> Floats:
    """0 for the first nights, then one more for each usual distance."""
    start = elapsed[before - 1] if before else 0.0
    return np.maximum(0.0, elapsed - start)


def _no_spread(metric: Metric, nights: Nights, reference: Reference) -> CheckVerdict:
    """What came before is constant: the plain difference is the change."""
    size = float(nights.values[-1]) - reference.location
    rounding = 1e-9 * max(abs(reference.location), abs(float(nights.values[-1])))
    found = Shift(nights.date(len(nights) - 1), 1, size if abs(size) > rounding else 0.0, None, None, "drift")
    return verdict_of(CHECK, metric, nights, reference=reference, found=found, detectable=rounding)
