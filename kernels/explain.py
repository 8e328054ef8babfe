"""What a kernel consists of, and a modelled estimate of its longest chain of dependent instructions.

The instruction mix comes from the text, registers and spills from ``ptxas`` where it is found, and the critical path
from a model, not from a measurement: the instructions that the emulator executes on a seeded draw are walked in
order as one in-order warp; each issues one cycle after the one before or when its operands are ready, whichever is
later. Latencies are in cycles, rounded from Abdelkhalik et al., Demystifying the Nvidia Ampere Architecture
through Microbenchmarking (2022); global memory counts as an L2 hit. Launch overheads, bank conflicts and competition
between warps are not in the model: it is for comparing two versions of a kernel.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from gpu_tasks.devices.emulated.device import EmulatedQda
from gpu_tasks.devices.emulated.machine import Machine
from gpu_tasks.devices.emulated.parser import Address, Instruction, Register, Vector
from gpu_tasks.devices.manifest import COMMITTED, load_kernels, read_manifest
from gpu_tasks.workloads.qda.workload import Qda

A100_BOOST_GHZ = 1.41
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


def explain(manifest: Path = COMMITTED) -> str:
    """A report on every variant of a manifest, as text."""
    return "\n".join(_explain_variant(manifest, name) for name in read_manifest(manifest).variants)


def _explain_variant(manifest: Path, name: str) -> str:
    kernels = load_kernels(manifest, name)
    device = EmulatedQda(Qda(), kernels, check_races=False)
    device.load(*_seeded_draw())
    device.eager()
    lines = [f"{name}: sha256 {kernels.ptx_sha256}"]
    total = 0
    for launch, text, machine in zip(kernels.launches, kernels.texts, device.machines, strict=True):
        mix = Counter(instruction.mnemonic.partition(".")[0] for instruction in machine.kernel.code)
        cycles = critical_path(machine)
        total += cycles
        shared = f"{launch.shared_static_bytes} bytes static, {launch.shared_dynamic_bytes} dynamic"
        lines += [
            f"  {launch.entry} ({launch.grid[0]} x {launch.block[0]}), {launch.ptx}: {mix.total()} instructions",
            "    mix: " + ", ".join(f"{word} {count}" for word, count in mix.most_common()),
            f"    shared memory: {shared}",
            *(f"    {target}: {_ptxas(text, target)}" for target in ("sm_80", "sm_90")),
            f"    critical path (modelled): {cycles} cycles, {machine.step} steps executed",
        ]
    microseconds = total / A100_BOOST_GHZ / 1000
    lines.append(f"  all launches (modelled, without launch gaps): {total} cycles, {microseconds:.2f} us at 1.41 GHz")
    return "\n".join(lines)


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


def _ptxas(text: str, target: str) -> str:
    program = shutil.which("ptxas")
    if program is None:
        return "registers and spills unknown, as ptxas is not installed"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(text)
        command = [program, f"-arch={target}", "-v", str(source), "-o", str(Path(folder) / "kernel.cubin")]
        report = subprocess.run(command, capture_output=True, text=True, check=False)
    registers = re.search(r"Used (\d+) registers", report.stderr)
    spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", report.stderr)
    if not registers or not spills:
        return f"refused by ptxas: {report.stderr.strip().splitlines()[0]}"
    return f"{registers[1]} registers, {spills[1]} bytes of spill stores, {spills[2]} of spill loads"


def _seeded_draw() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(20261201)
    labels = rng.integers(0, 10, 1000)
    x = (rng.normal(size=(1000, 9)) + labels[:, None] * 0.2).astype(np.float32)
    return x, labels, rng.normal(size=(1000, 9)).astype(np.float32)
