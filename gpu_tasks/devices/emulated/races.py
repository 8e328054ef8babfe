"""Races between threads of one launch: two accesses to a place, one of them a write, and no barrier between.

What orders two accesses: program order of one thread, ``bar.sync`` within a block, ``bar.warp.sync`` within a warp.
Nothing orders threads of different blocks. An access is compared with the accesses before it in the one
schedule that is executed; but whether two accesses are ordered depends on barriers alone, so that a race is
found whichever of the two happens to come first, as long as both are executed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_tasks.devices.emulated.findings import Fault
from gpu_tasks.devices.emulated.operations import WARP

IntArray = npt.NDArray[Any]


class _Read(NamedTuple):
    """Reads that a later write may collide with. ``low`` and ``high`` bound them to skip most comparisons."""

    threads: IntArray
    places: IntArray
    low: int
    high: int
    step: int


class RaceDetector:
    """Last writer of every place and all reads since the last barrier; a place has ``granule`` bytes.

    ``granule`` is the smallest access of the kernel to the space, so that neighbouring 16-bit values are told
    apart. ``across_blocks`` is true for global memory, where a barrier of one block orders nothing for the others.
    """

    def __init__(self, size: int, granule: int, threads: int, block: int, *, across_blocks: bool) -> None:
        self._granule, self._block, self._across_blocks = granule, block, across_blocks
        self._writer = np.full(-(-size // granule), -1, np.int32)
        self._written_at = np.zeros(self._writer.size, np.int32)
        self._written_low, self._written_high = self._writer.size * granule, 0
        self._reads: list[_Read] = []
        self._all_threads = np.arange(threads, dtype=np.int32)
        self._block_barrier = 0
        self._warp_barrier = np.zeros(threads // WARP, np.int64)

    def meet_blocks(self, step: int) -> None:
        """Every block has passed ``bar.sync`` at ``step``."""
        self._block_barrier = step
        if not self._across_blocks:
            self._reads.clear()
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
                self._compare("write", self._writer[places], self._written_at[places], "read", threads, places)
            self._reads.append(_Read(threads, places, *extent, step))

    def write(self, lanes: Any, positions: IntArray, size: int, extent: tuple[int, int], step: int) -> None:
        """Compare a write with earlier writes and reads, and with itself; remember it."""
        threads = self._all_threads[lanes]
        for part in range(0, size, self._granule):
            places = (positions + part) // self._granule
            self._compare("write", self._writer[places], self._written_at[places], "write", threads, places)
            self._writer[places] = threads
            self._written_at[places] = step
            lost = self._writer[places] != threads
            if lost.any():
                first = int(np.flatnonzero(lost)[0])
                self._report("write", self._writer[places[first]], step, "write", threads[first], places[first])
            for earlier in self._reads:
                if earlier.low < extent[1] and extent[0] < earlier.high:
                    hit = np.flatnonzero(self._written_at[earlier.places] == step)
                    places_hit, readers = earlier.places[hit], earlier.threads[hit]
                    read_at = np.full(hit.size, earlier.step)
                    self._compare("read", readers, read_at, "write", self._writer[places_hit], places_hit)
        self._written_low = min(self._written_low, extent[0])
        self._written_high = max(self._written_high, extent[1])

    def _compare(
        self, first_kind: str, first: IntArray, first_step: IntArray, kind: str, threads: IntArray, places: IntArray
    ) -> None:
        """Refuse pairs of different threads (-1: nobody) that no barrier has ordered."""
        suspects = np.flatnonzero((first >= 0) & (first != threads))
        if not suspects.size:
            return
        earlier, later, step = first[suspects], threads[suspects], first_step[suspects]
        by_block = (earlier // self._block == later // self._block) & (step < self._block_barrier)
        by_warp = (earlier // WARP == later // WARP) & (step < self._warp_barrier[later // WARP])
        unordered = ~(by_block | by_warp)
        if unordered.any():
            which = int(np.flatnonzero(unordered)[0])
            self._report(first_kind, earlier[which], step[which], kind, later[which], places[suspects[which]])

    def _report(self, first_kind: str, first: int, first_step: int, kind: str, thread: int, place: int) -> None:
        message = f"{kind} of the same {self._granule} bytes with no barrier since a"
        raise Fault("race", message, int(thread), int(place) * self._granule, (first_kind, int(first), int(first_step)))
