"""The reversible learner beside the same network with ordinary autograd, in torch eager and in torch.compile: time of a
task on the CPU, and memory over the depth. Needs torch, and a C++ compiler for torch.compile.

    python -m tests.benchmarks.learner --out docs/learner/benchmark.json

Memory and times are measured in fresh processes with one thread. ``saved``: bytes that a forward pass on all 10,000
samples keeps for its backward pass, a sample. ``peak``: growth of the resident peak over one such training step; that
process gives freed memory back at once (``MALLOC_MMAP_THRESHOLD_``), so that an earlier step hides nothing, and is slow
for it. ``task``: median time on the CPU of whole tasks with batches of 128, of one thread and so the same on a machine
that is shared; torch.compile compiles the training and not the prediction, and no time here has the compiling in it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from gpu_tasks.devices.host import cpu_name
from gpu_tasks.records import utc_now, write_text_atomically
from tests.benchmarks.learner_contestants import KINDS

ROOT = Path(__file__).resolve().parents[2]
DEPTHS = (1, 2, 4, 8, 16, 32)
TIMED_DEPTHS = (2, 8, 32)
REPEATS = 7
ONE_THREAD = {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
MIB = 1024 * 1024


def main() -> None:
    """Measure all, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="file for the figures")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="contestants (default: all)")
    arguments = parser.parse_args()
    print(f"{cpu_name()}, Python {platform.python_version()}, torch {torch.__version__}, one thread")
    print(f"{'':12}{'depth':>6}{'task ms':>10}{'saved B/sample':>16}{'peak MiB':>10}")
    rows = []
    for kind in arguments.kinds:
        for depth in TIMED_DEPTHS if kind == "compiled" else DEPTHS:
            row = measured(kind, depth, 0, ONE_THREAD | GIVE_BACK)
            if depth in TIMED_DEPTHS:
                row |= measured(kind, depth, REPEATS, ONE_THREAD)
            time = f"{row['task_cpu_ms']:10.0f}" if "task_cpu_ms" in row else f"{'':10}"
            saved, peak = row["saved_bytes_per_sample"], row["peak_bytes"] / MIB
            print(f"{kind:12}{depth:6}{time}{saved:16.0f}{peak:10.1f}", flush=True)
            rows.append(row)
    content = {
        "date": utc_now(),
        "cpu": cpu_name(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "repeats": REPEATS,
        "rows": rows,
    }
    write_text_atomically(json.dumps(content, indent=1) + "\n", arguments.out)


def measured(kind: str, depth: int, repeats: int, settings: dict[str, str]) -> Any:
    """The figures of one contestant at one depth, in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.learner_contestants", kind, str(depth), str(repeats)]
    result = subprocess.run(command, cwd=ROOT, env=os.environ | settings, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{kind}, depth {depth}: {result.stderr}")
    return json.loads(result.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
