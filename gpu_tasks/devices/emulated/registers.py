"""The registers of all threads, who has written them, and the functions that read and write operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_tasks.devices.emulated.findings import Fault, PtxError
from gpu_tasks.devices.emulated.memory import Lanes, thread_of
from gpu_tasks.devices.emulated.operations import DTYPES, WARP, Array
from gpu_tasks.devices.emulated.parser import Immediate, Instruction, Kernel, Operand, Register, Symbol

Read = Callable[[Lanes], Any]
Write = Callable[[Lanes, Any], None]


class Cell:
    """One register of every thread. ``whole``: no thread can find it unwritten any more."""

    __slots__ = ("bits", "kind", "whole", "written")

    def __init__(self, kind: str, threads: int) -> None:
        self.kind, self.whole = kind, False
        self.bits, self.written = np.zeros(threads, DTYPES[kind]), np.zeros(threads, np.bool_)

    def as_type(self, kind: str) -> Array:
        """The bits as ``kind``, or as declared where that is wider."""
        return self.bits.view(DTYPES[kind]) if kind[1:] == self.kind[1:] else self.bits


class Registers:
    """All registers of a launch."""

    def __init__(self, kernel: Kernel, grid: int, block: int) -> None:
        thread = np.arange(grid * block, dtype=np.uint32)
        self._special = {
            "%tid.x": thread % block,
            "%ntid.x": np.full_like(thread, block),
            "%ctaid.x": thread // block,
            "%nctaid.x": np.full_like(thread, grid),
            "%laneid": thread % WARP,
            "%lanemask_lt": (np.uint32(1) << thread % WARP) - 1,
        }
        self._cells = {name: Cell(kind, thread.size) for name, kind in kernel.registers.items()}
        dynamic = {kernel.dynamic_shared: kernel.dynamic_start} if kernel.dynamic_shared else {}
        self._variables = kernel.shared | dynamic

    def reset(self) -> None:
        """Forget the previous launch."""
        for cell in self._cells.values():
            cell.whole = False
            cell.written.fill(False)

    def reader(self, at: Instruction, operand: Operand, kind: str, *, memory: bool = False) -> Read:
        """A function of the active threads that gives an operand's values as ``kind``; a constant is one scalar.

        ``memory`` admits what only loads and stores take: a shared variable's name, and a wider register, whose low
        part is stored. Raises ``PtxError`` if the operand does not fit.
        """
        if isinstance(operand, Immediate):
            return _scalar(_constant(at, operand, kind))
        if isinstance(operand, Symbol) and operand.name in self._variables and (memory or at.mnemonic == "mov.u32"):
            return _scalar(np.uint32(self._variables[operand.name]))
        if not isinstance(operand, Register):
            raise PtxError("ptx_operands", at.line, f"{at.mnemonic}: expected a register or a constant")
        name = operand.name
        if name in self._special and at.mnemonic == "mov.u32":
            values = self._special[name]
            return lambda lanes: values[lanes]
        cell = self._cell(at, name, kind, wider=memory)
        view = cell.as_type(kind)

        def read(lanes: Lanes) -> Array:
            if not cell.whole and not cell.written[lanes].all():
                first = int(np.flatnonzero(~cell.written[lanes])[0])
                message = f"register {name} is read before this thread has written it"
                raise Fault("uninitialised_register", message, thread_of(lanes, first))
            return view[lanes]

        return read

    def writer(self, at: Instruction, operand: Operand, kind: str, *, memory: bool = False) -> Write:
        """A function that stores ``kind`` values of the active threads; ``memory`` admits a wider register."""
        if not isinstance(operand, Register):
            raise PtxError("ptx_operands", at.line, f"{at.mnemonic}: the destination has to be a register")
        cell = self._cell(at, operand.name, kind, wider=memory)
        view = cell.as_type(kind)

        def write(lanes: Lanes, values: Any) -> None:
            view[lanes] = values
            if isinstance(lanes, slice):
                cell.whole = True
            elif not cell.whole:
                cell.written[lanes] = True

        return write

    def guard(self, at: Instruction) -> Read | None:
        """A function that gives the active threads' predicate, or nothing for an unguarded instruction."""
        if at.guard is None:
            return None
        name, negated = at.guard
        read = self.reader(at, Register(name), "pred")
        return (lambda lanes: ~read(lanes)) if negated else read

    def _cell(self, at: Instruction, name: str, kind: str, *, wider: bool) -> Cell:
        cell = self._cells.get(name)
        if cell is None:
            raise PtxError(
                "ptx_undeclared", at.line, f"{at.mnemonic}: register {name} is not declared, or not usable here"
            )
        if not _fits(cell.kind, kind, wider=wider):
            raise PtxError("ptx_types", at.line, f"{at.mnemonic}: {name} is .{cell.kind}, which does not fit .{kind}")
        return cell


def _scalar(value: Any) -> Read:
    return lambda _lanes: value


def _constant(at: Instruction, operand: Immediate, kind: str) -> Any:
    bits = 0 if kind == "pred" else int(kind[1:])
    typed = kind[0] in ("fb" if operand.is_float else "usb")
    if not bits or not typed or not -(1 << (bits - 1)) <= operand.value < 1 << bits:
        raise PtxError("ptx_types", at.line, f"{at.mnemonic}: constant {operand.value} does not fit .{kind}")
    return np.array(operand.value % (1 << bits), f"u{bits // 8}").view(DTYPES[kind])[()]


def _fits(declared: str, used: str, *, wider: bool) -> bool:
    """PTX's rule: same size, and both floats or neither unless one is untyped (.b); loads may fill wider integers."""
    if "pred" in (declared, used):
        return declared == used
    if wider and int(declared[1:]) > int(used[1:]):
        return "f" not in declared + used
    return declared[1:] == used[1:] and ("b" in (declared[0], used[0]) or (declared[0] == "f") == (used[0] == "f"))
