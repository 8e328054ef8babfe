"""The registers of all threads, and who has written them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_tasks.devices.emulated.findings import Fault, PtxError
from gpu_tasks.devices.emulated.memory import Lanes, thread_of
from gpu_tasks.devices.emulated.operations import DTYPES, Array
from gpu_tasks.devices.emulated.parser import Immediate, Instruction, Kernel, Operand, Register, Symbol

Read = Callable[[Lanes], Any]
Write = Callable[[Lanes, Any], None]


class Cell:
    """One register of every thread. ``whole``: no thread can find it unwritten any more."""

    __slots__ = ("bits", "kind", "name", "whole", "written")

    def __init__(self, name: str, kind: str, threads: int) -> None:
        self.name, self.kind = name, kind
        self.bits = np.zeros(threads, DTYPES[kind])
        self.written = np.zeros(threads, np.bool_)
        self.whole = False

    def reset(self) -> None:
        """Unwritten in every thread."""
        self.whole = False
        self.written.fill(False)

    def check(self, lanes: Lanes) -> None:
        """Refuse a read by a thread that has not written the register."""
        written = self.written[lanes]
        if not written.all():
            first = int(np.flatnonzero(~written)[0])
            reason = f"register {self.name} is read before this thread has written it"
            raise Fault("uninitialised_register", reason, thread_of(lanes, first))


class Registers:
    """All registers of a launch and the functions that read and write operands."""

    def __init__(self, kernel: Kernel, threads: int, special: dict[str, Array]) -> None:
        self._kernel, self._special = kernel, special
        self._cells = {name: Cell(name, kind, threads) for name, kind in kernel.registers.items()}

    def reset(self) -> None:
        """Forget the previous launch."""
        for cell in self._cells.values():
            cell.reset()

    def reader(
        self, at: Instruction, operand: Operand, kind: str, *, address: bool = False, narrow: bool = False
    ) -> Read:
        """A function of the active threads that gives an operand's values as ``kind``.

        Constants come as one scalar. ``address`` admits a shared variable's name, ``narrow`` a wider register, whose
        low part is taken. Raises ``PtxError`` if the operand does not fit.
        """
        if isinstance(operand, Immediate):
            return self._constant(at, operand, kind)
        if isinstance(operand, Symbol):
            return self._variable(at, operand, kind, address)
        if not isinstance(operand, Register):
            raise PtxError("ptx_operands", at.line, f"{at.mnemonic}: a register or constant was expected")
        if operand.name in self._special:
            if at.mnemonic != "mov.u32":
                raise PtxError("ptx_operands", at.line, f"{operand.name} can only be read by mov.u32")
            values = self._special[operand.name]
            return lambda lanes: values[lanes]
        cell = self._cell(at, operand, kind, other_width=narrow)
        view = cell.bits.view(DTYPES[kind]) if cell.bits.itemsize == DTYPES[kind](0).itemsize else cell.bits

        def read(lanes: Lanes) -> Array:
            if not cell.whole:
                cell.check(lanes)
            return view[lanes]

        return read

    def writer(self, at: Instruction, operand: Operand, kind: str, *, widen: bool = False) -> Write:
        """A function that stores ``kind`` values of the active threads; ``widen`` admits a wider register."""
        if not isinstance(operand, Register) or operand.name in self._special:
            raise PtxError("ptx_operands", at.line, f"{at.mnemonic}: the destination has to be a register")
        cell = self._cell(at, operand, kind, other_width=widen)
        view = cell.bits.view(DTYPES[kind]) if cell.bits.itemsize == DTYPES[kind](0).itemsize else cell.bits

        def write(lanes: Lanes, values: Any) -> None:
            view[lanes] = values
            if not cell.whole:
                if isinstance(lanes, slice):
                    cell.whole = True
                else:
                    cell.written[lanes] = True

        return write

    def guard(self, at: Instruction) -> Read | None:
        """A function that gives the active threads' predicate, or nothing for an unguarded instruction."""
        if at.guard is None:
            return None
        name, negated = at.guard
        read = self.reader(at, Register(name), "pred")
        return (lambda lanes: ~read(lanes)) if negated else read

    def _cell(self, at: Instruction, operand: Register, kind: str, *, other_width: bool) -> Cell:
        cell = self._cells.get(operand.name)
        if cell is None:
            raise PtxError("ptx_undeclared", at.line, f"register {operand.name} is not declared")
        if not _fits(cell.kind, kind, other_width=other_width):
            reason = f"{at.mnemonic}: {operand.name} is declared .{cell.kind}, which does not fit .{kind}"
            raise PtxError("ptx_types", at.line, reason)
        return cell

    def _constant(self, at: Instruction, operand: Immediate, kind: str) -> Read:
        if kind == "pred" or operand.is_float and kind[0] not in "fb" or not operand.is_float and kind[0] == "f":
            raise PtxError("ptx_types", at.line, f"{at.mnemonic}: a constant of another type than .{kind}")
        bits = 8 * DTYPES[kind](0).itemsize
        if not -(1 << (bits - 1)) <= operand.value < 1 << bits:
            raise PtxError("ptx_types", at.line, f"{at.mnemonic}: constant {operand.value} does not fit .{kind}")
        raw = np.array(operand.value % (1 << bits), f"u{bits // 8}")
        value = raw.view(DTYPES[kind])[()]
        return lambda lanes: value

    def _variable(self, at: Instruction, operand: Symbol, kind: str, address: bool) -> Read:
        known = operand.name in self._kernel.shared or operand.name == self._kernel.dynamic_shared
        if not known or kind != "u32" or not (address or at.mnemonic == "mov.u32"):
            raise PtxError("ptx_undeclared", at.line, f"{operand.name} is no shared variable that can stand here")
        after_static = -(-self._kernel.shared_bytes // 16) * 16
        offset = self._kernel.shared[operand.name][0] if operand.name in self._kernel.shared else after_static
        value = np.uint32(offset)
        return lambda lanes: value


def _fits(declared: str, used: str, *, other_width: bool) -> bool:
    """PTX's rule: same size, and both floats or neither unless one is untyped (.b); loads may fill wider ones."""
    if "pred" in (declared, used):
        return declared == used
    declared_bits, used_bits = int(declared[1:]), int(used[1:])
    if declared_bits != used_bits and not (other_width and declared_bits > used_bits):
        return False
    return "b" in (declared[0], used[0]) or (declared[0] == "f") == (used[0] == "f")
