"""A workload with nothing but scores: what most of them answer alike, so that one has to say only what is its own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from gpu_tasks.float32 import Float32Array
from gpu_tasks.records import BadInput, ReferenceState
from gpu_tasks.workloads.base import Labels, PinnedSet


class PlainWorkload:
    """``gpu_tasks.workloads.base.Workload`` but for its name, sizes, ``features`` and ``scores``.

    No set of its draws is pinned, nothing of its history is given, and kernels are put to no test beside the draws.
    """

    benchmark_draw = 0
    protocol, plain_protocol = "audited", "classic"
    classic_repeats: Mapping[str, int] = {}
    pinned_sets: Mapping[str, PinnedSet] = {}
    feature_count: int
    class_count: int

    def check_inputs(self, x: Float32Array, labels: Labels, q: Float32Array) -> None:
        """Raise ``BadInput``: ``bad_dtype``, ``bad_shape``, ``not_finite``, ``bad_label``."""
        for name, values in (("x", x), ("q", q)):
            if values.dtype != np.float32:
                raise BadInput("bad_dtype", f"{name}: dtype: expected float32, found {values.dtype}")
            if values.ndim != 2 or values.shape[1] != self.feature_count or not len(values):
                expected = f"(n, {self.feature_count}) with n > 0"
                raise BadInput("bad_shape", f"{name}: shape: expected {expected}, found {values.shape}")
            bad = np.argwhere(~np.isfinite(values))
            if len(bad):
                row, column = map(int, bad[0])
                where = f"{name}: sample {row}, feature {column}"
                raise BadInput("not_finite", f"{where}: expected a finite number, found {values[row, column]}")
        if labels.dtype != np.int64:
            raise BadInput("bad_dtype", f"labels: dtype: expected int64, found {labels.dtype}")
        if labels.shape != (len(x),):
            raise BadInput("bad_shape", f"labels: shape: expected ({len(x)},) as x has samples, found {labels.shape}")
        wrong = np.flatnonzero((labels < 0) | (labels >= self.class_count))
        if len(wrong):
            found = f"expected a class 0..{self.class_count - 1}, found {int(labels[wrong[0]])}"
            raise BadInput("bad_label", f"labels: sample {int(wrong[0])}: {found}")

    def scores(self, x: Float32Array, labels: Labels, q: Float32Array) -> npt.NDArray[np.float64]:
        """(m, class_count) float64 scores of the reference."""
        raise NotImplementedError

    def predict(self, x: Float32Array, labels: Labels, q: Float32Array) -> Labels:
        """(m,) int64: the first class of the highest score."""
        classes: Labels = np.argmax(self.scores(x, labels, q), axis=1).astype(np.int64)
        return classes

    def moved_inputs(self, x: Float32Array, q: Float32Array) -> tuple[Float32Array, Float32Array]:
        """As they are: there are no kernels of it to be put to a test."""
        return x, q

    def intermediates(self, x: Float32Array, labels: Labels, q: Float32Array) -> dict[str, Float32Array]:
        """``scores`` (m, class_count), rounded to float32."""
        return {"scores": self.scores(x, labels, q).astype(np.float32)}

    def reference_state(
        self, x: Float32Array, labels: Labels, q: Float32Array, draw: int | None
    ) -> ReferenceState | None:
        """None: predictions are all that there is to freeze of it."""
