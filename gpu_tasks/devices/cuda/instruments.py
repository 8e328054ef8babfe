"""What energy is measured with on a GPU: NVML for the board that computes, torch for the load and the memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from gpu_tasks.devices.cuda.driver import Driver
from gpu_tasks.devices.cuda.known_load import TorchKnownLoad
from gpu_tasks.devices.cuda.selection import VISIBLE
from gpu_tasks.energy.instruments import Clock, Instruments
from gpu_tasks.energy.nvml.access import load_nvml
from gpu_tasks.energy.nvml.errors import NvmlUnavailable
from gpu_tasks.energy.nvml.gpu import NvmlGpu
from gpu_tasks.energy.sampler import ProcessSampler
from gpu_tasks.records import Reason, TaskError

Translated = Callable[[], AbstractContextManager[None]]
"""A context in which what torch raises becomes this project's error."""


NO_NVML = ("nvml_package_missing", "nvml_library_not_found", "nvml_driver_not_loaded")
"""Codes of what this machine has not got, now or later in the night."""


class GpuInstruments:
    """The instruments of the GPU that the driver shows first; ``close`` shuts NVML down.

    ``found`` are the instruments, or why there are none: NVML is not here, or this GPU has no counter, which is found
    by reading it once. Whatever else keeps it from being read is raised, for it may be otherwise a moment later:
    failures of the machine, a driver that is not ready, and a GPU of NVML's that is not the one that computes
    (``device_mismatch``).
    """

    def __init__(self, driver: Driver, torch: Any, clock: Clock, translated: Translated) -> None:
        self._gpu: NvmlGpu | None = None
        self.found: Instruments | Reason
        try:
            self.found = self._open(driver, torch, clock, translated)
        except BaseException:
            self.close()
            raise
        if isinstance(self.found, Reason):
            self.close()

    def close(self) -> None:
        """Shut NVML down; safe to call twice."""
        gpu, self._gpu = self._gpu, None
        if gpu is not None:
            gpu.close()

    def _open(self, driver: Driver, torch: Any, clock: Clock, translated: Translated) -> Instruments | Reason:
        uuid, pci_bus_id = driver.device_uuid(), driver.device_pci_bus_id()
        visible = os.environ.get(VISIBLE)
        try:
            self._gpu = gpu = NvmlGpu(load_nvml(), uuid=uuid, pci_bus_id=pci_bus_id, visible=visible, clock=clock)
        except TaskError as error:
            if error.code not in NO_NVML:
                raise
            return Reason(error.code, error.message)
        try:
            gpu.read_counter()
        except NvmlUnavailable as error:
            return Reason(error.code, error.message)
        return Instruments(
            clock=clock,
            gpu=gpu,
            sampler=partial(ProcessSampler, uuid=uuid, pci_bus_id=pci_bus_id),
            known_load=TorchKnownLoad(torch, gpu, clock, translated=translated),
            hold_memory=partial(_hold_memory, torch, translated),
            own_pid=os.getpid(),
        )


@contextmanager
def _hold_memory(torch: Any, translated: Translated, size: int) -> Iterator[None]:
    """``size`` bytes on the GPU, gone afterwards for NVML too: torch keeps what is freed until its cache is emptied."""
    with translated():
        held = torch.empty(size, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()
    try:
        yield
    finally:
        del held
        torch.cuda.empty_cache()
