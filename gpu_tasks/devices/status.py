"""What the kernels say of their own inputs: one status word a class, and -1 for a query they could not score."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gpu_tasks.records import BadInput


def check_status(status: npt.NDArray[np.int32], samples: int) -> None:
    """Raise ``BadInput`` naming the class that a kernel found empty or singular, or labels that are no class.

    ``status`` (10,) int32: the number of samples of each class, negated where its covariance is singular in float32.
    """
    counts = np.abs(status.astype(np.int64))
    if counts.sum() != samples:
        message = f"labels: expected {samples} labels in 0..9, found {int(counts.sum())} (as the kernel counts them)"
        raise BadInput("bad_label", message)
    for label, count in enumerate(status.tolist()):
        if count == 0:
            raise BadInput("empty_class", f"labels: expected samples of every class 0..9, found none of class {label}")
        if count < 0:
            raise BadInput(
                "singular_class",
                f"x: class {label}: expected a covariance of full rank in float32, found a singular one "
                f"({-count} samples)",
            )


def check_predictions(predictions: npt.NDArray[np.int32]) -> None:
    """Raise ``BadInput`` on the first query whose scores were no finite numbers, which a kernel marks by -1."""
    bad = np.flatnonzero((predictions < 0) | (predictions > 9))
    if bad.size:
        index = int(bad[0])
        raise BadInput(
            "score_not_finite",
            f"q: query {index}: expected finite scores and a class 0..9, found {int(predictions[index])}",
        )
