"""The learner as sets of draws and programs know it: 10,000 training images reduced to 9x9, 10,000 queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpu_tasks.float32 import Float32Array
from gpu_tasks.records import TRIAL, ReferenceState
from gpu_tasks.workloads.area import reduce_images
from gpu_tasks.workloads.base import Labels, PinnedSet, Qualification
from gpu_tasks.workloads.learner import frozen
from gpu_tasks.workloads.learner.config import RECORDED
from gpu_tasks.workloads.learner.inputs import CLASSES, Inputs, check_inputs
from gpu_tasks.workloads.learner.torch_settings import require_torch, set_repeatable

if TYPE_CHECKING:
    from gpu_tasks.workloads.learner.task import LearnerTask

SIDE = 9


class Learner:
    """The reversible learner with the recorded config; see ``gpu_tasks.workloads.base.Workload``.

    Whatever computes raises ``InfrastructureFailure`` (``torch_missing``) where there is no torch, and sets torch to
    what repeatability asks (``torch_settings.set_repeatable``).
    """

    name = "learner"
    benchmark_draw = 0
    protocol = plain_protocol = TRIAL
    classic_repeats: Mapping[str, int] = {}
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
        """(m,) int64: trained and predicted in float64 on the CPU, from the frozen initial parameters."""
        return _reference(x, labels, q).classes()

    def scores(self, x: Float32Array, labels: Labels, q: Float32Array) -> npt.NDArray[np.float64]:
        """(m, 10) float64 scores of the same run."""
        found: npt.NDArray[np.float64] = _reference(x, labels, q).scores.numpy()
        return found

    def moved_inputs(self, x: Float32Array, q: Float32Array) -> tuple[Float32Array, Float32Array]:
        """As they are: a pixel has its bounds, and there are no kernels of the learner to be put to the test."""
        return x, q

    def intermediates(self, x: Float32Array, labels: Labels, q: Float32Array) -> dict[str, Float32Array]:
        """``scores`` (m, 10), rounded to float32."""
        return {"scores": self.scores(x, labels, q).astype(np.float32)}

    def reference_state(self, x: Float32Array, labels: Labels, q: Float32Array, draw: int | None) -> ReferenceState:
        """Final parameters and momentum of the float64 reference as multiples of 2^-24 (``hashes.grid_sha256``)."""
        task = _reference(x, labels, q)
        from gpu_tasks.workloads.learner.hashes import grid_sha256

        expected = None if draw is None else frozen.reference_states().states[draw].state_grid_sha256
        return ReferenceState("state_grid_sha256", expected, grid_sha256(task))

    def qualify(self, device_kind: str) -> Qualification:
        """Core and training against ordinary autograd and SGD (``qualification.qualify``)."""
        require_torch()
        from gpu_tasks.workloads.learner.qualification import as_cases, qualify

        set_repeatable()
        found = qualify("cuda" if device_kind == "cuda" else "cpu")
        return Qualification(
            found.device, found.captured, found.maximum_abs_error, dict(found.tolerance), as_cases(found)
        )


def _reference(x: Float32Array, labels: Labels, q: Float32Array) -> LearnerTask:
    """The float64 task, run once on the CPU; raises ``BadInput`` (``diverged``) where it has no answer."""
    require_torch()
    from gpu_tasks.workloads.learner.task import LearnerTask

    set_repeatable()
    task = LearnerTask(RECORDED, Inputs(x, labels, q), frozen.initial_parameters(), dtype="float64")
    task.run()
    task.check_finite()
    return task
