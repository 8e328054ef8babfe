"""Which thread runs when: one launch of one kernel, all threads of all blocks in numpy lanes.

Threads at the same instruction run it together. After they part at a branch, the group at the smallest program
counter runs until it reaches the next group, which it then joins: code after an if or a loop, which comes later in
the text, is thus reached by all together. A block barrier is passed once every thread waits at one or has returned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu_tasks.devices.emulated import instructions
from gpu_tasks.devices.emulated.findings import Access, Fault, KernelFinding, LaunchError, PtxError
from gpu_tasks.devices.emulated.memory import ALL_LANES, GlobalMemory, Lanes, SharedMemory
from gpu_tasks.devices.emulated.operations import DTYPES, Array
from gpu_tasks.devices.emulated.parser import Immediate, Instruction, Kernel, Operand
from gpu_tasks.devices.emulated.races import WARP, RaceDetector
from gpu_tasks.devices.emulated.registers import Registers

MAX_BLOCK = 1024
MAX_GRID = 2**31 - 1
MAX_THREADS = 1 << 20  # of this emulator
STATIC_SHARED_LIMIT = 48 * 1024
SHARED_LIMIT = {"sm_80": 163 * 1024, "sm_90": 227 * 1024}  # a block's, when asked for (CUDA programming guide)
INSTRUCTION_LIMIT = 100_000


class Machine:
    """A kernel bound to a geometry and a global memory; ``run`` can be called many times.

    Raises ``LaunchError`` on a launch that hardware refuses, ``PtxError`` on instructions outside the subset.
    """

    def __init__(
        self,
        kernel: Kernel,
        memory: GlobalMemory,
        grid: Sequence[int],
        block: Sequence[int],
        dynamic_shared_bytes: int = 0,
        *,
        check_races: bool = True,
    ) -> None:
        _check_geometry(kernel, grid, block, dynamic_shared_bytes)
        self.kernel, self.memory, self.block = kernel, memory, block[0]
        self.threads = grid[0] * block[0]
        static = -(-kernel.shared_bytes // 16) * 16 if dynamic_shared_bytes else kernel.shared_bytes
        self.shared = SharedMemory(static + dynamic_shared_bytes, self.threads, self.block)
        self.arguments: tuple[int, ...] = ()
        self.pending: list[instructions.PendingCopy] = []
        self.copy_group = np.zeros(self.threads, np.int64)
        self.trace: list[int] = []  # executed instructions, by index; a step is a length of it
        self._check_races = check_races
        self._registers = Registers(kernel, self.threads, _special_registers(grid[0], block[0]))
        self.reader, self.writer = self._registers.reader, self._registers.writer
        self._guards = [self._registers.guard(instruction) for instruction in kernel.code]
        self._actions = [self._bind(instruction) for instruction in kernel.code]

    @property
    def step(self) -> int:
        """Number of the instruction being executed, from 1."""
        return len(self.trace)

    def run(self, arguments: Sequence[int], writable: set[int], limit: int = INSTRUCTION_LIMIT) -> None:
        """Execute one launch with the given parameter values; buffers at ``writable`` addresses may be written.

        Raises ``KernelFinding``, also when more than ``limit`` instructions have been executed.
        """
        if len(arguments) != len(self.kernel.parameters):
            raise LaunchError(
                "wrong_parameter_count",
                f"{self.kernel.name}: expected {len(self.kernel.parameters)} parameters, found {len(arguments)}",
            )
        self.arguments = tuple(arguments)
        self.memory.prepare(writable)
        self._reset()
        self._fronts: dict[int, Lanes] = {0: ALL_LANES}
        self._waiting: dict[int, Array] = {}
        with np.errstate(all="ignore"):
            while self._fronts:
                self._run_first_front(limit)
                if not self._fronts and self._waiting:
                    self._pass_barrier()
        self.memory.races = None

    def meet_warps(self, warps: Array) -> None:
        """These warps are past a ``bar.warp.sync``."""
        for memory in (self.memory, self.shared):
            if memory.races:
                memory.races.meet_warps(warps, self.step)

    def complete_copy(self, copy: instructions.PendingCopy, done: Array) -> None:
        """The bytes of the chosen copies are written now, by the threads that issued them."""
        positions, threads = copy.place.positions[done], copy.threads[done]
        extent = (copy.place.low, copy.place.high)
        for part in range(0, copy.size, 4):
            self.shared.arrive(positions + part, 4)
            if self.shared.races:
                self.shared.races.write(threads, positions + part, 4, extent, self.step)

    def _reset(self) -> None:
        self._registers.reset()
        self.shared.reset()
        self.trace.clear()
        self.pending.clear()
        self.copy_group.fill(0)
        if self._check_races:
            granule = 2 if any(i.mnemonic.endswith("16") for i in self.kernel.code) else 4
            self.shared.races = RaceDetector(
                self.shared.data.size, granule, self.threads, self.block, across_blocks=False
            )
            self.memory.races = RaceDetector(
                self.memory.data.size, granule, self.threads, self.block, across_blocks=True
            )

    def _bind(self, instruction: Instruction) -> instructions.Action | None:
        """The action of an instruction; none for control flow, which is checked here and run by the front."""
        mnemonic, operands = instruction.mnemonic, instruction.operands
        if mnemonic == "bar.sync":
            if operands != (Immediate(0),):
                raise PtxError("ptx_unknown_instruction", instruction.line, "bar.sync: only barrier 0 of all threads")
            return None
        if mnemonic == "ret":
            instructions.operands_of(instruction, 0)
            return None
        return None if mnemonic == "bra" else instructions.bind(self, instruction)

    def _run_first_front(self, limit: int) -> None:
        """Run the group at the smallest program counter until it ends, waits or meets the next group."""
        pc = min(self._fronts)
        lanes = self._fronts.pop(pc)
        code, guards, actions, trace = self.kernel.code, self._guards, self._actions, self.trace
        while pc not in self._fronts:
            if pc >= len(code):
                self._raise(Fault("no_return", "execution runs past the last instruction"), len(code) - 1)
            if len(trace) >= limit:
                self._raise(Fault("instruction_limit", self._spinning(limit)), self._spinning_at())
            trace.append(pc)
            guard, action = guards[pc], actions[pc]
            try:
                chosen = lanes if guard is None else _choose(lanes, guard(lanes))
                if action is not None:
                    if isinstance(chosen, slice) or chosen.size:
                        action(chosen)
                    pc += 1
                    continue
            except Fault as fault:
                self._raise(fault, pc)
            rest = self._without(lanes, chosen)
            mnemonic = code[pc].mnemonic
            if mnemonic == "bra":
                self._join(self.kernel.labels[code[pc].operands[0].name], chosen)  # type: ignore[union-attr]
            elif mnemonic == "bar.sync":
                if guard is not None:
                    self._raise(Fault("guarded_barrier", "bar.sync under a predicate"), pc)
                self._waiting[pc] = chosen
            self._join(pc + 1, rest)
            return
        self._join(pc, lanes)

    def _join(self, pc: int, lanes: Lanes) -> None:
        """Add threads to the group at ``pc``."""
        if not isinstance(lanes, slice) and not lanes.size:
            return
        present = self._fronts.get(pc)
        if present is not None:
            lanes = np.sort(np.concatenate([present, lanes]))
            lanes = ALL_LANES if lanes.size == self.threads else lanes
        self._fronts[pc] = lanes

    def _without(self, lanes: Lanes, removed: Lanes) -> Lanes:
        if isinstance(removed, slice):
            return np.empty(0, np.intp)
        if removed is lanes:
            return removed[:0]
        left = np.zeros(self.threads, np.bool_)
        left[lanes] = True
        left[removed] = False
        return np.flatnonzero(left)

    def _pass_barrier(self) -> None:
        """Every thread waits or has returned: those of one block have to wait at the same instruction."""
        everyone = np.arange(self.threads)
        place_of_block: dict[int, int] = {}
        for pc, lanes in self._waiting.items():
            for block in np.unique(everyone[lanes] // self.block):
                other = place_of_block.setdefault(int(block), pc)
                if other != pc:
                    thread = int(everyone[lanes][everyone[lanes] // self.block == block][0])
                    line = self.kernel.code[other].line
                    reason = f"other threads of the block wait at the barrier of line {line}"
                    self._raise(Fault("divergent_barrier", reason, thread), pc)
        waiting, self._waiting = self._waiting, {}
        for memory in (self.memory, self.shared):
            if memory.races:
                memory.races.meet_blocks(self.step)
        for pc, lanes in waiting.items():
            self._join(pc + 1, lanes)

    def _spinning_at(self) -> int:
        """The backward branch that was executed most."""
        counts = Counter(
            pc
            for pc in self.trace
            if self.kernel.code[pc].mnemonic == "bra"
            and self.kernel.labels[self.kernel.code[pc].operands[0].name] <= pc  # type: ignore[union-attr]
        )
        return max(counts, key=lambda pc: (counts[pc], -pc), default=len(self.kernel.code) - 1)

    def _spinning(self, limit: int) -> str:
        return f"still running after {limit} instructions; this line's branch was executed most"

    def _raise(self, fault: Fault, pc: int) -> None:
        """Turn a fault into a finding with its place in the text."""
        self.memory.races = None
        message, other = fault.message, None
        if fault.other_step >= 0:
            other_line = self.kernel.code[self.trace[fault.other_step - 1]].line
            other_block, other_thread = divmod(fault.other_thread, self.block)
            other = Access(fault.other_kind, other_line, other_block, other_thread)
            message = f"{message} {other}"
        block, thread = (None, None) if fault.thread is None else divmod(fault.thread, self.block)
        raise KernelFinding(
            fault.code,
            message,
            kernel=self.kernel.name,
            line=self.kernel.code[pc].line,
            block=block,
            thread=thread,
            address=fault.address,
            other=other,
        ) from None


def _choose(lanes: Lanes, predicate: Any) -> Lanes:
    """The lanes whose predicate is true; the very same object when that is all of them."""
    if predicate.all():
        return lanes
    return np.flatnonzero(predicate) if isinstance(lanes, slice) else lanes[predicate]


def _special_registers(grid: int, block: int) -> dict[str, Array]:
    threads = np.arange(grid * block)
    lane = threads % block % WARP
    values = {
        "%tid.x": threads % block,
        "%ntid.x": np.full(threads.size, block),
        "%ctaid.x": threads // block,
        "%nctaid.x": np.full(threads.size, grid),
        "%laneid": lane,
        "%lanemask_lt": (1 << lane) - 1,
    }
    return {name: array.astype(DTYPES["u32"]) for name, array in values.items()}


def _check_geometry(kernel: Kernel, grid: Sequence[int], block: Sequence[int], dynamic: int) -> None:
    def refuse(code: str, field: str, expected: str, found: object) -> None:
        raise LaunchError(code, f"{kernel.name}: {field}: expected {expected}, found {found}")

    for field, sizes in (("grid", grid), ("block", block)):
        if len(sizes) != 3 or tuple(sizes[1:]) != (1, 1):
            refuse("bad_geometry", field, "one dimension, as [x, 1, 1]", list(sizes))
    if not 1 <= block[0] <= MAX_BLOCK or block[0] % WARP:
        refuse("bad_geometry", "block", f"whole warps, at most {MAX_BLOCK} threads", block[0])
    if not 1 <= grid[0] <= MAX_GRID:
        refuse("bad_geometry", "grid", f"1 to {MAX_GRID} blocks", grid[0])
    if grid[0] * block[0] > MAX_THREADS:
        refuse("bad_geometry", "grid", f"at most {MAX_THREADS} threads in this emulator", grid[0] * block[0])
    if kernel.block_required and tuple(block) != kernel.block_required:
        refuse("bad_geometry", "block", f".reqntid {list(kernel.block_required)}", list(block))
    if kernel.shared_bytes > STATIC_SHARED_LIMIT:
        refuse("shared_memory", "static shared memory", f"at most {STATIC_SHARED_LIMIT} bytes", kernel.shared_bytes)
    if dynamic < 0 or (dynamic and kernel.dynamic_shared is None):
        refuse("shared_memory", "dynamic shared memory", "none, as the kernel declares none", dynamic)
    limit = SHARED_LIMIT[kernel.target]
    if kernel.shared_bytes + dynamic > limit:
        refuse("shared_memory", "shared memory", f"at most {limit} bytes", kernel.shared_bytes + dynamic)
