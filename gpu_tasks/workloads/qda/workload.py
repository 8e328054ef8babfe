"""The QDA workload: 1000 training images reduced to 3x3, 1000 queries, ten classes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from gpu_tasks.float32 import Float32Array
from gpu_tasks.workloads.area import reduce_images
from gpu_tasks.workloads.base import Labels, PinnedSet
from gpu_tasks.workloads.plain import PlainWorkload
from gpu_tasks.workloads.qda.checks import CLASSES, FEATURES, check_arrays
from gpu_tasks.workloads.qda.classifier import Float64Array, scores, train
from gpu_tasks.workloads.qda.original import ORIGINAL

MOVED_BY = np.float32(8)
"""Some thirty standard deviations of a feature: kernels that centre get a draw right at eight times as much, raw
moments in float32 lose a class at a quarter of it."""


class Qda(PlainWorkload):
    """Quadratic discriminant analysis trained from scratch; see ``gpu_tasks.workloads.base.Workload``."""

    name = "qda"
    train_samples = 1000
    query_samples = 1000
    feature_count = FEATURES
    class_count = CLASSES
    classic_repeats: Mapping[str, int] = {"A100-SXM4-40GB": 1_000_000}  # as the original record
    pinned_sets: Mapping[str, PinnedSet] = {ORIGINAL.name: ORIGINAL}

    def features(self, images: npt.NDArray[np.uint8]) -> Float32Array:
        """(n, 9) float32: the mean grey of each of 3x3 areas, 0..1, mapped to -0.5..3.5."""
        return np.float32(4) * reduce_images(images, 3).reshape(-1, FEATURES) - np.float32(0.5)

    def check_inputs(self, x: Float32Array, labels: Labels, q: Float32Array) -> None:
        """Raise ``BadInput`` on arrays that cannot be used and on an empty or singular class."""
        check_arrays(x, labels, q)
        train(x, labels)

    def scores(self, x: Float32Array, labels: Labels, q: Float32Array) -> Float64Array:
        """(m, 10) float64 scores."""
        check_arrays(x, labels, q)
        return scores(train(x, labels), q)

    def moved_inputs(self, x: Float32Array, q: Float32Array) -> tuple[Float32Array, Float32Array]:
        """Every feature ``MOVED_BY`` larger: a discriminant does not change, second moments about zero do."""
        return x + MOVED_BY, q + MOVED_BY

    def intermediates(self, x: Float32Array, labels: Labels, q: Float32Array) -> dict[str, Float32Array]:
        """Class ``means`` (10, 9) and ``scores`` (m, 10) of the float64 reference, rounded to float32."""
        model = train(x, labels)
        return {"means": model.means.astype(np.float32), "scores": scores(model, q).astype(np.float32)}
