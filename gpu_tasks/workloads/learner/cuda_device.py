"""The learner on a GPU: float32 torch with TF32 off, the whole task as replays of three CUDA graphs.

Imports torch: import this module where it is used, not at the head of one that must do without.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_tasks.devices.base import ReplayTiming
from gpu_tasks.devices.cuda.board import CudaBoard
from gpu_tasks.devices.cuda.driver import Driver
from gpu_tasks.devices.cuda.errors import CaptureFailed
from gpu_tasks.devices.cuda.stream import first_line
from gpu_tasks.float32 import Float32Array
from gpu_tasks.records import (
    BadInput,
    DeviceMemory,
    InfrastructureFailure,
    Inventory,
    KernelIdentity,
    Reason,
    TaskError,
)
from gpu_tasks.workloads.base import Labels, Workload
from gpu_tasks.workloads.learner.devices import LearnerSteps, no_control
from gpu_tasks.workloads.learner.hashes import by_dotted_name, state_hashes
from gpu_tasks.workloads.learner.inputs import CLASSES
from gpu_tasks.workloads.learner.memory import inventory_of, measure_device_memory
from gpu_tasks.workloads.learner.task import LearnerTask
from gpu_tasks.workloads.learner.torch_settings import check_settings, choose_workspace

DEVICE = "cuda"


@dataclass(frozen=True)
class _Whole:
    """A task as what a stream replays: its graphs in their order, with the copies of the orders between them."""

    task: LearnerTask

    def replay(self) -> None:
        self.task.run()


class CudaLearner(CudaBoard, LearnerSteps):
    """``gpu_tasks.devices.base.Device`` for the workload ``learner`` on the first GPU that this process sees.

    Nothing is allocated before inputs are loaded. ``CUBLAS_WORKSPACE_CONFIG`` is chosen here where nobody set it, and
    refused (``not_repeatable``) where two runs could differ by it. ``driver`` and ``torch`` are found where none are
    given.
    """

    def __init__(self, workload: Workload, *, driver: Driver | None = None, torch: Any = None) -> None:
        choose_workspace()  # before torch's first product: cuBLAS looks at it then
        CudaBoard.__init__(self, driver, torch)
        LearnerSteps.__init__(self, workload)
        check_settings(self.kind, repeatable=True)
        self._captured = False

    def kernel(self) -> KernelIdentity:
        """torch's own kernels in graphs of ours: no PTX that could be named."""
        return KernelIdentity(variant="torch-graphs", ptx_sha256=None, ptx_lines=None, launches=[])

    def load(self, x: Float32Array, labels: Labels, q: Float32Array) -> None:
        """Copy one draw's inputs in; raises ``BadInput`` on anything that the learner cannot use."""
        self._require_open("load")
        inputs = self._checked(x, labels, q)
        with self._stream.entered():
            self._put(inputs, DEVICE)

    def poison_scratch(self) -> None:
        """NaN in everything that a run computes, -1 in the output."""
        if self._task is not None:
            with self._stream.entered():
                self._task.poison()

    def eager(self) -> None:
        """Reset, train and predict once, by torch's launches."""
        task = self._loaded("eager")
        with self._stream.entered():
            task.run_eagerly()

    def capture(self) -> None:
        """Record reset, epoch and prediction as three graphs; afterwards everything computed is poisoned.

        Raises ``CaptureFailed``; there is no graph then, and nothing is run eagerly in its place.
        """
        task, self._captured = self._loaded("capture"), False
        with self._stream.entered():
            try:
                task.capture()
            except (TaskError, RuntimeError) as error:
                self._driver.end_capture(self._stream.handle)
                message = f"capture: expected three graphs of the learner, found {first_line(error)}"
                raise CaptureFailed("capture_failed", message) from error
        self._captured = True
        self.poison_scratch()

    def replay(self, repeats: int = 1) -> ReplayTiming:
        """Replay the whole task ``repeats`` times back to back between two CUDA events, and wait for the last one.

        The predictions of the last replay are looked at after the events.
        """
        if not self._captured:
            raise InfrastructureFailure("no_graph", "replay: expected a captured graph, found none")
        elapsed_ms = self._stream.replay(_Whole(self._loaded("replay")), repeats)
        self.predictions()
        return ReplayTiming(device_ms_per_replay=elapsed_ms / repeats, reason=None)

    def predictions(self) -> npt.NDArray[np.int32]:
        """Class of each query, (m,) int32; raises ``BadInput`` (``unwritten_output``) if one was not written."""
        task = self._loaded("predictions")
        with self._stream.entered():
            found = task.classes().astype(np.int32)
        wrong = np.flatnonzero((found < 0) | (found >= CLASSES))
        if wrong.size:
            at = f"predictions[{wrong[0]}]: expected a class 0..{CLASSES - 1} at the end"
            raise BadInput("unwritten_output", f"{at}, found {found[wrong[0]]}")
        return found

    def state_hashes(self) -> dict[str, str] | None:
        """Of inputs, orders, initial and final parameters, momentum, scores and predictions."""
        task = self._loaded("state_hashes")
        with self._stream.entered():
            return by_dotted_name(state_hashes(task))

    def control(self, replay_s: float) -> Callable[[int], ReplayTiming]:
        """Raises ``BadInput``: nothing is compared with a learner within a round."""
        raise no_control(replay_s)

    def prepare_and_invoke(self, x: Float32Array, labels: Labels, q: Float32Array) -> DeviceMemory | Reason:
        """Load, capture and replay once, and torch's allocator around them."""

        def prepare() -> LearnerTask:
            self.load(x, labels, q)
            self.capture()
            return self._loaded("prepare")

        with self._stream.entered():
            _, found = measure_device_memory(prepare, DEVICE)
        return found

    def inventory(self) -> Inventory:
        """Every tensor of the task, and what the allocator has beside them."""
        task = self._loaded("inventory")
        with self._stream.entered():
            return inventory_of(task)

    def cache_bytes(self) -> int | Reason:
        """The L2 cache's, as the driver has it."""
        return self._driver.l2_cache_bytes()

    def close(self) -> None:
        """Wait for the GPU, then drop the task with its graphs and close NVML; safe to call twice."""
        if self._closed:
            return
        self._closed = True
        self._wait()
        self._task, self._captured = None, False
        self._close_instruments()
