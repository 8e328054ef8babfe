"""From parsed instructions to functions of the active threads: registers, memory, copies and warps.

Everything that can be refused without running is refused here: mnemonics outside the subset, operand counts,
undeclared registers, types that do not fit. Control flow is the machine's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpu_tasks.devices.emulated.findings import Fault, PtxError
from gpu_tasks.devices.emulated.memory import ON_ITS_WAY, Lanes, Place, thread_of
from gpu_tasks.devices.emulated.operations import DTYPES, OPERATIONS, WARP, WARP_OPERATIONS, Array
from gpu_tasks.devices.emulated.parser import Address, Immediate, Instruction, Operand, Symbol, Vector

if TYPE_CHECKING:
    from gpu_tasks.devices.emulated.machine import Machine

Action = Callable[[Lanes], None]
_MEMORY = re.compile(
    r"(?:(ld|st)\.(global|shared)|(ld)\.(global)\.nc)(?:\.v(2|4(?!\.\w64)))?\.([usb]16|[usbf]32|[usb]64)"
)


class PendingCopy(NamedTuple):
    """Asynchronous copies that one instruction started: per thread, where to, and in which of its groups."""

    threads: Array
    place: Place
    size: int
    groups: Array


def bind(machine: Machine, at: Instruction) -> Action:
    """The action of one instruction; raises ``PtxError`` if it is not in the subset."""
    if at.mnemonic in OPERATIONS:
        return _bind_operation(machine, at)
    if at.mnemonic in WARP_OPERATIONS:
        return _bind_warp_operation(machine, at)
    if match := _MEMORY.fullmatch(at.mnemonic):
        return _bind_memory(machine, at, match)
    binder = _OTHERS.get(at.mnemonic)
    if binder is None:
        hint = ""
        if re.fullmatch(r"(add|sub|mul|mad|fma)(\.ftz|\.sat)*\.f32", at.mnemonic):
            hint = " (without .rn ptxas may contract it: the text does not fix the result)"
        raise PtxError("ptx_unknown_instruction", at.line, f"{at.mnemonic} is not in the emulated subset{hint}")
    return binder(machine, at)


def operands_of(at: Instruction, count: int) -> tuple[Operand, ...]:
    """The operands, ``count`` of them."""
    if len(at.operands) != count:
        raise PtxError("ptx_operands", at.line, f"{at.mnemonic}: expected {count} operands, found {len(at.operands)}")
    return at.operands


def _immediate(at: Instruction, operand: Operand, allowed: Callable[[int], bool]) -> int:
    if not isinstance(operand, Immediate) or operand.is_float or not allowed(operand.value):
        raise PtxError("ptx_operands", at.line, f"{at.mnemonic}: this constant operand is not in the emulated subset")
    return operand.value


def _bind_operation(machine: Machine, at: Instruction) -> Action:
    result, types, function = OPERATIONS[at.mnemonic]
    target, *sources = operands_of(at, len(types) + 1)
    write = machine.writer(at, target, result)
    reads = [machine.reader(at, source, kind) for source, kind in zip(sources, types, strict=True)]
    return lambda lanes: write(lanes, function(*[read(lanes) for read in reads]))


def _bind_parameter(machine: Machine, at: Instruction) -> Action:
    target, source = operands_of(at, 2)
    parameters = machine.kernel.parameters
    if not isinstance(source, Address) or source.offset or source.base.name not in parameters:
        raise PtxError("ptx_operands", at.line, "ld.param: expected a parameter of this entry")
    index, write = parameters.index(source.base.name), machine.writer(at, target, "u64")
    return lambda lanes: write(lanes, np.uint64(machine.arguments[index]))


def _bind_address(machine: Machine, at: Instruction, operand: Operand, kind: str) -> Callable[[Lanes], Array]:
    """Addresses of the active threads: u64 in the global space, u32 in the shared one."""
    if not isinstance(operand, Address) or (isinstance(operand.base, Symbol) and kind == "u64"):
        raise PtxError("ptx_operands", at.line, f"{at.mnemonic}: expected an address in brackets")
    base = machine.reader(at, operand.base, kind, memory=isinstance(operand.base, Symbol))
    offset = DTYPES[kind](operand.offset % (1 << int(kind[1:])))
    # A variable's name gives one address for all; adding a vector of zeros makes it one for each thread.
    spread = np.zeros(machine.threads, DTYPES[kind])
    if isinstance(operand.base, Symbol):
        return lambda lanes: base(lanes) + offset + spread[lanes]
    return lambda lanes: base(lanes) + offset


def _bind_memory(machine: Machine, at: Instruction, match: re.Match[str]) -> Action:
    plain, space, constant, constant_space, width, kind = match.groups()
    loads, is_global = (plain or constant) == "ld", (space or constant_space) == "global"
    data, address = operands_of(at, 2) if loads else reversed(operands_of(at, 2))
    parts = data.registers if isinstance(data, Vector) else (data,)
    if len(parts) != int(width or 1) or isinstance(data, Vector) != bool(width):
        raise PtxError("ptx_operands", at.line, f"{at.mnemonic}: expected {width or 'no vector but 1'} register(s)")
    size = int(kind[1:]) // 8
    total = size * len(parts)
    addresses = _bind_address(machine, at, address, "u64" if is_global else "u32")
    memory = machine.memory if is_global else machine.shared

    def place_of(lanes: Lanes) -> Place:
        if is_global:
            return machine.memory.place(lanes, addresses(lanes), total, store=not loads, constant=bool(constant))
        return machine.shared.place(lanes, addresses(lanes), total)

    writes = [machine.writer(at, part, kind, memory=True) for part in parts] if loads else []
    reads = [] if loads else [machine.reader(at, part, kind, memory=True) for part in parts]

    def run(lanes: Lanes) -> None:
        place = place_of(lanes)
        if reads and machine.pending and not is_global:
            machine.shared.refuse_on_its_way(lanes, place, total)
        for index, write in enumerate(writes):
            values = memory.load(lanes, place.moved(index * size), size, machine.step)
            write(lanes, values.view(DTYPES[kind]))
        for index, read in enumerate(reads):
            bits = np.asarray(read(lanes))
            memory.store(lanes, place.moved(index * size), size, bits.view(f"u{bits.itemsize}"), machine.step)

    return run


# Asynchronous copies: the bytes stay unwritten until the thread that issued the copy has waited for it.


def _bind_copy(machine: Machine, at: Instruction) -> Action:
    target, source, size_operand = operands_of(at, 3)
    allowed = (16,) if ".cg." in at.mnemonic else (4, 8, 16)
    size = _immediate(at, size_operand, lambda value: value in allowed)
    targets, sources = _bind_address(machine, at, target, "u32"), _bind_address(machine, at, source, "u64")

    def start(lanes: Lanes) -> None:
        to = machine.shared.place(lanes, targets(lanes), size)
        if machine.pending:
            machine.shared.refuse_on_its_way(lanes, to, size)
        from_place = machine.memory.place(lanes, sources(lanes), size)
        for part in range(0, size, 4):
            values = machine.memory.load(lanes, from_place.moved(part), 4, machine.step)
            machine.shared.store(lanes, to.moved(part), 4, values, machine.step)
            machine.shared.mark(to.positions + part, 4, ON_ITS_WAY)
        threads = machine.all_threads[lanes]
        machine.pending.append(PendingCopy(threads, to, size, machine.copy_group[threads]))

    return start


def _bind_commit(machine: Machine, at: Instruction) -> Action:
    operands_of(at, 0)

    def commit(lanes: Lanes) -> None:
        machine.copy_group[lanes] += 1

    return commit


def _bind_wait(machine: Machine, at: Instruction) -> Action:
    everything = at.mnemonic.endswith("all")
    operands = operands_of(at, 0 if everything else 1)
    allowed = 0 if everything else _immediate(at, operands[0], lambda value: value >= 0)

    def wait(lanes: Lanes) -> None:
        """Complete the waiting threads' copies of all but their latest ``allowed`` committed groups."""
        waiting = np.zeros(machine.threads, np.bool_)
        waiting[lanes] = True
        machine.pending, pending = [], machine.pending
        for copy in pending:
            done = waiting[copy.threads] & (everything | (copy.groups < machine.copy_group[copy.threads] - allowed))
            threads, positions = copy.threads[done], copy.place.positions[done]
            for part in range(0, copy.size, 4):
                machine.shared.mark(positions + part, 4, 1)
                if machine.shared.races:
                    machine.shared.races.write(threads, positions + part, 4, copy.place.extent, machine.step)
            if not done.all():
                left = copy.place._replace(positions=copy.place.positions[~done])
                machine.pending.append(PendingCopy(copy.threads[~done], left, copy.size, copy.groups[~done]))

    return wait


# Warp-wide instructions: all 32 lanes have to be here, so that the result does not depend on who has arrived.


def _bind_mask(at: Instruction, operand: Operand) -> Action:
    _immediate(at, operand, lambda value: value % (1 << 32) == 0xFFFFFFFF)

    def check(lanes: Lanes) -> None:
        if isinstance(lanes, slice):
            return
        expected = lanes[::WARP, None] // WARP * WARP + np.arange(WARP)
        if expected.size != lanes.size or (expected.ravel() != lanes).any():
            raise Fault("divergent_warp", "some lanes of the warp are elsewhere", thread_of(lanes, 0))

    return check


def _bind_warp_operation(machine: Machine, at: Instruction) -> Action:
    result, types, function = WARP_OPERATIONS[at.mnemonic]
    target, *sources, mask = operands_of(at, len(types) + 2)
    check, write = _bind_mask(at, mask), machine.writer(at, target, result)
    reads = [machine.reader(at, source, kind) for source, kind in zip(sources, types, strict=True)]

    def run(lanes: Lanes) -> None:
        check(lanes)
        count = machine.all_threads[lanes].size
        by_warp = [np.broadcast_to(read(lanes), count).reshape(-1, WARP) for read in reads]
        write(lanes, np.broadcast_to(function(*by_warp), (count // WARP, WARP)).ravel())

    return run


def _bind_warp_barrier(machine: Machine, at: Instruction) -> Action:
    (mask,) = operands_of(at, 1)
    check = _bind_mask(at, mask)

    def meet(lanes: Lanes) -> None:
        check(lanes)
        for memory in (machine.memory, machine.shared):
            if memory.races:
                memory.races.meet_warps(machine.all_threads[lanes][::WARP] // WARP, machine.step)

    return meet


_OTHERS: dict[str, Callable[[Any, Instruction], Action]] = {
    "ld.param.u64": _bind_parameter,
    "cp.async.ca.shared.global": _bind_copy,
    "cp.async.cg.shared.global": _bind_copy,
    "cp.async.commit_group": _bind_commit,
    "cp.async.wait_group": _bind_wait,
    "cp.async.wait_all": _bind_wait,
    "bar.warp.sync": _bind_warp_barrier,
}
