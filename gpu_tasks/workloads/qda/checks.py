"""Inputs that a quadratic discriminant cannot be trained on, refused by name instead of answered wrongly."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_tasks.records import BadInput

CLASSES = 10
FEATURES = 9
LARGEST_FEATURE = 1e15
"""Above this, squares summed in float32 could overflow and every score would be NaN."""


def check_arrays(x: npt.NDArray[Any], labels: npt.NDArray[Any], q: npt.NDArray[Any]) -> None:
    """Raise ``BadInput`` on a wrong shape or dtype, a value not finite or too large, a bad label, an empty class."""
    _check_features("x", x)
    _check_features("q", q)
    _check_labels(labels, len(x))
    counts = np.bincount(labels, minlength=CLASSES)
    if not counts.all():
        empty = int(np.argmin(counts))
        raise BadInput("empty_class", f"labels: expected samples of every class 0..9, found none of class {empty}")


def _check_features(name: str, values: npt.NDArray[Any]) -> None:
    if values.dtype != np.float32:
        raise BadInput("bad_dtype", f"{name}: dtype: expected float32, found {values.dtype}")
    if values.ndim != 2 or values.shape[1] != FEATURES or not len(values):
        raise BadInput("bad_shape", f"{name}: shape: expected (n, {FEATURES}) with n > 0, found {values.shape}")
    bad = ~np.isfinite(values)
    if bad.any():
        row, column = map(int, np.argwhere(bad)[0])
        raise BadInput(
            "not_finite",
            f"{name}: sample {row}, feature {column}: expected a finite number, found {values[row, column]}",
        )
    largest = float(np.abs(values).max())
    if largest > LARGEST_FEATURE:
        raise BadInput("too_large", f"{name}: expected features up to {LARGEST_FEATURE:g} in size, found {largest:g}")


def _check_labels(labels: npt.NDArray[Any], samples: int) -> None:
    if labels.dtype != np.int64:
        raise BadInput("bad_dtype", f"labels: dtype: expected int64, found {labels.dtype}")
    if labels.shape != (samples,):
        raise BadInput("bad_shape", f"labels: shape: expected ({samples},) as x has samples, found {labels.shape}")
    bad = (labels < 0) | (labels >= CLASSES)
    if bad.any():
        index = int(np.argmax(bad))
        raise BadInput("bad_label", f"labels: sample {index}: expected a class 0..9, found {int(labels[index])}")
