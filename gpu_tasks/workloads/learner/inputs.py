"""What the learner trains on and predicts, refused by name where no answer could be right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_tasks.float32 import Float32Array
from gpu_tasks.records import BadInput

CLASSES = 10

Labels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Inputs:
    """Training pixels ``x`` (n, features) in 0..1 with ``labels`` (n,), and pixels ``q`` (m, features) to predict."""

    x: Float32Array
    labels: Labels
    q: Float32Array


def check_inputs(inputs: Inputs) -> None:
    """Raise ``BadInput``: ``bad_dtype``, ``bad_shape``, ``odd_width``, ``not_finite``, ``bad_pixel``, ``bad_label``."""
    features = _check_pixels("x", inputs.x)
    if _check_pixels("q", inputs.q) != features:
        found = inputs.q.shape[1]
        raise BadInput("bad_shape", f"q: features: expected {features} as in x, found {found}")
    check_width(features + 1, "x: features and the appended zero")
    _check_labels(inputs.labels, len(inputs.x))


def check_width(width: int, where: str) -> None:
    """Raise ``BadInput`` (``odd_width``) unless a state of ``width`` has two equal halves."""
    if width < 2 or width % 2:
        raise BadInput("odd_width", f"{where}: expected an even number, two equal halves, found {width}")


def _check_pixels(name: str, values: npt.NDArray[Any]) -> int:
    if values.dtype != np.float32:
        raise BadInput("bad_dtype", f"{name}: dtype: expected float32, found {values.dtype}")
    if values.ndim != 2 or not values.size:
        raise BadInput("bad_shape", f"{name}: shape: expected (n, features), neither of them 0, found {values.shape}")
    for code, bad, expected in (
        ("not_finite", ~np.isfinite(values), "a finite number"),
        ("bad_pixel", (values < 0) | (values > 1), "a grey of 0 to 1"),
    ):
        if bad.any():
            row, column = map(int, np.argwhere(bad)[0])
            place = f"{name}: sample {row}, pixel {column}"
            raise BadInput(code, f"{place}: expected {expected}, found {values[row, column]}")
    return int(values.shape[1])


def _check_labels(labels: npt.NDArray[Any], samples: int) -> None:
    if labels.dtype != np.int64:
        raise BadInput("bad_dtype", f"labels: dtype: expected int64, found {labels.dtype}")
    if labels.shape != (samples,):
        raise BadInput("bad_shape", f"labels: shape: expected ({samples},) as x has samples, found {labels.shape}")
    bad = (labels < 0) | (labels >= CLASSES)
    if bad.any():
        index = int(np.argmax(bad))
        raise BadInput("bad_label", f"labels: sample {index}: expected a class 0..9, found {int(labels[index])}")
