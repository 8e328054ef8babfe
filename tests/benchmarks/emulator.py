"""How fast the emulator is: milliseconds a draw with and without race checks, eleven draws in one process, and the
same scoring kernel in numba's CUDA simulator.

    python -m tests.benchmarks.emulator [--numba PYTHON]

``PYTHON`` is an interpreter that has numba (this one by default); without numba that row is left out.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

from gpu_tasks.devices.emulated.device import EmulatedQda
from gpu_tasks.devices.host import cpu_name
from gpu_tasks.devices.manifest import load_kernels
from gpu_tasks.workloads.qda.workload import Qda

ROOT = Path(__file__).resolve().parents[2]
DRAWS = ROOT / "gpu_tasks" / "payload" / "original"
SIMULATED = Path(__file__).with_name("numba_score.py")
REPEATS = 5
DRAW_REPEATS = 25  # of one draw, which is short beside what else a shared machine does
START_AND_VALIDATE = """
from gpu_tasks.devices.emulated.device import EmulatedQda
from gpu_tasks.devices.manifest import load_kernels
from gpu_tasks.workloads.qda.workload import Qda
import numpy as np, sys
device = EmulatedQda(Qda(), load_kernels(variant=sys.argv[2]), check_races=sys.argv[3] == "races")
right = 0
for index in range(11):
    with np.load(f"{sys.argv[1]}/draw-{index:02}.npz") as draw:
        device.load(draw["x"], draw["labels"], draw["q"])
        device.poison_scratch()
        device.eager()
        right += int((device.predictions() == draw["frozen_predictions"]).sum())
assert right == 11000, right
"""


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--numba", default=sys.executable, help="interpreter that has numba")
    arguments = parser.parse_args()
    print(f"{cpu_name()}, Python {platform.python_version()}, numpy {np.__version__}")
    print(f"medians of {DRAW_REPEATS} runs of one draw and of {REPEATS} processes")
    print(f"{'variant':14}{'races':>8}{'ms a draw':>12}{'11 draws, process s':>22}")
    for variant in ("class_blocks", "record", "fused"):
        for check_races in (False, True):
            one, all_draws = _milliseconds_a_draw(variant, check_races), _seconds_of_process(variant, check_races)
            print(f"{variant:14}{'yes' if check_races else 'no':>8}{one:12.1f}{all_draws:22.2f}")
    _compare_with_simulator(arguments.numba)


def _device(variant: str, check_races: bool) -> EmulatedQda:
    device = EmulatedQda(Qda(), load_kernels(variant=variant), check_races=check_races)
    with np.load(DRAWS / "draw-00.npz") as draw:
        device.load(draw["x"], draw["labels"], draw["q"])
    device.eager()
    return device


def _milliseconds_a_draw(variant: str, check_races: bool) -> float:
    device = _device(variant, check_races)
    times = []
    for _ in range(DRAW_REPEATS):
        device.poison_scratch()
        start = perf_counter()
        device.eager()
        times.append(perf_counter() - start)
    return 1000 * statistics.median(times)


def _seconds_of_process(variant: str, check_races: bool) -> float:
    """From the start of the interpreter to its end: imports, parsing, eleven draws, comparison."""
    times = []
    command = [sys.executable, "-c", START_AND_VALIDATE, str(DRAWS), variant, "races" if check_races else "none"]
    for _ in range(REPEATS):
        start = perf_counter()
        subprocess.run(command, check=True, cwd=ROOT)
        times.append(perf_counter() - start)
    return statistics.median(times)


def _compare_with_simulator(interpreter: str) -> None:
    """Time ``score`` of class_blocks here and the same algorithm in numba's simulator, on the same trained classes."""
    device = _device("class_blocks", True)
    seconds = {}
    for check_races in (False, True):
        machine = _device("class_blocks", check_races).machines[1]
        writable = {machine.arguments[2]}
        times = []
        for _ in range(REPEATS):
            start = perf_counter()
            machine.run(machine.arguments, writable)
            times.append(perf_counter() - start)
        seconds[check_races] = statistics.median(times)
    memory = device.machines[1].memory
    buffers = {buffer.name: buffer for buffer in memory.buffers}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "score.npz"
        np.savez(
            path,
            model=memory.copy_out(buffers["model"], np.float32)[0].reshape(10, 64),
            q=memory.copy_out(buffers["q"], np.float32)[0].reshape(1000, 9),
            predictions=device.predictions(),
        )
        result = subprocess.run([interpreter, str(SIMULATED), str(path)], capture_output=True, text=True, check=False)
    if result.returncode:
        print(f"numba's CUDA simulator: not measured ({result.stderr.strip().splitlines()[-1]})")
        return
    simulated = float(result.stdout)
    print(f"score (32 x 320) of class_blocks, ms: numba's CUDA simulator {1000 * simulated:.0f}")
    for check_races, here in seconds.items():
        checks = "with" if check_races else "without"
        print(f"  emulated {checks} race checks {1000 * here:.1f}: {simulated / here:.0f} times faster")


if __name__ == "__main__":
    main()
