"""Instructions that reach beyond one thread's registers: memory, asynchronous copies and the warp-wide ones.

``bind`` turns a parsed instruction into a function of the active threads. Everything that can be refused without
running is refused here: mnemonics outside the subset, operand counts, undeclared registers, types that do not fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpu_tasks.devices.emulated.findings import Fault, PtxError
from gpu_tasks.devices.emulated.memory import Lanes, Place, thread_of
from gpu_tasks.devices.emulated.operations import DTYPES, OPERATIONS, Array
from gpu_tasks.devices.emulated.parser import Address, Immediate, Instruction, Operand, Register, Vector
from gpu_tasks.devices.emulated.races import WARP

if TYPE_CHECKING:
    from gpu_tasks.devices.emulated.machine import Machine

Action = Callable[[Lanes], None]

_MEMORY = re.compile(r"(ld|st)\.(global|shared)(\.nc)?(?:\.v([24]))?\.([usbf]16|[usbf]32|[usb]64)")
_COPY = re.compile(r"cp\.async\.(ca|cg)\.shared\.global")
_SHUFFLE = re.compile(r"shfl\.sync\.(up|down|bfly|idx)\.b32")
_VOTE = re.compile(r"vote\.sync\.(ballot\.b32|any\.pred|all\.pred)")
_REDUCE = re.compile(r"redux\.sync\.(add|min|max)\.u32")
_REDUCTIONS = {"add": np.add, "min": np.minimum, "max": np.maximum}


class PendingCopy(NamedTuple):
    """Asynchronous copies that one instruction started: per thread, where to, and in which of its groups."""

    threads: Array
    place: Place
    size: int
    groups: Array


def bind(machine: Machine, instruction: Instruction) -> Action:
    """The action of an instruction that is not control flow; raises ``PtxError`` if it is not in the subset."""
    mnemonic = instruction.mnemonic
    if mnemonic in OPERATIONS:
        return _bind_operation(machine, instruction)
    if mnemonic == "ld.param.u64":
        return _bind_parameter(machine, instruction)
    for pattern, binder in _BINDERS:
        match = pattern.fullmatch(mnemonic)
        if match:
            return binder(machine, instruction, match)
    raise unknown(instruction)


def unknown(instruction: Instruction) -> PtxError:
    """The refusal of an instruction outside the subset."""
    reason = f"{instruction.mnemonic} is not in the emulated subset"
    if re.fullmatch(r"(add|sub|mul|mad|fma)(\.ftz|\.sat)*\.f32", instruction.mnemonic):
        reason += " (without .rn ptxas may contract it: the text does not fix the result)"
    return PtxError("ptx_unknown_instruction", instruction.line, reason)


def operands_of(instruction: Instruction, count: int) -> tuple[Operand, ...]:
    """The operands, ``count`` of them."""
    if len(instruction.operands) != count:
        reason = f"{instruction.mnemonic}: expected {count} operands, found {len(instruction.operands)}"
        raise PtxError("ptx_operands", instruction.line, reason)
    return instruction.operands


def _bind_operation(machine: Machine, instruction: Instruction) -> Action:
    result, types, function = OPERATIONS[instruction.mnemonic]
    target, *sources = operands_of(instruction, len(types) + 1)
    write = machine.writer(instruction, target, result)
    reads = [machine.reader(instruction, source, kind) for source, kind in zip(sources, types, strict=True)]
    if len(reads) == 1:
        (only,) = reads
        return lambda lanes: write(lanes, function(only(lanes)))
    if len(reads) == 2:
        left, right = reads
        return lambda lanes: write(lanes, function(left(lanes), right(lanes)))
    return lambda lanes: write(lanes, function(*[read(lanes) for read in reads]))


def _bind_parameter(machine: Machine, instruction: Instruction) -> Action:
    target, source = operands_of(instruction, 2)
    name = source.base.name if isinstance(source, Address) and source.offset == 0 else ""
    if name not in machine.kernel.parameters:
        raise PtxError("ptx_operands", instruction.line, "ld.param: expected a parameter of this entry")
    index = machine.kernel.parameters.index(name)
    write = machine.writer(instruction, target, "u64")
    return lambda lanes: write(lanes, np.uint64(machine.arguments[index]))


# Loads, stores and asynchronous copies


def _bind_address(machine: Machine, instruction: Instruction, operand: Operand, space: str) -> Callable[..., Array]:
    """Addresses of the active threads: 64 bits in the global space, 32 in the shared one."""
    if not isinstance(operand, Address):
        raise PtxError("ptx_operands", instruction.line, f"{instruction.mnemonic}: expected an address in brackets")
    kind = "u64" if space == "global" else "u32"
    base = machine.reader(instruction, operand.base, kind, address=True)
    size = DTYPES[kind](0).itemsize
    offset = DTYPES[kind](operand.offset % (1 << 8 * size))
    threads = machine.threads

    def addresses(lanes: Lanes) -> Array:
        values = base(lanes) + offset
        return values if values.ndim else np.full(threads if isinstance(lanes, slice) else len(lanes), values)

    return addresses


def _bind_memory(machine: Machine, instruction: Instruction, match: re.Match[str]) -> Action:
    direction, space, constant, width, kind = match.groups()
    first, second = operands_of(instruction, 2)
    address, data = (second, first) if direction == "ld" else (first, second)
    if constant and (direction, space) != ("ld", "global"):
        raise unknown(instruction)
    parts = data.registers if isinstance(data, Vector) else (data,)
    if len(parts) != int(width or 1) or isinstance(data, Vector) != bool(width):
        reason = f"{instruction.mnemonic}: expected {width or 'one'} register(s), found {len(parts)}"
        raise PtxError("ptx_operands", instruction.line, reason)
    size = DTYPES[kind](0).itemsize
    addresses = _bind_address(machine, instruction, address, space)
    total = size * len(parts)

    def place_of(lanes: Lanes) -> Place:
        if space == "shared":
            return machine.shared.place(lanes, addresses(lanes), total)
        return machine.memory.place(
            lanes, addresses(lanes), total, store=direction == "st", constant=constant is not None
        )

    memory = machine.memory if space == "global" else machine.shared
    if direction == "ld":
        writes = [machine.writer(instruction, part, kind, widen=True) for part in parts]

        def load(lanes: Lanes) -> None:
            place = place_of(lanes)
            for index, write in enumerate(writes):
                shifted = place._replace(positions=place.positions + index * size) if index else place
                write(lanes, memory.load(lanes, shifted, size, machine.step).view(DTYPES[kind]))

        return load

    reads = [machine.reader(instruction, part, kind, narrow=True) for part in parts]

    def store(lanes: Lanes) -> None:
        place = place_of(lanes)
        for index, read in enumerate(reads):
            shifted = place._replace(positions=place.positions + index * size) if index else place
            values = np.asarray(read(lanes))
            memory.store(lanes, shifted, size, values.view(f"u{values.itemsize}"), machine.step)

    return store


def _bind_copy(machine: Machine, instruction: Instruction, match: re.Match[str]) -> Action:
    target, source, size_operand = operands_of(instruction, 3)
    size = size_operand.value if isinstance(size_operand, Immediate) else 0
    if size not in ((16,) if match[1] == "cg" else (4, 8, 16)):
        raise PtxError("ptx_operands", instruction.line, f"{instruction.mnemonic}: size {size} is not allowed")
    targets = _bind_address(machine, instruction, target, "shared")
    sources = _bind_address(machine, instruction, source, "global")

    def start(lanes: Lanes) -> None:
        """Move the bytes now, but leave them unwritten until the issuing thread waits for them."""
        to = machine.shared.place(lanes, targets(lanes), size)
        start_at = machine.memory.place(lanes, sources(lanes), size, store=False)
        for part in range(0, size, 4):
            values = machine.memory.load(lanes, start_at._replace(positions=start_at.positions + part), 4, machine.step)
            at = to._replace(positions=to.positions + part)
            machine.shared.store(lanes, at, 4, values, machine.step)
            machine.shared.forget(at.positions, 4)
        threads = np.arange(machine.threads)[lanes]
        machine.pending.append(PendingCopy(threads, to, size, machine.copy_group[lanes].copy()))

    return start


def _bind_commit(machine: Machine, instruction: Instruction, match: re.Match[str]) -> Action:
    operands_of(instruction, 0)

    def commit(lanes: Lanes) -> None:
        machine.copy_group[lanes] += 1

    return commit


def _bind_wait(machine: Machine, instruction: Instruction, match: re.Match[str]) -> Action:
    everything = match[1] == "all"
    allowed = 0
    if everything:
        operands_of(instruction, 0)
    else:
        (operand,) = operands_of(instruction, 1)
        if not isinstance(operand, Immediate) or operand.is_float:
            raise PtxError("ptx_operands", instruction.line, "cp.async.wait_group: expected a number of groups")
        allowed = operand.value

    def wait(lanes: Lanes) -> None:
        """Complete the waiting threads' copies of all but their latest ``allowed`` committed groups."""
        waiting = np.zeros(machine.threads, np.bool_)
        waiting[lanes] = True
        remaining = []
        for copy in machine.pending:
            done = waiting[copy.threads] & (everything | (copy.groups < machine.copy_group[copy.threads] - allowed))
            machine.complete_copy(copy, done)
            if not done.all():
                left = copy.place._replace(positions=copy.place.positions[~done])
                remaining.append(PendingCopy(copy.threads[~done], left, copy.size, copy.groups[~done]))
        machine.pending = remaining

    return wait


# Warp-wide instructions: all 32 lanes have to be here, so that the result does not depend on who arrived


def _bind_mask(instruction: Instruction, operand: Operand) -> Callable[[Lanes], None]:
    if not isinstance(operand, Immediate) or operand.value % (1 << 32) != 0xFFFFFFFF:
        reason = f"{instruction.mnemonic}: only the member mask of all 32 lanes is in the emulated subset"
        raise PtxError("ptx_unknown_instruction", instruction.line, reason)

    def check(lanes: Lanes) -> None:
        if isinstance(lanes, slice):
            return
        by_warp = lanes[: lanes.size // WARP * WARP].reshape(-1, WARP)
        if lanes.size % WARP or (by_warp[:, 0] % WARP).any() or (by_warp[:, -1] - by_warp[:, 0] != WARP - 1).any():
            raise Fault("divergent_warp", "some lanes of the warp are elsewhere", thread_of(lanes, 0))

    return check


def _bind_shuffle(machine: Machine, instruction: Instruction, match: re.Match[str]) -> Action:
    target, source, distance, clamp, mask = operands_of(instruction, 5)
    check = _bind_mask(instruction, mask)
    write, read = machine.writer(instruction, target, "b32"), machine.reader(instruction, source, "b32")
    distance_of = machine.reader(instruction, distance, "b32")
    clamp_of = machine.reader(instruction, clamp, "b32")
    lane = np.arange(WARP, dtype=np.int64)
    mode = match[1]

    def shuffle(lanes: Lanes) -> None:
        """PTX ISA, ``shfl.sync``: the clamp operand holds a bound and, from bit 8, a mask of segment bits."""
        check(lanes)
        values = read(lanes).reshape(-1, WARP)
        by_warp = np.broadcast_to(distance_of(lanes), values.size).reshape(-1, WARP).astype(np.int64) & 31
        bounds = np.broadcast_to(clamp_of(lanes), values.size).reshape(-1, WARP).astype(np.int64)
        segment = (bounds >> 8) & 31
        last = (lane & segment) | (bounds & 31 & ~segment)
        if mode == "up":
            chosen = lane - by_warp
            valid = chosen >= last
        else:
            chosen = {
                "down": lane + by_warp,
                "bfly": lane ^ by_warp,
                "idx": (lane & segment) | (by_warp & ~segment),
            }[mode]
            valid = chosen <= last
        write(lanes, np.take_along_axis(values, np.where(valid, chosen, lane), axis=1).ravel())

    return shuffle


def _bind_vote(machine: Machine, instruction: Instruction, match: re.Match[str]) -> Action:
    target, source, mask = operands_of(instruction, 3)
    check = _bind_mask(instruction, mask)
    read = machine.reader(instruction, source, "pred")
    mode = match[1].partition(".")[0]
    write = machine.writer(instruction, target, "b32" if mode == "ballot" else "pred")
    bits = np.uint32(1) << np.arange(WARP, dtype=np.uint32)

    def vote(lanes: Lanes) -> None:
        check(lanes)
        votes = read(lanes).reshape(-1, WARP)
        if mode == "ballot":
            outcome = (votes * bits).sum(axis=1, dtype=np.uint32)
        else:
            outcome = votes.any(axis=1) if mode == "any" else votes.all(axis=1)
        write(lanes, np.repeat(outcome, WARP))

    return vote


def _bind_reduce(machine: Machine, instruction: Instruction, match: re.Match[str]) -> Action:
    target, source, mask = operands_of(instruction, 3)
    check = _bind_mask(instruction, mask)
    write, read = machine.writer(instruction, target, "u32"), machine.reader(instruction, source, "u32")
    reduction = _REDUCTIONS[match[1]]

    def reduce(lanes: Lanes) -> None:
        check(lanes)
        write(lanes, np.repeat(reduction.reduce(read(lanes).reshape(-1, WARP), axis=1), WARP))

    return reduce


def _bind_warp_barrier(machine: Machine, instruction: Instruction, match: re.Match[str]) -> Action:
    (mask,) = operands_of(instruction, 1)
    check = _bind_mask(instruction, mask)

    def meet(lanes: Lanes) -> None:
        check(lanes)
        machine.meet_warps(np.arange(machine.threads)[lanes][::WARP] // WARP)

    return meet


_BINDERS: list[tuple[re.Pattern[str], Callable[[Machine, Instruction, re.Match[str]], Action]]] = [
    (_MEMORY, _bind_memory),
    (_COPY, _bind_copy),
    (re.compile(r"cp\.async\.commit_group"), _bind_commit),
    (re.compile(r"cp\.async\.wait_(all|group)"), _bind_wait),
    (_SHUFFLE, _bind_shuffle),
    (_VOTE, _bind_vote),
    (_REDUCE, _bind_reduce),
    (re.compile(r"bar\.warp\.sync"), _bind_warp_barrier),
]
