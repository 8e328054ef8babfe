"""The fake GPU as the fake NVML sees it: one board, with one memory."""

from __future__ import annotations

from gpu_tasks.energy.simulation.gpu import SimulatedGpu
from gpu_tasks.records import Effects
from tests.unit.gpu_tasks.devices.cuda_fakes import FakeGpu

UUID = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"  # which the fake driver gives as 16 bytes
BUS_ID = "00000000:07:00.0"
CONTEXT_BYTES = 400 * 1024**2


class Board(SimulatedGpu):
    """A simulated board whose process uses what the fake torch has allocated."""

    def __init__(self, gpu: FakeGpu, effects: Effects | None = None) -> None:
        super().__init__(effects=effects)
        self.gpu, self.uuid, self.pci_bus_id = gpu, UUID, BUS_ID

    def processes(self) -> dict[int, int]:
        return {self.reported_pid: CONTEXT_BYTES + self.gpu.process_bytes, **self.others}
