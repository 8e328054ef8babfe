"""What every device on a GPU shares, whatever it computes: the board, its stream, and what energy is measured with."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from gpu_tasks.devices.cuda.driver import Driver
from gpu_tasks.devices.cuda.instruments import GpuInstruments
from gpu_tasks.devices.cuda.selection import find_gpu, load_torch
from gpu_tasks.devices.cuda.stream import Stream
from gpu_tasks.energy.clock import MonotonicClock
from gpu_tasks.energy.instruments import Instruments
from gpu_tasks.records import DeviceFingerprint, InfrastructureFailure, Reason, TaskError


class CudaBoard:
    """The first GPU that this process sees, with a stream of the device's own.

    ``driver`` and ``torch`` are found where none are given. Raises ``CudaFailure`` for what the machine lacks.
    """

    kind = "cuda"
    clock = MonotonicClock()

    def __init__(self, driver: Driver | None, torch: Any) -> None:
        self._driver = driver or find_gpu()
        self._torch = torch or load_torch()
        self._instruments: GpuInstruments | None = None
        self._closed = False
        self._stream = Stream(self._driver, self._torch)

    def fingerprint(self) -> DeviceFingerprint:
        """The GPU, as the driver describes it: what torch and CUDA_VISIBLE_DEVICES chose, not a position in a list.

        Whether there is a counter is what ``instruments`` says, and what it raises is raised: one bad moment of NVML
        must not pass for a GPU without a counter.
        """
        driver, found = self._driver, self.instruments()
        return DeviceFingerprint(
            kind=self.kind,
            name=driver.device_name(),
            uuid=driver.device_uuid(),
            memory_total_bytes=driver.device_memory_bytes(),
            multiprocessors=driver.multiprocessors(),
            compute_capability=driver.compute_capability(),
            energy_counter=not isinstance(found, Reason),
            energy_counter_reason=found if isinstance(found, Reason) else None,
        )

    def instruments(self) -> Instruments | Reason:
        """What energy is measured with here, opened once; or why it cannot be measured.

        Raises ``TaskError`` where it should be measurable: NVML fails, or shows another GPU than the one that computes.
        """
        self._require_open("instruments")
        if self._instruments is None:
            self._instruments = GpuInstruments(self._driver, self._torch, self.clock, self._stream.translated)
        return self._instruments.found

    def _require_open(self, what: str) -> None:
        if self._closed:
            raise InfrastructureFailure("device_closed", f"{what}: expected an open device, found a closed one")

    def _wait(self) -> None:
        """For everything on the stream; what fails here has failed before, in a call that raised it."""
        with suppress(TaskError, RuntimeError):
            self._stream.synchronize()

    def _close_instruments(self) -> None:
        if self._instruments is not None:
            self._instruments.close()
