"""The reference classifier in float64: what every device has to agree with.

Per class c with n_c of n samples, mean mu_c and covariance S_c (maximum likelihood: divided by n_c, no ridge, no
shrinkage), L_c = cholesky(S_c):
``score_c(q) = -1/2 |L_c^-1 (q - mu_c)|^2 - sum(log diag L_c) + log(n_c / n)``; the prediction is the first class of
the highest score. (Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, section 4.3.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_tasks.records import BadInput
from gpu_tasks.workloads.qda.checks import CLASSES

Float64Array = npt.NDArray[np.float64]

SMALLEST_PIVOT = 1e-12
"""Share of a feature's variance left after elimination, below which it is float64 rounding and not data."""


@dataclass(frozen=True)
class Discriminant:
    """A trained discriminant: means (10, 9), lower Cholesky factors (10, 9, 9), log priors (10,)."""

    means: Float64Array
    factors: Float64Array
    log_priors: Float64Array


def train(x: npt.NDArray[Any], labels: npt.NDArray[np.int64]) -> Discriminant:
    """Train on checked ``x`` (n, 9) and ``labels`` (n,); raises ``BadInput`` naming the class that is singular."""
    samples = np.asarray(x, np.float64)
    groups = [samples[labels == c] for c in range(CLASSES)]
    means = np.stack([group.mean(axis=0) for group in groups])
    factors = np.stack([_factor(group - means[c], c) for c, group in enumerate(groups)])
    return Discriminant(means, factors, np.log([len(group) / len(samples) for group in groups]))


def _factor(centred: Float64Array, label: int) -> Float64Array:
    covariance = centred.T @ centred / len(centred)
    try:
        factor: Float64Array = np.linalg.cholesky(covariance).astype(np.float64)
    except np.linalg.LinAlgError:
        raise singular_class(label, len(centred)) from None
    if np.any(np.diag(factor) ** 2 <= SMALLEST_PIVOT * np.diag(covariance)):
        raise singular_class(label, len(centred))
    return factor


def singular_class(label: int, samples: int) -> BadInput:
    """The error for a class whose covariance has no inverse."""
    return BadInput(
        "singular_class",
        f"x: class {label}: expected a covariance of full rank, found a singular one ({samples} samples)",
    )


def scores(model: Discriminant, q: npt.NDArray[Any]) -> Float64Array:
    """(m, 10) scores of the queries ``q`` (m, 9)."""
    columns = []
    for mean, factor, log_prior in zip(model.means, model.factors, model.log_priors, strict=True):
        whitened = np.linalg.solve(factor, (np.asarray(q, np.float64) - mean).T)
        columns.append(-0.5 * (whitened**2).sum(axis=0) - np.log(np.diag(factor)).sum() + log_prior)
    return np.stack(columns, axis=1)
