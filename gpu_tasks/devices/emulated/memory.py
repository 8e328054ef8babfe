"""Global and shared memory, with a shadow byte for every byte: 1 where something has been written.

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
ALL_LANES = slice(None)

RAW_TYPES: dict[int, type[np.unsignedinteger[Any]]] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
WRITTEN = {size: int.from_bytes(b"\1" * size, "little") for size in RAW_TYPES}
POISON_BYTE = 0xA5
BUFFER_SPACING = 1 << 32


class Place(NamedTuple):
    """Where an access of the active threads goes: byte positions in the flat data, and what need not be checked.

    ``low`` and ``high`` bound the accessed bytes (in one block's shared memory, for the shared space).
    """

    positions: npt.NDArray[np.int64]
    low: int
    high: int
    settled: bool  # read-only and fully written: neither unwritten nor in any race


@dataclass
class Buffer:
    """One global allocation; ``start`` is its position in the flat data."""

    name: str
    address: int
    start: int
    size: int
    writable: bool = False
    settled: bool = False


class Memory:
    """Flat bytes, shadow, and the race detector of the launch that is running (none: races are not checked)."""

    space: str

    def __init__(self, size: int) -> None:
        padded = -(-size // 8) * 8
        self.data = np.full(padded, POISON_BYTE, np.uint8)
        self.written = np.zeros(padded, np.uint8)
        self.races: RaceDetector | None = None
        self._make_views()

    def _make_views(self) -> None:
        self._data = {size: self.data.view(kind) for size, kind in RAW_TYPES.items()}
        self._written = {size: self.written.view(kind) for size, kind in RAW_TYPES.items()}

    def load(self, lanes: Lanes, place: Place, size: int, step: int) -> Array:
        """Values at ``place`` as unsigned integers of ``size`` bytes; refuses unwritten ones and races."""
        index = place.positions // size
        if not place.settled:
            whole = self._written[size][index] == WRITTEN[size]
            if not whole.all():
                raise self._fault("unwritten_read", "read of memory that nothing has written", lanes, ~whole, place)
            if self.races:
                self.races.read(lanes, place.positions, size, (place.low, place.high), step)
        return self._data[size][index]

    def store(self, lanes: Lanes, place: Place, size: int, values: Array, step: int) -> None:
        """Write ``values``; refuses races."""
        index = place.positions // size
        if self.races:
            self.races.write(lanes, place.positions, size, (place.low, place.high), step)
        self._data[size][index] = values
        self._written[size][index] = WRITTEN[size]

    def forget(self, positions: npt.NDArray[np.int64], size: int) -> None:
        """Mark bytes as unwritten (an asynchronous copy is on its way to them)."""
        self._written[size][positions // size] = 0

    def arrive(self, positions: npt.NDArray[np.int64], size: int) -> None:
        """Mark bytes as written: their asynchronous copy is complete."""
        self._written[size][positions // size] = WRITTEN[size]

    def _fault(self, code: str, message: str, lanes: Lanes, bad: Array, place: Place) -> Fault:
        first = int(np.flatnonzero(bad)[0])
        address, where = self._describe(int(place.positions[first]), thread_of(lanes, first))
        return Fault(code, f"{message}: {where}", thread_of(lanes, first), address)

    def _describe(self, position: int, thread: int) -> tuple[int, str]:
        raise NotImplementedError


def thread_of(lanes: Lanes, position: int) -> int:
    """Thread at ``position`` among the active ones."""
    return position if isinstance(lanes, slice) else int(lanes[position])


def check_alignment(lanes: Lanes, addresses: Array, size: int) -> None:
    """Refuse addresses that are not a multiple of the access size."""
    low_bits = addresses & addresses.dtype.type(size - 1)
    if low_bits.any():
        first = int(np.flatnonzero(low_bits)[0])
        address = int(addresses[first])
        raise Fault("misaligned", f"{size}-byte access to address {address:#x}", thread_of(lanes, first), address)


class GlobalMemory(Memory):
    """Buffers that live from launch to launch."""

    space = "global"

    def __init__(self) -> None:
        super().__init__(0)
        self.buffers: list[Buffer] = []

    def allocate(self, name: str, size: int) -> Buffer:
        """A new unwritten buffer of ``size`` bytes."""
        buffer = Buffer(name, (len(self.buffers) + 1) * BUFFER_SPACING, self.data.size, size)
        padding = -(-size // 8) * 8
        self.data = np.concatenate([self.data, np.full(padding, POISON_BYTE, np.uint8)])
        self.written = np.concatenate([self.written, np.zeros(padding, np.uint8)])
        self._make_views()
        self.buffers.append(buffer)
        return buffer

    def copy_in(self, buffer: Buffer, values: Array) -> None:
        """Fill a buffer from the host."""
        raw = np.ascontiguousarray(values).view(np.uint8).ravel()
        if raw.size != buffer.size:
            raise LaunchError("bad_buffer", f"{buffer.name}: expected {buffer.size} bytes, found {raw.size}")
        self.data[buffer.start : buffer.start + buffer.size] = raw
        self.written[buffer.start : buffer.start + buffer.size] = 1

    def copy_out(self, buffer: Buffer, dtype: npt.DTypeLike) -> tuple[Array, npt.NDArray[np.bool_]]:
        """A buffer's values, and which of them have been written."""
        bytes_of = slice(buffer.start, buffer.start + buffer.size)
        values = self.data[bytes_of].view(dtype)
        written = self.written[bytes_of].reshape(values.size, -1).all(axis=1)
        return values.copy(), written

    def poison(self, buffer: Buffer) -> None:
        """Make a buffer's contents unwritten."""
        self.data[buffer.start : buffer.start + buffer.size] = POISON_BYTE
        self.written[buffer.start : buffer.start + buffer.size] = 0

    def prepare(self, writable: set[int]) -> None:
        """Set which buffers the coming launch may write, by address."""
        for buffer in self.buffers:
            buffer.writable = buffer.address in writable
            contents = self.written[buffer.start : buffer.start + buffer.size]
            buffer.settled = not buffer.writable and bool(contents.all())

    def place(self, lanes: Lanes, addresses: Array, size: int, *, store: bool, constant: bool = False) -> Place:
        """Check bounds and permissions of an access of ``size`` bytes at 64-bit ``addresses``."""
        check_alignment(lanes, addresses, size)
        low, high = int(addresses.min()), int(addresses.max())
        number = low // BUFFER_SPACING
        if number != high // BUFFER_SPACING or not 1 <= number <= len(self.buffers):
            return self._place_in_several(lanes, addresses, size, store=store, constant=constant)
        buffer = self.buffers[number - 1]
        if high - buffer.address + size > buffer.size:
            first = int(np.flatnonzero(addresses > buffer.address + buffer.size - size)[0])
            offset = int(addresses[first]) - buffer.address
            raise Fault(
                "out_of_bounds",
                f"{size} bytes at offset {offset} of {buffer.name}, which has {buffer.size} bytes",
                thread_of(lanes, first),
                offset,
            )
        if store and not buffer.writable:
            raise Fault("read_only_write", f"write to {buffer.name}, which is read-only", thread_of(lanes, 0))
        if constant and buffer.writable:
            reason = f"ld.global.nc from {buffer.name}, which this launch may write"
            raise Fault("constant_read_of_writable", reason, thread_of(lanes, 0))
        positions = (addresses - np.uint64(buffer.address - buffer.start)).astype(np.int64)
        shift = buffer.start - buffer.address
        return Place(positions, low + shift, high + shift + size, buffer.settled)

    def _place_in_several(self, lanes: Lanes, addresses: Array, size: int, *, store: bool, constant: bool) -> Place:
        numbers = addresses // np.uint64(BUFFER_SPACING)
        known = (numbers >= 1) & (numbers <= len(self.buffers))
        if not known.all():
            first = int(np.flatnonzero(~known)[0])
            address = int(addresses[first])
            raise Fault("out_of_bounds", f"address {address:#x} is in no buffer", thread_of(lanes, first), address)
        threads = np.arange(addresses.size) if isinstance(lanes, slice) else lanes
        positions = np.empty(addresses.size, np.int64)
        settled = True
        for number in np.unique(numbers):
            part = numbers == number
            of_part = self.place(threads[part], addresses[part], size, store=store, constant=constant)
            positions[part] = of_part.positions
            settled = settled and of_part.settled
        return Place(positions, int(positions.min()), int(positions.max()) + size, settled)

    def _describe(self, position: int, thread: int) -> tuple[int, str]:
        buffer = next(b for b in reversed(self.buffers) if b.start <= position)
        return position - buffer.start, f"offset {position - buffer.start} of {buffer.name}"


class SharedMemory(Memory):
    """Shared memory of all blocks of a launch, one after the other."""

    space = "shared"

    def __init__(self, bytes_per_block: int, threads: int, block: int) -> None:
        self.bytes_per_block = bytes_per_block
        self._stride = -(-bytes_per_block // 8) * 8
        self._block = block
        super().__init__(self._stride * (threads // block))
        self._starts = np.arange(threads, dtype=np.int64) // block * self._stride

    def reset(self) -> None:
        """Nothing is written at the start of a launch."""
        self.data.fill(POISON_BYTE)
        self.written.fill(0)

    def place(self, lanes: Lanes, addresses: Array, size: int) -> Place:
        """Check bounds of an access of ``size`` bytes at 32-bit ``addresses`` in each thread's block."""
        check_alignment(lanes, addresses, size)
        low, high = int(addresses.min()), int(addresses.max())
        if high + size > self.bytes_per_block:
            first = int(np.flatnonzero(addresses.astype(np.int64) > self.bytes_per_block - size)[0])
            address = int(addresses[first])
            raise Fault(
                "out_of_bounds",
                f"{size} bytes at shared address {address} of a block that has {self.bytes_per_block} bytes",
                thread_of(lanes, first),
                address,
            )
        return Place(self._starts[lanes] + addresses, low, high + size, settled=False)

    def _describe(self, position: int, thread: int) -> tuple[int, str]:
        address = position - thread // self._block * self._stride
        return address, f"shared address {address}"
