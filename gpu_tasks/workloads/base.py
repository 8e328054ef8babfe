"""What the programs need to know of a workload: its sizes, its features, its checks and its reference answer."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from gpu_tasks.float32 import Float32Array

Labels = npt.NDArray[np.int64]


class Workload(Protocol):
    """Train on ``train_samples`` labelled samples and predict ``query_samples`` more: one task, one draw.

    A sample has ``feature_count`` float32 features. ``benchmark_draw`` is the draw that measurement rounds run on.
    """

    name: str
    benchmark_draw: int
    train_samples: int
    query_samples: int
    feature_count: int
    class_count: int

    def features(self, images: npt.NDArray[np.uint8]) -> Float32Array:
        """(n, feature_count) float32 features of (n, 28, 28) uint8 images, the same bits on every machine."""

    def check_inputs(self, x: Float32Array, labels: Labels, q: Float32Array) -> None:
        """Raise ``BadInput`` when no correct answer exists for these inputs, naming array and class.

        ``x`` (n, feature_count) float32, ``labels`` (n,) int64, ``q`` (m, feature_count) float32, any n and m.
        """

    def predict(self, x: Float32Array, labels: Labels, q: Float32Array) -> Labels:
        """(m,) int64 classes by the reference algorithm in float64; raises ``BadInput`` as ``check_inputs`` does."""

    def scores(self, x: Float32Array, labels: Labels, q: Float32Array) -> npt.NDArray[np.float64]:
        """(m, class_count) scores of the reference in float64, of which ``predict`` takes the first highest."""

    def intermediates(self, x: Float32Array, labels: Labels, q: Float32Array) -> dict[str, Float32Array]:
        """Named intermediate values of the reference, rounded to float32, to compare a device's with."""
