"""What NVML gives out to wait for events with: here for the Xid errors of simulated GPUs."""

from __future__ import annotations

from typing import Any

from gpu_tasks.energy.simulation.gpu import SimulatedGpu


class EventSet:
    """Xid errors of GPUs from when each was registered, in their order, each given once."""

    def __init__(self) -> None:
        self._watched: list[tuple[Any, SimulatedGpu]] = []
        self._given: list[int] = []

    def register(self, handle: Any, gpu: SimulatedGpu) -> None:
        """Watch a GPU from now on; ``handle`` is how its events name it."""
        self._watched.append((handle, gpu))
        self._given.append(len(gpu.xids))

    def next(self) -> tuple[Any, int] | None:
        """Handle and number of the next error that has come; null where none has."""
        for place, (handle, gpu) in enumerate(self._watched):
            following = gpu.xids[self._given[place] :]
            if following:
                self._given[place] += 1
                return handle, following[0][1]
        return None
