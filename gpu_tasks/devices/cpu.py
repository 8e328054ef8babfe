"""What devices that are the CPU have in common, whatever workload they compute."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gpu_tasks.devices.base import ReplayTiming
from gpu_tasks.devices.host import NO_COUNTER, cpu_fingerprint, no_control
from gpu_tasks.energy.clock import MonotonicClock
from gpu_tasks.energy.instruments import Instruments
from gpu_tasks.records import DeviceFingerprint, InfrastructureFailure, LibrarySetting, Reason
from gpu_tasks.workloads.base import Workload

NO_EVENTS = Reason("no_device_events", "a CPU device has no device-side events")


class CpuDevice:
    """``gpu_tasks.devices.base.Device`` without the task: a workload adds ``kernel``, ``load``, ``poison_scratch``,
    ``eager`` and ``predictions``.

    It lives by the rules of a GPU: ``eager`` fills arrays that exist, and a captured graph is that, run again on
    whatever they hold then. Nothing is asked of a library, kept between runs or compared beside predictions, unless
    the workload says so.
    """

    kind = "reference"
    clock = MonotonicClock()

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._captured = False

    def fingerprint(self) -> DeviceFingerprint:
        """The CPU of this machine; it has no energy counter."""
        return cpu_fingerprint(self.kind)

    def settings(self) -> list[LibrarySetting]:
        """Empty: numpy has none that counts."""
        return []

    def eager(self) -> None:
        """Train and predict once; raises ``BadInput`` where the inputs have no answer."""
        raise NotImplementedError

    def capture(self) -> None:
        """Keep the sequence of steps over the arrays; nothing runs."""
        self._captured = True

    def replay(self, repeats: int = 1) -> ReplayTiming:
        """Run the steps ``repeats`` times on whatever the arrays hold now."""
        if not self._captured:
            raise InfrastructureFailure("no_graph", "replay: expected a captured graph, found none")
        for _ in range(repeats):
            self._replay_once()
        return ReplayTiming(device_ms_per_replay=None, reason=NO_EVENTS)

    def _replay_once(self) -> None:
        """What an eager run does, unless a device has replays of another kind."""
        self.eager()

    def intermediates(self) -> dict[str, npt.NDArray[np.float32]] | None:
        """None: predictions are all that is compared."""
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
        """Drop the graph; the arrays go with the object."""
        self._captured = False
