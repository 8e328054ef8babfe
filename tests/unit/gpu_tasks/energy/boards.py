"""Simulated boards for the tests of protocols: everything passes on a virtual clock."""

from __future__ import annotations

from gpu_tasks.devices.base import ReplayTiming
from gpu_tasks.energy.instruments import Instruments
from gpu_tasks.energy.simulation.gpu import SimulatedGpu
from gpu_tasks.energy.simulation.instruments import simulated_instruments
from gpu_tasks.records import parse_effects
from gpu_tasks.workloads.registry import declared


class Board:
    """A simulated GPU with its instruments and a replay of the task."""

    def __init__(
        self,
        inject: str = "",
        seed: int = 1,
        drift: str = "none",
        tick_period_s: float = 0.1,
        workload: str = "qda",
    ) -> None:
        self.gpu = SimulatedGpu(
            profile=declared(workload).board,
            effects=parse_effects(inject or None),
            seed=seed,
            drift=drift,
            tick_period_s=tick_period_s,
        )
        self.instruments: Instruments = simulated_instruments(self.gpu)
        self.said: list[str] = []

    def replay(self, repeats: int) -> ReplayTiming:
        self.gpu.work(repeats * self.gpu.replay_s, repeats * self.gpu.replay_mj / 1000, window=True)
        return ReplayTiming(1000 * self.gpu.replay_s, None)

    def say(self, text: str, seconds: float) -> None:
        self.said.append(text)
