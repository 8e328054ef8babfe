"""The interface between a workload's programs and whatever executes its kernels.

The order of calls mirrors a CUDA graph's life: ``load`` inputs into preallocated buffers, run ``eager`` once,
``capture`` one graph, then ``load`` other inputs as often as wanted and ``replay`` the same graph on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from gpu_tasks.energy.instruments import Clock, Instruments
from gpu_tasks.records import DeviceFingerprint, DeviceMemory, Inventory, KernelIdentity, LibrarySetting, Reason


@dataclass(frozen=True)
class ReplayTiming:
    """Time of a loop of replays as the device's own events saw it; null, with the reason, where it has none."""

    device_ms_per_replay: float | None
    reason: Reason | None


class Device(Protocol):
    """A device with one workload's kernels loaded. Errors are ``gpu_tasks.records.TaskError``."""

    kind: str

    @property
    def clock(self) -> Clock:
        """What its time passes on: the machine's, but for a device that is simulated."""

    def fingerprint(self) -> DeviceFingerprint:
        """Identity of the device and whether it has an energy counter."""

    def kernel(self) -> KernelIdentity:
        """What is executed: variant, and geometry and PTX hash where there are kernels of our own."""

    def settings(self) -> list[LibrarySetting]:
        """How the library is set that it computes with, as far as a result depends on it; empty without one."""

    def load(self, x: npt.NDArray[np.float32], labels: npt.NDArray[np.int64], q: npt.NDArray[np.float32]) -> None:
        """Copy one draw's inputs into the preallocated device buffers.

        ``x`` (n, features) float32, ``labels`` (n,) int64 in 0..9, ``q`` (m, features) float32, of the workload's
        sizes. Raises ``BadInput`` on another shape or dtype, and as ``Workload.check_inputs`` does.
        """

    def poison_scratch(self) -> None:
        """Fill intermediates and the output with a pattern that no correct run can leave behind."""

    def eager(self) -> None:
        """Run training and prediction once, outside any graph."""

    def capture(self) -> None:
        """Record training and prediction as one graph over the preallocated buffers."""

    def replay(self, repeats: int = 1) -> ReplayTiming:
        """Replay the captured graph ``repeats`` times back to back and wait for the last one."""

    def predictions(self) -> npt.NDArray[np.int32]:
        """Class of each query, (m,) int32, of the latest eager run or replay."""

    def intermediates(self) -> dict[str, npt.NDArray[np.float32]] | None:
        """Copies of named intermediate values of the latest run, as ``Workload.intermediates`` names them.

        Null where the kernels keep none that could be compared.
        """

    def state_hashes(self) -> dict[str, str] | None:
        """sha256 of what the latest run started from and left behind, by name; null where predictions are all."""

    def instruments(self) -> Instruments | Reason:
        """What energy is measured with here, or why it cannot be."""

    def control(self, replay_s: float) -> Callable[[int], ReplayTiming]:
        """``replay`` of a control: a graph of the same shape whose kernels spin on one warp, about ``replay_s`` long.

        Raises ``BadInput`` (``no_control``) on a device without energy, where it would serve nothing, and of a task
        that there is none for.
        """

    def close(self) -> None:
        """Free everything; safe to call twice."""


@runtime_checkable
class AccountedDevice(Protocol):
    """A device that can say where the memory of its task is."""

    def prepare_and_invoke(
        self, x: npt.NDArray[np.float32], labels: npt.NDArray[np.int64], q: npt.NDArray[np.float32]
    ) -> DeviceMemory | Reason:
        """``load``, ``capture`` and one ``replay``, and what its allocator had around them; or why it cannot say.

        The figures are the task's alone in a process that has done nothing else before.
        """

    def inventory(self) -> Inventory:
        """Every named tensor of the task that was loaded."""

    def cache_bytes(self) -> int | Reason:
        """Size of its L2 cache, or why it is not known."""
