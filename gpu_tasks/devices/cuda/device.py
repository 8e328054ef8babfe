"""The QDA kernels on a GPU: the same PTX that the emulator executes, launched through the driver in torch's graphs.

Buffers are torch tensors that are allocated once, launches go to torch's current stream, and a captured
``torch.cuda.CUDAGraph`` is replayed on whatever the buffers hold. All work runs on one stream of the device's own,
which first waits for what the caller has queued on its stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_tasks.devices.base import ReplayTiming
from gpu_tasks.devices.cuda.board import CudaBoard
from gpu_tasks.devices.cuda.control import Spins
from gpu_tasks.devices.cuda.driver import STATIC_LIMIT_BYTES, Driver
from gpu_tasks.devices.cuda.parameters import check_parameters
from gpu_tasks.devices.inputs import check_draw, check_kernel_size
from gpu_tasks.devices.manifest import Kernels, Launch, load_kernels
from gpu_tasks.devices.status import check_predictions, check_status
from gpu_tasks.float32 import Float32Array
from gpu_tasks.records import (
    BadInput,
    InfrastructureFailure,
    KernelIdentity,
    LibrarySetting,
    TaskError,
)
from gpu_tasks.workloads.base import Labels, Workload

INT_POISON = -0x21524111
"""0xDEADBEEF as int32: neither a class, nor -1 for a query without scores, nor a count of samples."""

WARM_UP_RUNS = 2


@dataclass(frozen=True)
class _Step:
    """One launch, bound: entry, geometry, and the address of each parameter's buffer."""

    launch: Launch
    function: int
    addresses: list[int]


class CudaQda(CudaBoard):
    """``gpu_tasks.devices.base.Device`` for the workload ``qda`` on the first GPU that this process sees.

    ``driver`` and ``torch`` are found where none are given. Raises ``CudaFailure`` for what the machine lacks and
    ``BadInput`` for kernels that the driver refuses or that do not fit their manifest.
    """

    def __init__(
        self, workload: Workload, kernels: Kernels | None = None, *, driver: Driver | None = None, torch: Any = None
    ) -> None:
        self._workload = workload
        self._kernels = kernels or load_kernels()
        check_kernel_size(workload, self._kernels)
        for launch, text in zip(self._kernels.launches, self._kernels.texts, strict=True):
            check_parameters(launch, text)
        super().__init__(driver, torch)
        self._buffers: dict[str, Any] = {}
        self._names: dict[str, str] = {}  # role to buffer
        self._scratch: list[Any] = []
        self._modules: list[int] = []
        self._steps: list[_Step] = []
        self._graph: Any = None
        self._spins: Spins | None = None
        self._loaded = False
        try:
            with self._stream.entered():
                self._allocate()  # first: torch makes the context in which modules are loaded
                for launch, text in zip(self._kernels.launches, self._kernels.texts, strict=True):
                    self._steps.append(self._bind(launch, text))
            self.poison_scratch()
        except BaseException:
            self.close()
            raise

    def kernel(self) -> KernelIdentity:
        """Variant, geometry, and the hash of the PTX that is executed."""
        return self._kernels.identity()

    def settings(self) -> list[LibrarySetting]:
        """Empty: it launches kernels of its own."""
        return []

    def load(self, x: Float32Array, labels: Labels, q: Float32Array) -> None:
        """Copy one draw's inputs in; raises ``BadInput`` on anything the discriminant is not defined for."""
        check_draw(self._workload, x, labels, q)
        self.load_unchecked(x, labels.astype(np.int32), q)

    def load_unchecked(self, x: Float32Array, labels: npt.NDArray[np.int32], q: Float32Array) -> None:
        """Copy inputs in as they are, to see what the kernels themselves say of inputs that ``load`` refuses."""
        with self._stream.entered():
            for role, values in (("x", x), ("labels", labels), ("q", q)):
                # A copy, because torch takes no array that is read-only, as a frozen draw's are.
                self._of_role(role).copy_(self._torch.from_numpy(np.array(values, order="C")))
        self._loaded = True

    def poison_scratch(self) -> None:
        """NaN in every float and 0xDEADBEEF in every integer that the kernels write, status and output included."""
        with self._stream.entered():
            for buffer in self._scratch:
                buffer.fill_(math.nan if buffer.dtype == self._torch.float32 else INT_POISON)

    def eager(self) -> None:
        """Train and predict once, by launches; raises ``BadInput`` for a class that the kernels cannot train."""
        self._require_inputs("eager")
        with self._stream.entered():
            self._launch_all()
        self._check_outputs()

    def capture(self) -> None:
        """Record the launches as one graph over the buffers; afterwards the scratch is poisoned.

        Runs them first, outside the graph: a kernel's first launch may load code, which a capture does not allow.
        Raises ``CaptureFailed``; there is no graph then, and nothing is run eagerly in its place.
        """
        self._require_inputs("capture")
        self._drop_graph()
        with self._stream.entered():
            for _ in range(WARM_UP_RUNS):
                self._launch_all()
            self._stream.synchronize()
            self._graph = self._stream.record(self._launch_all, len(self._steps))
        self.poison_scratch()

    def replay(self, repeats: int = 1) -> ReplayTiming:
        """Replay the graph ``repeats`` times back to back between two CUDA events, and wait for the last one.

        The status words and the predictions of the last replay are looked at after the events, once.
        """
        if self._graph is None:
            raise InfrastructureFailure("no_graph", "replay: expected a captured graph, found none")
        elapsed_ms = self._stream.replay(self._graph, repeats)
        self._check_outputs()
        return ReplayTiming(device_ms_per_replay=elapsed_ms / repeats, reason=None)

    def predictions(self) -> npt.NDArray[np.int32]:
        """Class of each query, (m,) int32; raises ``BadInput`` if one was not written."""
        return self._output("predictions")

    def intermediates(self) -> dict[str, npt.NDArray[np.float32]] | None:
        """None: what the kernels keep is relative to centres of their own."""
        return None

    def state_hashes(self) -> dict[str, str] | None:
        """None: what it leaves behind beside its predictions is scratch."""
        return None

    def control(self, replay_s: float) -> Callable[[int], ReplayTiming]:
        """``replay`` of a graph of as many launches as the task's, which take about ``replay_s`` (within 5 %).

        Raises ``BadInput``, and ``InvalidMeasurement`` where no control is as short, or none could be calibrated.
        """
        self._require_open("control")
        if self._spins is None:
            self._spins = Spins(self._driver, self._torch, self._stream, len(self._steps))
        return self._spins.calibrated(replay_s)

    def scratch(self) -> dict[str, npt.NDArray[np.float32]]:
        """Copies of the kernels' own intermediates by buffer, to be compared with another device's bit by bit."""
        names = {p.name for launch in self._kernels.launches for p in launch.parameters if p.role == "scratch"}
        with self._stream.entered():
            return {name: self._buffers[name].cpu().numpy().copy() for name in sorted(names)}

    def close(self) -> None:
        """Wait for the GPU, then free graphs, modules and buffers, and close NVML; safe to call twice.

        What fails here has failed before, in a call that raised it (a lost context fails every call after).
        """
        if self._closed:
            return
        self._closed = True
        self._wait()
        with suppress(TaskError, RuntimeError):
            self._drop_graph()
        if self._spins is not None:
            self._spins.close()
        self._close_instruments()
        for module in self._modules:
            with suppress(TaskError):
                self._driver.unload(module)
        self._modules, self._steps, self._scratch = [], [], []
        self._buffers = {}

    def _allocate(self) -> None:
        torch = self._torch
        for parameter in (p for launch in self._kernels.launches for p in launch.parameters):
            if parameter.name in self._buffers:
                continue
            dtype = {"float32": torch.float32, "int32": torch.int32}[parameter.dtype]
            buffer = torch.zeros(parameter.shape, dtype=dtype, device="cuda")
            self._buffers[parameter.name] = buffer
            self._names[parameter.role] = parameter.name
            if parameter.role in ("predictions", "status", "scratch"):
                self._scratch.append(buffer)

    def _bind(self, launch: Launch, text: str) -> _Step:
        module = self._driver.load_module(text, launch.ptx)
        self._modules.append(module)
        function = self._driver.function(module, launch.entry)
        if launch.shared_static_bytes + launch.shared_dynamic_bytes > STATIC_LIMIT_BYTES:
            self._driver.allow_dynamic_shared(function, launch.shared_dynamic_bytes, launch.entry)
        return _Step(launch, function, [self._buffers[p.name].data_ptr() for p in launch.parameters])

    def _launch_all(self) -> None:
        stream = self._stream.handle
        for step in self._steps:
            launch = step.launch
            self._driver.launch(
                step.function,
                step.addresses,
                grid=launch.grid,
                block=launch.block,
                shared_bytes=launch.shared_dynamic_bytes,
                stream=stream,
                name=launch.entry,
            )

    def _drop_graph(self) -> None:
        graph, self._graph = self._graph, None
        if graph is not None:
            graph.reset()

    def _require_inputs(self, what: str) -> None:
        if not self._loaded:
            raise InfrastructureFailure("nothing_loaded", f"{what}: expected loaded inputs, found none")

    def _of_role(self, role: str) -> Any:
        return self._buffers[self._names[role]]

    def _output(self, role: str) -> npt.NDArray[np.int32]:
        with self._stream.entered():
            values: npt.NDArray[np.int32] = self._of_role(role).cpu().numpy().copy()
        unwritten = np.flatnonzero(values == INT_POISON)
        if unwritten.size:
            message = f"{role}[{unwritten[0]}] has not been written at the end"
            raise BadInput("unwritten_output", f"kernels of variant {self._kernels.variant}: {message}")
        return values

    def _check_outputs(self) -> None:
        check_status(self._output("status"), self._kernels.n)
        check_predictions(self._output("predictions"))
