"""The usual behaviour of a series, learnt from nights that are not under judgement, and shifts measured against it.

Nights are modelled as a level plus noise whose correlation decays with their distance, ``phi ** steps`` (AR(1); a
missing night is a distance of two). Each night is predicted from the one before, and what is left of it, divided by
its standard deviation, is its ``residual``: independent of the others, and of variance 1, while nothing changes.
A wild night is pulled in before the next is predicted from it (Martin and Thomson, Proc. IEEE 70, 1982).

A change that began at one of the last nights shows in the residuals as a known shape. ``evidence`` is the shape's
match with them, in standard deviations: the likelihood ratio of the change against none (Willsky and Jones, IEEE
Trans. Autom. Control 21, 1976), made smaller for what is not known exactly: level, scale and correlation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from regression.detectors.robust import (
    HL_EFFICIENCY,
    QN_EFFICIENCY,
    heavy_tail,
    hodges_lehmann,
    lag_one,
    mad_scale,
    qn_scale,
)
from regression.detectors.series import Floats

PHI_MARGIN = 0.5
"""Standard errors that are added to the autocorrelation: one taken too low costs false alerts, too high a night."""
PULLED_IN_AT = 3.0
"""Where a night is pulled in before the next is predicted from it, in standard deviations."""
SMALLEST_SCALE = 0.1
"""Least scale over the rough one: a t that is fitted to mostly equal values would shrink to nothing."""
T_EFFICIENCY = 0.6
"""Variance of the best scale estimator over that of a fitted Student t, about."""


@dataclass(frozen=True)
class Reference:
    """Usual behaviour of a series. ``location`` and ``scale`` (of one night) are in the metric's unit.

    ``phi`` is the autocorrelation that is used, its margin included; ``tail`` the degrees of freedom of the noise
    (None: normal). ``level_error`` is the variance of the location in units of ``scale`` squared, ``freedom`` the
    degrees of freedom of the scale.
    """

    location: float
    scale: float
    phi: float
    phi_estimate: float
    tail: float | None
    nights: int
    level_error: float
    freedom: float

    def as_json(self) -> dict[str, Any]:
        """What a reader of the verdict needs to redo it."""
        return {
            "location": self.location,
            "scale": self.scale,
            "phi": self.phi,
            "phi_estimate": self.phi_estimate,
            "tail_degrees_of_freedom": self.tail,
            "reference_nights": self.nights,
        }


def learn(values: Floats, steps: Floats) -> Reference:
    """Usual behaviour of ``values`` (shape (n,), n >= 2) that are ``steps`` (shape (n - 1,)) usual distances apart."""
    location = hodges_lehmann(values)
    centred = values - location
    rough = mad_scale(values)
    if rough <= _resolution(values):
        return Reference(location, 0.0, 0.0, 0.0, None, len(values), 1 / len(values), len(values) - 1)
    estimate, error = lag_one(centred / rough, steps)
    phi = min(0.95, max(0.0, estimate + PHI_MARGIN * error))
    left = _predicted_away(centred, steps, phi, rough)
    tail = heavy_tail(left)
    freedom = QN_EFFICIENCY * len(values) - 1
    if tail is None:
        degrees, scale = None, qn_scale(left)
    else:
        degrees, scale = tail
        freedom = T_EFFICIENCY * len(values) - 1
    scale = max(scale, SMALLEST_SCALE * rough)
    memory = phi**steps
    information = 1 + float(np.sum((1 - memory) / (1 + memory)))
    return Reference(
        location, scale, phi, estimate, degrees, len(values), 1 / (HL_EFFICIENCY * information), max(1.0, freedom)
    )


@dataclass(frozen=True)
class Recent:
    """Nights under judgement against a reference, all of shape (nights,).

    ``residual``: what the prediction left, as a normal score; ``onset``: what a shift of one ``scale`` adds to the
    residual of the night it begins at; ``after``: what it adds to each later one.
    """

    residual: Floats
    onset: Floats
    after: Floats


def hold_against(reference: Reference, values: Floats, steps: Floats, cap: float) -> Recent:
    """Residuals of ``values`` (shape (k + 1,), the first only predicts), ``steps`` (shape (k,)) usual distances apart.

    Residuals are pulled in to ``cap``, so that one wild night alone cannot make the quiet ones after it a change.
    """
    memory = reference.phi**steps
    spread = np.sqrt(1 - memory**2)
    left = _predicted_away(values - reference.location, steps, reference.phi, reference.scale)[1:] / reference.scale
    if reference.tail is not None:
        left = _normal_score(left, reference.tail)
    return Recent(np.clip(left, -cap, cap), 1 / spread, (1 - memory) / spread)


def step_evidence(reference: Reference, recent: Recent) -> Floats:
    """Evidence for a step that began at each night; shape (nights,)."""
    later = _sum_after(recent.after * recent.residual)
    match = recent.onset * recent.residual + later
    power = recent.onset**2 + _sum_after(recent.after**2)
    level = recent.onset * recent.after + _sum_after(recent.after**2)
    return _evidence(reference, match, power, level)


def ramp_evidence(reference: Reference, recent: Recent, shapes: Floats) -> tuple[Floats, Floats]:
    """Evidence for each of ``shapes`` (shape (shapes, nights)): a change that is so large at each night.

    Also its size, as a factor of the shape in units of scale. A shape starts from 0 before the first night.
    """
    before = np.concatenate([np.zeros((len(shapes), 1)), shapes[:, :-1]], axis=1)
    whitened = recent.onset * shapes - (recent.onset - recent.after) * before
    match = whitened @ recent.residual
    power = np.sum(whitened**2, axis=1)
    return _evidence(reference, match, power, whitened @ recent.after), match / power


def raw_threshold(reference: Reference, score: float) -> float:
    """The evidence, before the scale's uncertainty is allowed for, that is worth a normal score of ``score``."""
    from scipy.special import ndtr, stdtrit  # type: ignore[import-untyped]  # slow to import, and only needed here

    return -float(stdtrit(reference.freedom, ndtr(-score)))


def _evidence(reference: Reference, match: Floats, power: Floats, level: Floats) -> Floats:
    """Match in standard deviations, the level's own error included, as the normal score that it is worth."""
    spread = np.sqrt(power + reference.level_error * level**2)
    return _normal_score(match / spread, reference.freedom)


def _normal_score(values: Floats, freedom: float) -> Floats:
    """Normal quantiles of Student-t values: both tails alike, exact as far as double precision goes (37)."""
    from scipy.special import ndtri, stdtr  # slow to import, and only needed here

    probabilities = np.maximum(stdtr(freedom, -np.abs(values)), 1e-300)
    return np.asarray(np.sign(values) * -ndtri(probabilities), dtype=np.float64)


def _predicted_away(centred: Floats, steps: Floats, phi: float, scale: float) -> Floats:
    """Each value less what the one before predicts, in units that give it the variance of a single night."""
    memory = phi**steps
    previous = np.clip(centred[:-1], -PULLED_IN_AT * scale, PULLED_IN_AT * scale)
    return np.concatenate([centred[:1], (centred[1:] - memory * previous) / np.sqrt(1 - memory**2)])


def _sum_after(values: Floats) -> Floats:
    """Sum over the later nights, for each."""
    return np.cumsum(values[::-1])[::-1] - values


def _resolution(values: Floats) -> float:
    """Spread below which values are equal but for rounding in their last digits."""
    return 1e-12 * float(np.max(np.abs(values))) if math.isfinite(float(np.max(np.abs(values)))) else 0.0
