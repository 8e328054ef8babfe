"""The emulated device: the QDA kernels' PTX, executed on the CPU under the checks of the emulator.

Buffers are allocated once and keep their addresses, as on a GPU; a captured graph is the sequence of launches over
them, so that replays after other inputs have been loaded do what a replayed CUDA graph would do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu_tasks.devices.base import ReplayTiming
from gpu_tasks.devices.emulated.findings import Fault, KernelFinding, LaunchError
from gpu_tasks.devices.emulated.machine import Machine
from gpu_tasks.devices.emulated.memory import Buffer, GlobalMemory
from gpu_tasks.devices.emulated.parser import parse
from gpu_tasks.devices.host import NO_COUNTER, cpu_fingerprint, no_control
from gpu_tasks.devices.inputs import check_draw, check_kernel_size
from gpu_tasks.devices.manifest import Kernels, Launch, load_kernels
from gpu_tasks.devices.status import check_predictions, check_status
from gpu_tasks.energy.clock import MonotonicClock
from gpu_tasks.energy.instruments import Instruments
from gpu_tasks.records import DeviceFingerprint, InfrastructureFailure, KernelIdentity, LibrarySetting, Reason
from gpu_tasks.workloads.base import Workload

NO_EVENTS = Reason("no_device_events", "an emulated device's time says nothing about a GPU's")


@dataclass(frozen=True)
class _Step:
    """One launch, bound: machine, parameter values, and the addresses that it may write."""

    machine: Machine
    arguments: list[int]
    writable: set[int]


class EmulatedQda:
    """``gpu_tasks.devices.base.Device`` for the workload ``qda``, executing PTX.

    Raises ``BadInput`` (``PtxError``, ``LaunchError``) if the kernels cannot be launched as their manifest says.
    """

    kind = "emulated"
    clock = MonotonicClock()

    def __init__(self, workload: Workload, kernels: Kernels | None = None, *, check_races: bool = True) -> None:
        self._workload = workload
        self._kernels = kernels or load_kernels()
        self._memory = GlobalMemory()
        self._buffers: dict[str, Buffer] = {}
        self._names: dict[str, str] = {}  # role to buffer
        self._scratch: list[Buffer] = []
        check_kernel_size(workload, self._kernels)
        self._steps = [
            self._bind(launch, text, check_races)
            for launch, text in zip(self._kernels.launches, self._kernels.texts, strict=True)
        ]
        self._loaded = self._captured = False

    def fingerprint(self) -> DeviceFingerprint:
        """The CPU of this machine; it has no energy counter."""
        return cpu_fingerprint(self.kind)

    def kernel(self) -> KernelIdentity:
        """Variant, geometry, and the hash of the PTX that is executed."""
        return self._kernels.identity()

    def settings(self) -> list[LibrarySetting]:
        """Empty: it computes by itself."""
        return []

    def load(self, x: npt.NDArray[np.float32], labels: npt.NDArray[np.int64], q: npt.NDArray[np.float32]) -> None:
        """Copy one draw's inputs in; raises ``BadInput`` on anything the discriminant is not defined for."""
        check_draw(self._workload, x, labels, q)
        self.load_unchecked(x, labels.astype(np.int32), q)

    def load_unchecked(
        self, x: npt.NDArray[np.float32], labels: npt.NDArray[np.int32], q: npt.NDArray[np.float32]
    ) -> None:
        """Copy inputs in as they are, to see what the kernels themselves say of inputs that ``load`` refuses."""
        for role, values in (("x", x), ("labels", labels), ("q", q)):
            self._memory.copy_in(self._of_role(role), values)
        self._loaded = True

    def poison_scratch(self) -> None:
        """Make intermediates, status and predictions unwritten: a read before a write is then a finding."""
        for buffer in self._scratch:
            self._memory.poison(buffer)

    def eager(self) -> None:
        """Train and predict once; raises ``KernelFinding``, or ``BadInput`` for a class the kernel cannot train."""
        if not self._loaded:
            raise InfrastructureFailure("nothing_loaded", "eager: expected loaded inputs, found none")
        for step in self._steps:
            step.machine.run(step.arguments, step.writable)
        check_status(self._output("status"), self._kernels.n)
        check_predictions(self._output("predictions"))

    def capture(self) -> None:
        """Keep the sequence of launches over the buffers; nothing runs."""
        self._captured = True

    def replay(self, repeats: int = 1) -> ReplayTiming:
        """Run the captured launches ``repeats`` times on whatever the buffers hold now."""
        if not self._captured:
            raise InfrastructureFailure("no_graph", "replay: expected a captured graph, found none")
        for _ in range(repeats):
            self.eager()
        return ReplayTiming(device_ms_per_replay=None, reason=NO_EVENTS)

    def predictions(self) -> npt.NDArray[np.int32]:
        """Class of each query, (m,) int32; raises ``KernelFinding`` if one was not written."""
        return self._output("predictions")

    def intermediates(self) -> dict[str, npt.NDArray[np.float32]] | None:
        """None: what the kernels keep is relative to centres of their own."""
        return None

    def state_hashes(self) -> dict[str, str] | None:
        """None: what it leaves behind beside its predictions is scratch."""
        return None

    def instruments(self) -> Instruments | Reason:
        """Why there are none: a CPU device has no energy counter."""
        return NO_COUNTER

    def control(self, replay_s: float) -> Callable[[int], ReplayTiming]:
        """Raises ``BadInput``: a control is there to be compared in energy."""
        raise no_control(self.kind, replay_s)

    def close(self) -> None:
        """Nothing to free."""

    @property
    def machines(self) -> list[Machine]:
        """The machine of each launch, to look into after a run: trace, shared memory."""
        return [step.machine for step in self._steps]

    def _bind(self, launch: Launch, text: str, check_races: bool) -> _Step:
        kernel = parse(text)
        if kernel.name != launch.entry:
            raise LaunchError("wrong_entry", f"{launch.ptx}: .entry: expected {launch.entry}, found {kernel.name}")
        if len(kernel.parameters) != len(launch.parameters):
            expected, found = len(launch.parameters), len(kernel.parameters)
            raise LaunchError("wrong_parameter_count", f"{launch.entry}: expected {expected} parameters, found {found}")
        if kernel.shared_bytes != launch.shared_static_bytes:
            expected, found = launch.shared_static_bytes, kernel.shared_bytes
            raise LaunchError("shared_memory", f"{launch.entry}: static: expected {expected} bytes, found {found}")
        for parameter in launch.parameters:
            if parameter.name not in self._buffers:
                buffer = self._memory.allocate(parameter.name, parameter.size_bytes)
                self._buffers[parameter.name] = buffer
                self._names[parameter.role] = parameter.name
                if parameter.role in ("predictions", "status", "scratch"):
                    self._scratch.append(buffer)
        dynamic = launch.shared_dynamic_bytes
        machine = Machine(kernel, self._memory, launch.grid, launch.block, dynamic, check_races=check_races)
        addresses = [self._buffers[parameter.name].address for parameter in launch.parameters]
        writable = {a for a, p in zip(addresses, launch.parameters, strict=True) if p.access == "write"}
        return _Step(machine, addresses, writable)

    def _of_role(self, role: str) -> Buffer:
        return self._buffers[self._names[role]]

    def _output(self, role: str) -> npt.NDArray[np.int32]:
        values, written = self._memory.copy_out(self._of_role(role), np.int32)
        if not written.all():
            first = int(np.argmin(written))
            message = f"{role}[{first}] (byte {4 * first}) has not been written at the end"
            raise KernelFinding(Fault("unwritten_output", message, address=4 * first), None, None, 1, None)
        return values
