"""What a kernel consists of, and a modelled estimate of its longest chain of dependent instructions.

The instruction mix comes from the text, registers and spills from ``ptxas`` where it is found, and the critical path
from the model in ``gpu_tasks.devices.emulated.critical_path``: it is for comparing two versions of a kernel.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from gpu_tasks.devices.emulated.critical_path import run_modelled_draw
from gpu_tasks.devices.emulated.device import EmulatedQda
from gpu_tasks.devices.manifest import COMMITTED, load_kernels, read_manifest
from gpu_tasks.workloads.qda.workload import Qda

A100_BOOST_GHZ = 1.41


def explain(manifest: Path = COMMITTED) -> str:
    """A report on every variant of a manifest, as text."""
    return "\n".join(_explain_variant(manifest, name) for name in read_manifest(manifest).variants)


def _explain_variant(manifest: Path, name: str) -> str:
    kernels = load_kernels(manifest, name)
    device = EmulatedQda(Qda(), kernels, check_races=False)
    cycles_of = run_modelled_draw(device)
    lines = [f"{name}: sha256 {kernels.ptx_sha256}"]
    launches = zip(kernels.launches, kernels.texts, device.machines, cycles_of, strict=True)
    for launch, text, machine, cycles in launches:
        mix = Counter(instruction.mnemonic.partition(".")[0] for instruction in machine.kernel.code)
        shared = f"{launch.shared_static_bytes} bytes static, {launch.shared_dynamic_bytes} dynamic"
        lines += [
            f"  {launch.entry} ({launch.grid[0]} x {launch.block[0]}), {launch.ptx}: {mix.total()} instructions",
            "    mix: " + ", ".join(f"{word} {count}" for word, count in mix.most_common()),
            f"    shared memory: {shared}",
            *(f"    {target}: {_ptxas(text, target)}" for target in ("sm_80", "sm_90")),
            f"    critical path (modelled): {cycles} cycles, {machine.step} steps executed",
        ]
    total = sum(cycles_of)
    microseconds = total / A100_BOOST_GHZ / 1000
    lines.append(f"  all launches (modelled, without launch gaps): {total} cycles, {microseconds:.2f} us at 1.41 GHz")
    return "\n".join(lines)


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
