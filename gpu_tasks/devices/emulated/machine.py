"""Which thread runs when: one launch of one kernel, all threads of all blocks in numpy lanes.

Threads at the same instruction run it together. After they part at a branch, the group at the smallest program
counter runs until it reaches the next group, which it then joins: code after an if or a loop, which comes later in
the text, is thus reached by all together. A block barrier is passed once every thread waits at one or has returned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from gpu_tasks.devices.emulated.findings import Access, Fault, KernelFinding, LaunchError, PtxError
from gpu_tasks.devices.emulated.instructions import PendingCopy, bind, operands_of
from gpu_tasks.devices.emulated.memory import GlobalMemory, Lanes, SharedMemory
from gpu_tasks.devices.emulated.operations import WARP, Array
from gpu_tasks.devices.emulated.parser import Immediate, Instruction, Kernel, Symbol
from gpu_tasks.devices.emulated.races import RaceDetector
from gpu_tasks.devices.emulated.registers import Registers

MAX_BLOCK = 1024
MAX_THREADS = 1 << 20  # this emulator's; hardware admits more
STATIC_SHARED_LIMIT = 48 * 1024
SHARED_LIMIT = {"sm_80": 163 * 1024, "sm_90": 227 * 1024}  # a block's, opted in (CUDA programming guide, table 21)
INSTRUCTION_LIMIT = 50_000
_CONTROL = {"bra": 1, "ret": 0, "bar.sync": 1}  # operands


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
        self.kernel, self.memory, self.block, self.threads = kernel, memory, block[0], grid[0] * block[0]
        static = kernel.dynamic_start if dynamic_shared_bytes else kernel.shared_bytes
        self.shared = SharedMemory(static + dynamic_shared_bytes, self.threads, self.block)
        self.arguments: tuple[int, ...] = ()
        self.all_threads = np.arange(self.threads)
        self.copy_group = np.zeros(self.threads, np.int64)  # of asynchronous copies, by thread
        self.pending: list[PendingCopy] = []
        self.trace: list[int] = []  # executed instructions, by index
        self._check_races = check_races
        self._registers = Registers(kernel, grid[0], block[0])
        self.reader, self.writer = self._registers.reader, self._registers.writer
        self._guards = [self._registers.guard(instruction) for instruction in kernel.code]
        self._targets = [self._check_control(instruction) for instruction in kernel.code]
        self._actions = [None if i.mnemonic in _CONTROL else bind(self, i) for i in kernel.code]

    @property
    def step(self) -> int:
        """Number of the instruction being executed, from 1."""
        return len(self.trace)

    def run(self, arguments: Sequence[int], writable: set[int], limit: int = INSTRUCTION_LIMIT) -> None:
        """Execute one launch with the given parameter values; buffers at ``writable`` addresses may be written.

        Raises ``KernelFinding``, also when more than ``limit`` instructions have been executed.
        """
        expected = len(self.kernel.parameters)
        if len(arguments) != expected:
            message = f"{self.kernel.name}: expected {expected} parameters, found {len(arguments)}"
            raise LaunchError("wrong_parameter_count", message)
        self.arguments = tuple(arguments)
        self.memory.prepare(writable)
        self._reset()
        try:
            with np.errstate(all="ignore"):
                while self._fronts:
                    self._run_first_front(limit)
                    if not self._fronts and self._waiting:
                        self._pass_barrier()
            if not self._returned.all():
                missing = int(np.argmin(self._returned))
                message = "the launch ended before this thread returned; its checks are void"
                self._raise(Fault("lost_threads", message, missing), len(self.kernel.code) - 1)
        finally:
            self.memory.races = None

    def _reset(self) -> None:
        self._registers.reset()
        self.shared.reset()
        self.trace, self.pending = [], []
        self.copy_group.fill(0)
        self._fronts: dict[int, Lanes] = {0: slice(None)}
        self._waiting: dict[int, Lanes] = {}
        self._returned = np.zeros(self.threads, np.bool_)
        if self._check_races:
            granule = 2 if any(i.mnemonic.endswith("16") for i in self.kernel.code) else 4
            for memory in (self.memory, self.shared):
                across = memory is self.memory
                geometry = (self.threads, self.block)
                memory.races = RaceDetector(memory.data.size, granule, geometry, memory.describe, across_blocks=across)

    def _check_control(self, instruction: Instruction) -> int:
        """Check an instruction of control flow; where a branch goes, 0 for everything else."""
        mnemonic, line = instruction.mnemonic, instruction.line
        operands = operands_of(instruction, _CONTROL[mnemonic]) if mnemonic in _CONTROL else ()
        if mnemonic == "bar.sync" and (operands != (Immediate(0),) or instruction.guard):
            raise PtxError("ptx_unknown_instruction", line, "bar.sync: only barrier 0, of all threads, without a guard")
        if mnemonic != "bra":
            return 0
        (target,) = operands
        if not isinstance(target, Symbol) or target.name not in self.kernel.labels:
            raise PtxError("ptx_undeclared", line, "bra: expected a label of this entry")
        return self.kernel.labels[target.name]

    def _run_first_front(self, limit: int) -> None:
        """Run the group at the smallest program counter until it ends, waits or meets the next group."""
        pc = min(self._fronts)
        lanes = self._fronts.pop(pc)
        while pc not in self._fronts:
            if pc >= len(self.kernel.code):
                self._raise(Fault("no_return", "execution runs past the last instruction"), len(self.kernel.code) - 1)
            if len(self.trace) >= limit:
                self._raise_spinning(limit)
            self.trace.append(pc)
            guard, action = self._guards[pc], self._actions[pc]
            try:
                chosen = lanes if guard is None else _choose(lanes, guard(lanes))
                if action and (isinstance(chosen, slice) or chosen.size):
                    action(chosen)
            except Fault as fault:
                self._raise(fault, pc)
            if not action:
                self._part(pc, lanes, chosen)
                return
            pc += 1
        self._join(self._fronts, pc, lanes)

    def _part(self, pc: int, lanes: Lanes, chosen: Lanes) -> None:
        """Send the chosen threads where the control instruction at ``pc`` says, and the others on."""
        mnemonic = self.kernel.code[pc].mnemonic
        if mnemonic == "bra":
            self._join(self._fronts, self._targets[pc], chosen)
        elif mnemonic == "bar.sync":
            self._join(self._waiting, pc, chosen)
        else:
            self._returned[chosen] = True
        if chosen is not lanes:
            self._join(self._fronts, pc + 1, np.setdiff1d(self.all_threads[lanes], chosen, assume_unique=True))

    def _join(self, groups: dict[int, Lanes], pc: int, lanes: Lanes) -> None:
        """Add threads to the group at ``pc``, of those that run or of those that wait."""
        if not isinstance(lanes, slice) and not lanes.size:
            return
        if pc in groups:
            lanes = np.sort(np.concatenate([groups[pc], lanes]))
        whole = not isinstance(lanes, slice) and lanes.size == self.threads
        groups[pc] = slice(None) if whole else lanes

    def _pass_barrier(self) -> None:
        """Every thread waits or has returned; those of one block have to wait at the same instruction."""
        place_of_block: dict[int, int] = {}
        for pc, lanes in self._waiting.items():
            for thread in self.all_threads[lanes]:
                other = place_of_block.setdefault(int(thread) // self.block, pc)
                if other != pc:
                    message = f"others of the block wait at the barrier of line {self.kernel.code[other].line}"
                    self._raise(Fault("divergent_barrier", message, int(thread)), pc)
        for memory in (self.memory, self.shared):
            if memory.races:
                memory.races.meet_blocks(self.step)
        self._fronts, self._waiting = {pc + 1: lanes for pc, lanes in self._waiting.items()}, {}

    def _raise_spinning(self, limit: int) -> NoReturn:
        """Name the backward branch that was executed most."""
        code = self.kernel.code
        counts = Counter(pc for pc in self.trace if code[pc].mnemonic == "bra" and self._targets[pc] <= pc)
        pc, times = max(counts.items(), key=lambda item: item[1], default=(len(code) - 1, 0))
        message = f"still running after {limit} instructions; this branch was executed {times} times"
        self._raise(Fault("instruction_limit", message), pc)

    def _raise(self, fault: Fault, pc: int) -> NoReturn:
        """Turn a fault into a finding with its place in the text."""
        code, other = self.kernel.code, None
        if fault.other:
            kind, thread, step = fault.other
            other = Access(kind, code[self.trace[step - 1]].line, *divmod(thread, self.block))
        raise KernelFinding(fault, self.kernel.name, code[pc].line if code else 1, self.block, other) from None


def _choose(lanes: Lanes, predicate: Array) -> Lanes:
    """The lanes whose predicate is true; the very same object when that is all of them."""
    if predicate.all():
        return lanes
    return np.flatnonzero(predicate) if isinstance(lanes, slice) else lanes[predicate]


def _check_geometry(kernel: Kernel, grid: Sequence[int], block: Sequence[int], dynamic: int) -> None:
    def require(fits: object, code: str, message: str) -> None:
        if not fits:
            raise LaunchError(code, f"{kernel.name}: {message}")

    geometry, sizes = "bad_geometry", [*grid, *block]
    one_dimension = len(grid) == len(block) == 3 and sizes[1:3] + sizes[4:] == [1] * 4
    require(one_dimension, geometry, f"grid, block: expected [x, 1, 1] each, found {list(grid)}, {list(block)}")
    require(0 < block[0] <= MAX_BLOCK, geometry, f"block: expected 1 to {MAX_BLOCK} threads, found {block[0]}")
    require(block[0] % WARP == 0, geometry, f"block: expected whole warps of {WARP}, found {block[0]} threads")
    blocks = f"1 or more blocks and at most {MAX_THREADS} threads here"
    require(0 < grid[0] <= MAX_THREADS // block[0], geometry, f"grid: expected {blocks}, found {grid[0]} blocks")
    required = (kernel.block_required or []) + [1] * 3
    same = not kernel.block_required or required[:3] == sizes[3:]
    require(same, geometry, f"block: expected .reqntid {kernel.block_required}, found {list(block)}")
    shared, static, limit = "shared_memory", kernel.shared_bytes, SHARED_LIMIT[kernel.target]
    declared = dynamic == 0 or (dynamic > 0 and kernel.dynamic_shared)
    require(declared, shared, f"dynamic shared memory: expected 0 bytes as the kernel declares none, found {dynamic}")
    require(
        static <= STATIC_SHARED_LIMIT, shared, f"static: expected at most {STATIC_SHARED_LIMIT} bytes, found {static}"
    )
    require(static + dynamic <= limit, shared, f"expected at most {limit} bytes, found {static} + {dynamic}")
