"""Global and shared memory, with a shadow byte for every byte: 1 where something has been written, 2 where an
asynchronous copy is on its way.

Global buffers live at addresses 4 GiB apart, so that a pointer that runs out of its buffer, by however much, cannot
land in another one. A buffer's contents may be unwritten (poisoned); reading it before a write is a finding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_tasks.devices.emulated.findings import Fault, LaunchError
from gpu_tasks.devices.emulated.operations import Array
from gpu_tasks.devices.emulated.races import RaceDetector

Lanes = Any  # indices of the active threads, ascending, or slice(None) for all of them
RAW_TYPES: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
WRITTEN = {size: int.from_bytes(b"\1" * size, "little") for size in RAW_TYPES}
ON_ITS_WAY = 2
POISON_BYTE = 0xA5
BUFFER_SPACING = 1 << 32


class Place(NamedTuple):
    """Where the active threads access memory: positions in the flat data; ``settled`` data need no checks.

    ``extent`` bounds the accessed bytes; ``addresses`` less ``base`` are byte offsets within ``what``.
    """

    positions: npt.NDArray[np.int64]
    extent: tuple[int, int]
    settled: bool
    what: str
    addresses: Array
    base: int

    def moved(self, by: int) -> Place:
        """The place ``by`` bytes further on, within the same extent."""
        return self._replace(positions=self.positions + by, base=self.base - by) if by else self


@dataclass
class Buffer:
    """One global allocation; ``start`` is its position in the flat data.

    A buffer that the launch may not write and that is fully written is ``settled``: no read of it can be wrong.
    """

    name: str
    address: int
    start: int
    size: int
    writable: bool = False
    settled: bool = False


class Memory:
    """Flat bytes, shadow, and the race detector of the launch that is running (none: races are not checked)."""

    races: RaceDetector | None = None

    def __init__(self, size: int) -> None:
        self._resize(np.full(-(-size // 8) * 8, POISON_BYTE, np.uint8), np.zeros(-(-size // 8) * 8, np.uint8))

    def _resize(self, data: Array, written: Array) -> None:
        self.data, self.written = data, written
        self._data = {size: data.view(kind) for size, kind in RAW_TYPES.items()}
        self._written = {size: written.view(kind) for size, kind in RAW_TYPES.items()}

    def load(self, lanes: Lanes, place: Place, size: int, step: int) -> Any:
        """Values at ``place`` as unsigned integers of ``size`` bytes; refuses unwritten ones and races."""
        index = place.positions // size
        if not place.settled:
            whole = self._written[size][index] == WRITTEN[size]
            if not whole.all():
                raise fault_at("unwritten_read", "read of unwritten memory", lanes, ~whole, place)
            if self.races:
                self.races.read(lanes, place.positions, size, place.extent, step)
        return self._data[size][index]

    def store(self, lanes: Lanes, place: Place, size: int, values: Array, step: int) -> None:
        """Write ``values``; refuses races."""
        if self.races:
            self.races.write(lanes, place.positions, size, place.extent, step)
        self._data[size][place.positions // size] = values
        self.mark(place.positions, size, 1)

    def describe(self, position: int) -> tuple[int, str]:
        """Byte offset and name of the buffer or shared memory that a position in the flat data belongs to."""
        raise NotImplementedError

    def mark(self, positions: npt.NDArray[np.int64], size: int, shadow: int) -> None:
        """Set the shadow of bytes: 1, written, or ``ON_ITS_WAY``."""
        self._written[size][positions // size] = WRITTEN[size] * shadow

    def refuse_on_its_way(self, lanes: Lanes, place: Place, size: int) -> None:
        """Refuse a store of ``size`` bytes to where an asynchronous copy has not been waited for."""
        unit = min(size, 8)
        shadows, bits = self._written[unit], RAW_TYPES[unit](WRITTEN[unit] * ON_ITS_WAY)
        for part in range(0, size, unit):
            hit = (shadows[(place.positions + part) // unit] & bits) != 0
            if hit.any():
                message = "store to where an asynchronous copy is still on its way"
                raise fault_at("copy_overwritten", message, lanes, hit, place)


class GlobalMemory(Memory):
    """Buffers that live from launch to launch."""

    def __init__(self) -> None:
        super().__init__(0)
        self.buffers: list[Buffer] = []

    def allocate(self, name: str, size: int) -> Buffer:
        """A new unwritten buffer of ``size`` bytes."""
        buffer = Buffer(name, (len(self.buffers) + 1) * BUFFER_SPACING, self.data.size, size)
        more = Memory(size)
        self._resize(np.concatenate([self.data, more.data]), np.concatenate([self.written, more.written]))
        self.buffers.append(buffer)
        return buffer

    def copy_in(self, buffer: Buffer, values: Array) -> None:
        """Fill a buffer from the host."""
        raw = np.ascontiguousarray(values).view(np.uint8).ravel()
        if raw.size != buffer.size:
            raise LaunchError("bad_buffer", f"{buffer.name}: expected {buffer.size} bytes, found {raw.size}")
        self.data[buffer.start :][: buffer.size] = raw
        self.written[buffer.start :][: buffer.size] = 1

    def copy_out(self, buffer: Buffer, dtype: npt.DTypeLike) -> tuple[Array, Array]:
        """A buffer's values, and which of them have been written."""
        values = self.data[buffer.start :][: buffer.size].view(dtype).copy()
        return values, self.written[buffer.start :][: buffer.size].reshape(values.size, -1).min(axis=1) == 1

    def poison(self, buffer: Buffer) -> None:
        """Make a buffer's contents unwritten."""
        self.data[buffer.start :][: buffer.size] = POISON_BYTE
        self.written[buffer.start :][: buffer.size] = 0

    def describe(self, position: int) -> tuple[int, str]:
        """Byte offset in a buffer, and its name."""
        buffer = next(each for each in reversed(self.buffers) if each.start <= position)
        return position - buffer.start, buffer.name

    def prepare(self, writable: set[int]) -> None:
        """Set which buffers the coming launch may write, by address."""
        for buffer in self.buffers:
            buffer.writable = buffer.address in writable
            buffer.settled = not buffer.writable and bool(self.written[buffer.start :][: buffer.size].all())

    def place(self, lanes: Lanes, addresses: Array, size: int, *, store: bool = False, constant: bool = False) -> Place:
        """Check bounds and permissions of an access to 64-bit ``addresses``, all in the buffer nearest the lowest."""
        low, high = int(addresses.min()), int(addresses.max())
        number = (low + BUFFER_SPACING // 2) // BUFFER_SPACING  # a buffer's share reaches as far below it as above
        if not 1 <= number <= len(self.buffers):
            first = int(np.argmin(addresses))
            message = f"{size} bytes at {low:#x}, outside every buffer"
            raise Fault("out_of_bounds", message, thread_of(lanes, first))
        buffer = self.buffers[number - 1]
        positions = (addresses - np.uint64(buffer.address)).astype(np.int64) + buffer.start
        extent = (low - buffer.address + buffer.start, high - buffer.address + buffer.start + size)
        place = Place(positions, extent, buffer.settled, buffer.name, addresses, buffer.address)
        if low < buffer.address:
            message = f"{size} bytes before the start"
            raise fault_at("out_of_bounds", message, lanes, addresses < buffer.address, place)
        check_access(lanes, place, size, buffer.size)
        if store and not buffer.writable:
            raise fault_at("read_only_write", "write to a read-only buffer", lanes, addresses >= 0, place)
        if constant and buffer.writable:
            message = "ld.global.nc of a buffer that this launch may write"
            raise fault_at("constant_read_of_writable", message, lanes, addresses >= 0, place)
        return place


class SharedMemory(Memory):
    """Shared memory of all blocks of a launch, one after the other."""

    def __init__(self, bytes_per_block: int, threads: int, block: int) -> None:
        self.stride = -(-bytes_per_block // 8) * 8  # from one block's memory to the next in the flat data
        super().__init__(self.stride * (threads // block))
        self._bytes_per_block = bytes_per_block
        self._starts = np.arange(threads, dtype=np.int64) // block * self.stride

    def describe(self, position: int) -> tuple[int, str]:
        """Address within the block."""
        return position % self.stride, "shared memory"

    def reset(self) -> None:
        """Nothing is written at the start of a launch."""
        self.data.fill(POISON_BYTE)
        self.written.fill(0)

    def place(self, lanes: Lanes, addresses: Array, size: int) -> Place:
        """Check bounds of an access to 32-bit ``addresses`` in each thread's block."""
        extent = (int(addresses.min()), int(addresses.max()) + size)
        place = Place(self._starts[lanes] + addresses, extent, False, "shared memory", addresses, 0)
        check_access(lanes, place, size, self._bytes_per_block)
        return place


def check_access(lanes: Lanes, place: Place, size: int, limit: int) -> None:
    """Refuse accesses past ``limit`` bytes and addresses that are not a multiple of the access size."""
    addresses = place.addresses
    if int(addresses.max()) - place.base + size > limit:
        outside = addresses.astype(np.float64) - place.base + size > limit
        raise fault_at("out_of_bounds", f"{size} bytes past the {limit} there are", lanes, outside, place)
    if (addresses & addresses.dtype.type(size - 1)).any():
        raise fault_at("misaligned", f"{size} bytes at a misaligned place", lanes, addresses % size != 0, place)


def fault_at(code: str, message: str, lanes: Lanes, bad: Array, place: Place) -> Fault:
    """The fault of the first thread for which ``bad`` holds."""
    first = int(np.flatnonzero(bad)[0])
    address = int(place.addresses[first]) - place.base
    return Fault(code, f"{message} (byte {address} of {place.what})", thread_of(lanes, first), address)


def thread_of(lanes: Lanes, position: int) -> int:
    """Thread at ``position`` among the active ones."""
    return position if isinstance(lanes, slice) else int(lanes[position])
