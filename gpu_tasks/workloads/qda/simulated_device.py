"""The discriminant on a simulated GPU."""

from __future__ import annotations

from gpu_tasks.devices.emulated.device import EmulatedQda
from gpu_tasks.devices.manifest import Kernels
from gpu_tasks.devices.simulated import SimulatedDevice
from gpu_tasks.energy.simulation.gpu import SimulatedGpu
from gpu_tasks.workloads.base import Workload


class SimulatedQda(SimulatedDevice):
    """For the workload ``qda``: the emulator computes."""

    def __init__(
        self, workload: Workload, kernels: Kernels | None = None, *, gpu: SimulatedGpu, check_races: bool = True
    ) -> None:
        super().__init__(EmulatedQda(workload, kernels, check_races=check_races), gpu)
