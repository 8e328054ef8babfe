"""One GPU by NVML: the ``Gpu`` of ``gpu_tasks.energy.instruments``."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from gpu_tasks.energy.instruments import Clock
from gpu_tasks.energy.nvml.access import TIMEOUT_S, NvmlLibrary
from gpu_tasks.energy.nvml.events import XidWatch
from gpu_tasks.energy.nvml.matching import check_visible, handle_of
from gpu_tasks.energy.nvml.queries import Queries
from gpu_tasks.energy.nvml.state import read_state, take_sample
from gpu_tasks.energy.trace import Sample
from gpu_tasks.records import CounterReading, GpuState


class NvmlGpu:
    """The GPU that CUDA calls ``uuid``, open until ``close``; a context manager.

    ``nvml`` is ``gpu_tasks.energy.nvml.access.load_nvml()``, or a fake with its functions. ``pci_bus_id`` is what
    CUDA says of the device, null where it was not asked; ``visible`` is ``CUDA_VISIBLE_DEVICES``, checked where it
    names a GPU by UUID. ``timeout_s`` bounds each call; null makes calls directly, without a thread, for a fake on a
    virtual clock.

    Raises what ``handle_of`` and ``NvmlLibrary`` raise. A call on a lost GPU raises ``NvmlGpuIsLost``; in a forked
    child every call raises ``InfrastructureFailure`` (``nvml_after_fork``).
    """

    def __init__(
        self,
        nvml: Any,
        *,
        uuid: str,
        pci_bus_id: str | None = None,
        visible: str | None = None,
        clock: Clock,
        timeout_s: float | None = TIMEOUT_S,
    ) -> None:
        self._clock = clock
        self._nvml = NvmlLibrary(nvml, timeout_s)
        try:
            self._handle, self.uuid, self.pci_bus_id = handle_of(self._nvml, uuid, pci_bus_id)
            check_visible(self._nvml, self.uuid, visible)
        except BaseException:
            self._nvml.close()
            raise
        self._queries = Queries(self._nvml, self._handle, clock)

    def read_counter(self) -> CounterReading:
        """The energy counter, with the middle of the call and its duration on the monotonic clock.

        Raises ``NvmlUnavailable`` where this GPU has none: never 0.
        """
        return self._queries.counter()

    def state(self) -> GpuState:
        """Clocks, power, limits, processes and so on; what this GPU cannot say is null with its reason."""
        return read_state(self._queries, self.pci_bus_id, self._clock.now())

    def sample(self, *, processes: bool = False) -> tuple[Sample, str | None]:
        """One row of a trace, and the kind of its power; with the number of ``processes`` where that is asked for."""
        return take_sample(self._queries, self._clock.now(), processes=processes)

    def watch_xids(self) -> XidWatch:
        """Xid errors of this GPU from now on; closed by the caller, before this object."""
        return XidWatch(self._nvml, self._handle)

    def process_memory(self) -> dict[int, int | None]:
        """Compute processes on the GPU: pid to used bytes, null where NVML does not know them."""
        return {process.pid: process.used_memory_bytes for process in self._queries.processes()}

    def close(self) -> None:
        """Shut NVML down for this object; safe to call twice."""
        self._nvml.close()

    def __enter__(self) -> NvmlGpu:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
