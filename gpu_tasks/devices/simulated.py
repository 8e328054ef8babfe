"""The simulated device: results from one on the CPU, time and energy from a simulated GPU on a virtual clock.

For tests and for a look at what an alert would be: every record of it says ``simulated``. Seconds pass on its clock and
nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gpu_tasks.devices.base import Device, ReplayTiming
from gpu_tasks.devices.cuda.errors import cuda_error
from gpu_tasks.energy.instruments import Instruments
from gpu_tasks.energy.nvml.errors import NvmlUnavailable
from gpu_tasks.energy.simulation.gpu import GpuLost, SimulatedGpu
from gpu_tasks.energy.simulation.instruments import simulated_instruments
from gpu_tasks.float32 import Float32Array
from gpu_tasks.records import DeviceFingerprint, InfrastructureFailure, KernelIdentity, LibrarySetting, Reason
from gpu_tasks.workloads.base import Labels

CONTROL_W = 8.0
"""A spinning warp draws this above idle: the context awake, the clocks up, launches, and next to no work."""

LAUNCH_S = 20e-6
SYNCHRONISE_S = 10e-6
LONG_NOISE, SHORT_NOISE = 2e-4, 0.02
"""Relative noise of the time of endless replays, and of a single one."""


class SimulatedDevice:
    """``gpu_tasks.devices.base.Device``: the results of ``computing``, a simulated GPU's figures.

    Devices on one ``gpu`` share its clock, counter and power, as kernels on one GPU do. Effects on the energy or the
    time of the task are those of the device that was opened first: what is opened beside it, to be compared with, is
    as the profile says.
    """

    kind = "simulated"

    def __init__(self, computing: Device, gpu: SimulatedGpu) -> None:
        self._computing = computing
        self._gpu = gpu
        self._opened = simulated_instruments(gpu)
        self._instruments: Instruments | Reason | None = None
        self.clock = gpu.clock
        self._captured = self._closed = False
        self._outdated = True
        self._changed = gpu.open_devices == 0
        gpu.open_devices += 1

    def fingerprint(self) -> DeviceFingerprint:
        """The simulated board; ``energy_counter`` is what its NVML says, and what that raises is raised."""
        profile, found = self._gpu.profile, self.instruments()
        return DeviceFingerprint(
            kind=self.kind,
            name=profile.name,
            uuid=self._gpu.uuid,
            memory_total_bytes=profile.memory_bytes,
            multiprocessors=profile.multiprocessors,
            compute_capability=list(profile.capability),
            energy_counter=not isinstance(found, Reason),
            energy_counter_reason=found if isinstance(found, Reason) else None,
        )

    def kernel(self) -> KernelIdentity:
        """What is executed, as the device says that computes."""
        return self._computing.kernel()

    def settings(self) -> list[LibrarySetting]:
        """The same of its library."""
        return self._computing.settings()

    def driver_release(self) -> str:
        """Release of the simulated driver, such as ``580.105.08``."""
        return self._gpu.driver

    def load(self, x: Float32Array, labels: Labels, q: Float32Array) -> None:
        """Copy one draw's inputs in; raises ``BadInput`` on anything the workload is not defined for."""
        self._computing.load(x, labels, q)
        self._outdated = True

    def poison_scratch(self) -> None:
        """Make intermediates and predictions unwritten, as the device does that computes."""
        self._computing.poison_scratch()
        self._outdated = True

    def eager(self) -> None:
        """Train and predict once; raises what the device raises that computes."""
        self._computing.eager()
        self._outdated = False
        self._work(1)

    def capture(self) -> None:
        """Keep the sequence of steps over the buffers; nothing runs."""
        self._computing.capture()
        self._captured = True

    def replay(self, repeats: int = 1) -> ReplayTiming:
        """Let the time and energy of ``repeats`` replays pass; the task is executed once, for its results.

        All replays of one graph on unchanged buffers leave the same behind: tasks here only write what they are not
        given, and read nothing of theirs that they have not written. For the same reason nothing is executed where
        neither inputs nor scratch were touched since the last time. Raises ``DeviceLost`` as a GPU does.
        """
        if not self._captured:
            raise InfrastructureFailure("no_graph", "replay: expected a captured graph, found none")
        if self._outdated:
            self._computing.replay()
            self._outdated = False
        return self._work(repeats)

    def predictions(self) -> npt.NDArray[np.int32]:
        """Class of each query, (m,) int32; one of them wrong where that effect was asked for, once a window is over."""
        found = self._computing.predictions()
        if self._gpu.effects.wrong_output and self._gpu.windows:
            found[0] = (found[0] + 1) % 10
        return found

    def intermediates(self) -> dict[str, npt.NDArray[np.float32]] | None:
        """Those of the device that computes."""
        return self._computing.intermediates()

    def state_hashes(self) -> dict[str, str] | None:
        """Those of the device that computes."""
        return self._computing.state_hashes()

    def instruments(self) -> Instruments | Reason:
        """The adapter over the fake NVML, on the virtual clock; the reason where there is no counter.

        The counter is read once, as on a GPU; raises what that does: one that is not ready may be a moment later.
        """
        if self._instruments is None:
            self._instruments = self._with_counter()
        return self._instruments

    def control(self, replay_s: float) -> Callable[[int], ReplayTiming]:
        """Replays of ``replay_s`` each that draw ``CONTROL_W`` above idle."""

        def replay(repeats: int) -> ReplayTiming:
            return self._timed(repeats, replay_s, 1000 * replay_s * CONTROL_W, window=False)

        return replay

    def close(self) -> None:
        """Leave the board to whoever has another device on it."""
        if not self._closed:
            self._closed = True
            self._computing.close()
            self._gpu.open_devices -= 1

    def _with_counter(self) -> Instruments | Reason:
        try:
            self._opened.gpu.read_counter()
        except NvmlUnavailable as error:
            return Reason("no_energy_counter", error.message)
        return self._opened

    def _work(self, repeats: int) -> ReplayTiming:
        gpu = self._gpu
        if self._changed:
            return self._timed(repeats, gpu.replay_s, gpu.replay_mj, window=True)
        return self._timed(repeats, gpu.plain_replay_s, gpu.plain_replay_mj, window=True)

    def _timed(self, repeats: int, replay_s: float, replay_mj: float, *, window: bool) -> ReplayTiming:
        """Repeats on the board, with a launch before and the wait for the end after; the events see the work alone."""
        gpu = self._gpu
        noise = gpu.timing_noise() * math.hypot(LONG_NOISE, SHORT_NOISE / math.sqrt(repeats))
        gpu.clock.sleep(LAUNCH_S)
        try:
            taken_s = gpu.work(repeats * replay_s * (1 + noise), repeats * replay_mj / 1000, window=window)
        except GpuLost as error:
            raise cuda_error(999, "CUDA_ERROR_UNKNOWN", "replay", error.message) from error
        gpu.clock.sleep(SYNCHRONISE_S)
        return ReplayTiming(device_ms_per_replay=1000 * taken_s / repeats, reason=None)
