"""A modelled estimate of a kernel's longest chain of dependent instructions, for comparing two versions of it.

A model, not a measurement: the instructions that the emulator executes on a seeded draw are walked in order as one
in-order warp; each issues one cycle after the one before or when its operands are ready, whichever is later. Latencies
are in cycles, rounded from Abdelkhalik et al., Demystifying the Nvidia Ampere Architecture through Microbenchmarking
(2022); global memory counts as an L2 hit. Launch overheads, bank conflicts and competition between warps are not in
the model.
"""

from __future__ import annotations

import re

import numpy as np

from gpu_tasks.devices.emulated.device import EmulatedQda
from gpu_tasks.devices.emulated.machine import Machine
from gpu_tasks.devices.emulated.parser import Address, Instruction, Register, Vector
from gpu_tasks.float32 import Float32Array
from gpu_tasks.workloads.base import Labels

SEED = 20261201
LATENCY = [
    (re.compile(pattern), cycles)
    for pattern, cycles in (
        (r"ld\.global|cp\.async\.c[ag]", 200),
        (r"ld\.shared", 23),
        (r"(rcp|div|sqrt)\.rn", 40),
        (r"lg2\.approx", 18),
        (r"shfl|vote|redux", 23),
        (r"bar\.sync", 30),
        (r"bar\.warp", 10),
        (r"bra|ret", 10),
        (r"mul|mad", 5),
        (r"", 4),
    )
]
_STORES = ("st.", "cp.async", "bra", "ret", "bar")  # instructions whose first operand is not a result


def run_modelled_draw(device: EmulatedQda) -> list[int]:
    """Run the draw that the model is defined on; modelled cycles of each launch. Raises what ``eager`` raises."""
    device.load(*seeded_draw())
    device.eager()
    return [critical_path(machine) for machine in device.machines]


def seeded_draw() -> tuple[Float32Array, Labels, Float32Array]:
    """Samples (1000, 9), labels (1000,) and queries (1000, 9) that stay the same whatever draws a payload has."""
    rng = np.random.default_rng(SEED)
    labels = rng.integers(0, 10, 1000)
    x = (rng.normal(size=(1000, 9)) + labels[:, None] * 0.2).astype(np.float32)
    return x, labels, rng.normal(size=(1000, 9)).astype(np.float32)


def critical_path(machine: Machine) -> int:
    """Cycles (modelled) from the first issue to the last result of the machine's latest run."""
    ready: dict[str, int] = {}
    now = end = 0
    for index in machine.trace:
        instruction = machine.kernel.code[index]
        results, sources = _registers_of(instruction)
        now = max([now + 1, *(ready.get(name, 0) for name in sources)])
        done = now + next(cycles for pattern, cycles in LATENCY if pattern.match(instruction.mnemonic))
        ready.update(dict.fromkeys(results, done))
        if instruction.mnemonic.startswith(("bar", "bra", "cp.async.wait")):
            now = done  # nothing after it issues before
        end = max(end, done)
    return end


def _registers_of(instruction: Instruction) -> tuple[list[str], list[str]]:
    names: list[list[str]] = []
    for operand in instruction.operands:
        if isinstance(operand, Register):
            names.append([operand.name])
        elif isinstance(operand, Vector):
            names.append([register.name for register in operand.registers])
        elif isinstance(operand, Address) and isinstance(operand.base, Register):
            names.append([operand.base.name])
        else:
            names.append([])
    guard = [instruction.guard[0]] if instruction.guard else []
    has_result = bool(names) and not instruction.mnemonic.startswith(_STORES)
    results = names[0] if has_result else []
    # A guarded instruction leaves its destination as it was where the guard is false: it waits for that, too.
    sources = [name for operand in names[has_result:] for name in operand] + guard + (results if guard else [])
    return results, sources
