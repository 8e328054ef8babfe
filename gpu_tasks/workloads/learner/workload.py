"""The learner as sets of draws know it: 10,000 training images reduced to 9x9, 10,000 queries, ten classes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from gpu_tasks.float32 import Float32Array
from gpu_tasks.workloads.area import reduce_images
from gpu_tasks.workloads.base import Labels, PinnedSet
from gpu_tasks.workloads.learner import frozen
from gpu_tasks.workloads.learner.config import RECORDED
from gpu_tasks.workloads.learner.inputs import CLASSES, Inputs, check_inputs
from gpu_tasks.workloads.learner.library import require_torch, set_repeatable

SIDE = 9


class Learner:
    """The reversible learner with the recorded config; see ``gpu_tasks.workloads.base.DrawnWorkload``."""

    name = "learner"
    train_samples = 10_000
    query_samples = 10_000
    feature_count = SIDE * SIDE
    class_count = CLASSES
    pinned_sets: Mapping[str, PinnedSet] = {frozen.PINNED.name: frozen.PINNED}

    def features(self, images: npt.NDArray[np.uint8]) -> Float32Array:
        """(n, 81) float32: the mean grey of each of 9x9 areas, 0..1; the task itself normalises."""
        return np.clip(reduce_images(images, SIDE).reshape(-1, SIDE * SIDE), np.float32(0), np.float32(1))

    def check_inputs(self, x: Float32Array, labels: Labels, q: Float32Array) -> None:
        """Raise ``BadInput`` on arrays that the learner cannot use."""
        check_inputs(Inputs(x, labels, q))

    def predict(self, x: Float32Array, labels: Labels, q: Float32Array) -> Labels:
        """(m,) int64: trained and predicted in float64 on the CPU, from the frozen initial parameters.

        Sets torch to what repeatability asks (``library.set_repeatable``). Raises ``InfrastructureFailure``
        (``torch_missing``) where there is no torch.
        """
        require_torch()
        from gpu_tasks.workloads.learner.task import LearnerTask

        set_repeatable()
        task = LearnerTask(RECORDED, Inputs(x, labels, q), frozen.initial_parameters(), dtype="float64")
        task.run()
        return task.classes()
