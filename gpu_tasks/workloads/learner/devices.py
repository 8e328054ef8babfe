"""The learner as a device: one task whose tensors are made with the first inputs and then only filled.

Imports torch: import this module where it is used, not at the head of one that must do without.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gpu_tasks.devices.base import ReplayTiming
from gpu_tasks.devices.cpu import CpuDevice
from gpu_tasks.devices.simulated import SimulatedDevice
from gpu_tasks.energy.simulation.gpu import SimulatedGpu
from gpu_tasks.float32 import Float32Array
from gpu_tasks.records import (
    BadInput,
    DeviceMemory,
    InfrastructureFailure,
    Inventory,
    KernelIdentity,
    LibrarySetting,
    Reason,
)
from gpu_tasks.workloads.base import Labels, Workload
from gpu_tasks.workloads.learner import frozen
from gpu_tasks.workloads.learner.config import RECORDED
from gpu_tasks.workloads.learner.hashes import by_dotted_name, state_hashes
from gpu_tasks.workloads.learner.inputs import Inputs
from gpu_tasks.workloads.learner.memory import inventory_of
from gpu_tasks.workloads.learner.task import LearnerTask
from gpu_tasks.workloads.learner.torch_settings import set_repeatable, settings

NO_ALLOCATOR = Reason("no_allocator", "torch's allocator counts on a GPU only: a CPU has no such figures")
NO_CACHE = Reason("no_cache_size", "the size of an L2 cache is a GPU's: a CPU device says nothing of it")


class LearnerSteps:
    """What devices of the learner share, wherever their task is: inputs, results, poison."""

    def __init__(self, workload: Workload) -> None:
        set_repeatable()
        self._workload = workload
        self._task: LearnerTask | None = None

    def settings(self) -> list[LibrarySetting]:
        """torch's and cuBLAS's."""
        return settings()

    def intermediates(self) -> dict[str, npt.NDArray[np.float32]] | None:
        """None: float32 scores end in other last bits than the reference's, on every device."""
        return None

    def _loaded(self, what: str) -> LearnerTask:
        if self._task is None:
            raise InfrastructureFailure("nothing_loaded", f"{what}: expected loaded inputs, found none")
        return self._task

    def _checked(self, x: Float32Array, labels: Labels, q: Float32Array) -> Inputs:
        """Inputs of the workload's size that a learner can use; raises ``BadInput``."""
        self._workload.check_inputs(x, labels, q)
        features = self._workload.feature_count
        for name, values, rows in (("x", x, self._workload.train_samples), ("q", q, self._workload.query_samples)):
            if values.shape != (rows, features):
                raise BadInput("bad_shape", f"{name}: shape: expected {(rows, features)}, found {values.shape}")
        return Inputs(x, labels, q)

    def _put(self, inputs: Inputs, device: str) -> None:
        """Fill the task, or make it."""
        if self._task is None:
            self._task = LearnerTask(RECORDED, inputs, frozen.initial_parameters(), device=device)
        else:
            self._task.load(inputs)


class ReferenceLearner(LearnerSteps, CpuDevice):
    """``gpu_tasks.devices.base.Device`` for the workload ``learner``: float32 torch on the CPU, one thread, eager."""

    def __init__(self, workload: Workload) -> None:
        CpuDevice.__init__(self, workload)
        LearnerSteps.__init__(self, workload)

    def kernel(self) -> KernelIdentity:
        """torch's own steps: no PTX, no launches."""
        return KernelIdentity(variant="torch-eager", ptx_sha256=None, ptx_lines=None, launches=[])

    def load(self, x: Float32Array, labels: Labels, q: Float32Array) -> None:
        """Copy one draw's inputs in; raises ``BadInput`` on anything that the learner cannot use."""
        self._put(self._checked(x, labels, q), "cpu")

    def poison_scratch(self) -> None:
        """NaN in everything that a run computes, -1 in the output."""
        if self._task is not None:
            self._task.poison()

    def eager(self) -> None:
        """Reset, train and predict once."""
        self._loaded("eager").run_eagerly()

    def capture(self) -> None:
        """Keep the sequence of steps over the tensors; nothing runs."""
        self._loaded("capture")
        super().capture()

    def _replay_once(self) -> None:
        self._loaded("replay").run()

    def predictions(self) -> npt.NDArray[np.int32]:
        """Copy of the classes of the latest run, (m,) int32; -1 where nothing was written."""
        return self._loaded("predictions").classes().astype(np.int32)

    def state_hashes(self) -> dict[str, str] | None:
        """Of inputs, orders, initial and final parameters, momentum, scores and predictions."""
        return by_dotted_name(state_hashes(self._loaded("state_hashes")))

    def control(self, replay_s: float) -> Callable[[int], ReplayTiming]:
        """Raises ``BadInput``: nothing is compared with a learner within a round."""
        raise no_control(replay_s)

    def prepare_and_invoke(self, x: Float32Array, labels: Labels, q: Float32Array) -> DeviceMemory | Reason:
        """Load and run once; why there are no figures of it."""
        self.load(x, labels, q)
        self.capture()
        self.replay()
        return NO_ALLOCATOR

    def inventory(self) -> Inventory:
        """Every tensor of the task."""
        return inventory_of(self._loaded("inventory"))

    def cache_bytes(self) -> int | Reason:
        """Why it is not known."""
        return NO_CACHE

    def close(self) -> None:
        """Drop the task."""
        self._task = None
        super().close()


class SimulatedLearner(SimulatedDevice):
    """For the workload ``learner``: ``ReferenceLearner`` computes. Of a simulated GPU's memory nothing is made up."""

    def __init__(self, workload: Workload, gpu: SimulatedGpu) -> None:
        self._reference = ReferenceLearner(workload)
        super().__init__(self._reference, gpu)

    def control(self, replay_s: float) -> Callable[[int], ReplayTiming]:
        """Raises ``BadInput``, as on a GPU."""
        raise no_control(replay_s)

    def prepare_and_invoke(self, x: Float32Array, labels: Labels, q: Float32Array) -> DeviceMemory | Reason:
        """Load and run once; why there are no figures of it."""
        self.load(x, labels, q)
        self.capture()
        self.replay()
        return NO_ALLOCATOR

    def inventory(self) -> Inventory:
        """Every tensor of the task that computes."""
        return self._reference.inventory()

    def cache_bytes(self) -> int | Reason:
        """Of the board that is simulated."""
        return self._gpu.profile.l2_cache_bytes


def no_control(replay_s: float) -> BadInput:
    """What every device of the learner says when it is asked for a control."""
    expected = f"control of {1000 * replay_s:.3g} ms: expected a task of few kernels, which as many can stand beside"
    return BadInput("no_control", f"{expected}, found the learner: measure it by trial or audited rounds")
