"""Races between threads of one launch: two accesses to a place, one of them a write, and no barrier between.

What orders two accesses: program order of one thread, ``bar.sync`` within a block, ``bar.warp.sync`` within a warp.
Nothing orders threads of different blocks. An access is compared with the accesses before it in the one
schedule that is executed; but whether two accesses are ordered depends on barriers alone, so that a race is
found whichever of the two happens to come first, as long as both are executed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from gpu_tasks.devices.emulated.findings import Fault
from gpu_tasks.devices.emulated.operations import WARP

MAX_READS = 1 << 23  # about 100 MB are remembered before those that say nothing new are dropped
IntArray = npt.NDArray[Any]
Describe = Callable[[int], tuple[int, str]]


class _Read(NamedTuple):
    """Reads that a later write may collide with. ``low`` and ``high`` bound them to skip most comparisons."""

    threads: IntArray
    places: IntArray
    steps: IntArray
    low: int
    high: int


class _Accesses(NamedTuple):
    """Earlier accesses, one for each place in question: who (-1: nobody) and at which step."""

    kind: str
    threads: IntArray
    steps: IntArray


class RaceDetector:
    """Last writer of every place and all reads since the last barrier; a place has ``granule`` bytes.

    ``granule`` is the smallest access of the kernel, so that neighbouring 16-bit values are told apart.
    ``across_blocks`` is true for global memory, where a barrier of one block orders nothing for the others.
    ``describe`` turns a position into an address and a name, for reports.
    """

    def __init__(
        self, size: int, granule: int, geometry: tuple[int, int], describe: Describe, *, across_blocks: bool
    ) -> None:
        threads, self._block = geometry
        self._granule, self._across_blocks, self._describe = granule, across_blocks, describe
        self._writer = np.full(-(-size // granule), -1, np.int32)
        self._written_at = np.zeros(self._writer.size, np.int32)
        self._written_low, self._written_high = self._writer.size * granule, 0
        self._reads: list[_Read] = []
        self._read_count = 0
        self._all_threads = np.arange(threads, dtype=np.int32)
        self._block_barrier = 0
        self._warp_barrier = np.zeros(threads // WARP, np.int64)

    def meet_blocks(self, step: int) -> None:
        """Every block has passed ``bar.sync`` at ``step``."""
        self._block_barrier = step
        if not self._across_blocks:
            self._reads, self._read_count = [], 0
            self._written_low, self._written_high = self._writer.size * self._granule, 0

    def meet_warps(self, warps: IntArray, step: int) -> None:
        """These warps have passed ``bar.warp.sync`` at ``step``."""
        self._warp_barrier[warps] = step

    def read(self, lanes: Any, positions: IntArray, size: int, extent: tuple[int, int], step: int) -> None:
        """Compare a read of ``size`` bytes at ``positions`` (within ``extent``) with earlier writes; remember it."""
        threads = self._all_threads[lanes]
        compare = extent[0] < self._written_high and self._written_low < extent[1]
        for part in range(0, size, self._granule):
            places = (positions + part) // self._granule
            if compare:
                self._compare(self._writers_of(places), "read", threads, places)
            self._reads.append(_Read(threads, places, np.broadcast_to(step, places.shape), *extent))
            self._read_count += places.size
        if self._read_count > MAX_READS:
            self._compact()

    def write(self, lanes: Any, positions: IntArray, size: int, extent: tuple[int, int], step: int) -> None:
        """Compare a write with earlier writes and reads, and with itself; remember it."""
        threads = self._all_threads[lanes]
        for part in range(0, size, self._granule):
            places = (positions + part) // self._granule
            self._compare(self._writers_of(places), "write", threads, places)
            self._writer[places] = threads
            self._written_at[places] = step
            together = self._writers_of(places)  # two writes of one instruction to one place: one of them is lost
            for lost in np.flatnonzero(together.threads != threads)[:1]:
                self._report(together, lost, "write", threads[lost], places[lost])
            for earlier in self._reads:
                if earlier.low < extent[1] and extent[0] < earlier.high:
                    hit = np.flatnonzero(self._written_at[earlier.places] == step)
                    readers = _Accesses("read", earlier.threads[hit], earlier.steps[hit])
                    self._compare(readers, "write", self._writer[earlier.places[hit]], earlier.places[hit])
        self._written_low = min(self._written_low, extent[0])
        self._written_high = max(self._written_high, extent[1])

    def _compact(self) -> None:
        """Keep the latest read of each place by each thread: what is ordered after it is so after the earlier ones."""
        threads, places, steps = (np.concatenate([read[i] for read in self._reads])[::-1] for i in range(3))
        _, latest = np.unique(places.astype(np.int64) * self._all_threads.size + threads, return_index=True)
        low, high = min(read.low for read in self._reads), max(read.high for read in self._reads)
        self._reads = [_Read(threads[latest], places[latest], steps[latest], low, high)]
        self._read_count = latest.size if latest.size < MAX_READS // 2 else -MAX_READS  # else more room first

    def _writers_of(self, places: IntArray) -> _Accesses:
        return _Accesses("write", self._writer[places], self._written_at[places])

    def _compare(self, earlier: _Accesses, kind: str, threads: IntArray, places: IntArray) -> None:
        """Refuse pairs of different threads that no barrier has ordered."""
        suspects = np.flatnonzero((earlier.threads >= 0) & (earlier.threads != threads))
        if not suspects.size:
            return
        first, second, step = earlier.threads[suspects], threads[suspects], earlier.steps[suspects]
        by_block = (first // self._block == second // self._block) & (step < self._block_barrier)
        by_warp = (first // WARP == second // WARP) & (step < self._warp_barrier[second // WARP])
        for unordered in suspects[~(by_block | by_warp)][:1]:
            self._report(earlier, unordered, kind, threads[unordered], places[unordered])

    def _report(self, earlier: _Accesses, index: int, kind: str, thread: int, place: int) -> NoReturn:
        address, what = self._describe(int(place) * self._granule)
        message = f"{kind} of byte {address} of {what} with no barrier since a"
        other = (earlier.kind, int(earlier.threads[index]), int(earlier.steps[index]))
        raise Fault("race", message, int(thread), address, other)
