"""What Nsight Compute says of a task's kernels, where it is installed and a profile is asked for.

A process of its own runs the task under ``ncu``: profiling replays every kernel, so nothing else is measured in it.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from argparse import Namespace
from collections import defaultdict
from collections.abc import Mapping, Sequence

from gpu_tasks.records import KernelProfile, ProfiledKernel, Reason

PROFILER = "ncu"
LAUNCHES = 200
LONGEST_S = 600.0
METRICS = DURATION, DRAM, L2_HIT = "gpu__time_duration.sum", "dram__bytes.sum", "lts__t_sector_hit_rate.pct"
NOT_ASKED = Reason("no_profile_asked", "--profile was not given")
NOT_INSTALLED = Reason("profiler_not_installed", "Nsight Compute: not installed (no ncu on the PATH)")

UNITS: Mapping[str, float] = {
    **{"nsecond": 1.0, "ns": 1.0, "usecond": 1e3, "us": 1e3, "msecond": 1e6, "ms": 1e6, "second": 1e9, "s": 1e9},
    **{"byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "%": 1.0, "": 1.0},
}
"""What one of a unit of ncu's is in ns, bytes or percent."""


def profiled(arguments: Namespace, device_kind: str) -> KernelProfile | Reason:
    """The profile of the draw's task, its first kernels; or why there is none, which is no failure of the task."""
    if not arguments.profile:
        return NOT_ASKED
    if device_kind != "cuda":
        return Reason("no_profile_here", f"--profile: expected --device cuda with it, found {device_kind}")
    profiler = shutil.which(PROFILER)
    if profiler is None:
        return NOT_INSTALLED
    task = ["memory", "--workload", arguments.workload, "--payload", arguments.payload, "--draw", str(arguments.draw)]
    options = ["--csv", "--page", "raw", "--print-units", "base", "--launch-count", str(LAUNCHES)]
    options += ["--metrics", ",".join(METRICS)]
    command = [profiler, *options, sys.executable, "-m", "gpu_tasks", *task, "--device", "cuda"]
    try:
        version = _said([profiler, "--version"]).splitlines()[-1]
        return kernel_profile(_said(command), version)
    except (OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
        line = " ".join(str(error).split()) or type(error).__name__
        return Reason("profile_failed", f"{PROFILER}: expected a profile, found {line[-300:]}")


def kernel_profile(text: str, version: str) -> KernelProfile:
    """From the raw page as CSV: a line of names, one of units, one a launch; raises ``ValueError`` on another text."""
    lines = [line for line in text[max(text.find('"ID",'), 0) :].splitlines() if line.startswith('"')]
    names, units, *launches = list(csv.reader(lines)) if len(lines) > 1 else [[], []]
    if "Kernel Name" not in names:
        raise ValueError(f"expected a table with a Kernel Name, found {text.strip()[-200:]!r}")
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    for row in launches:
        cells = dict(zip(names, zip(row, units, strict=False), strict=False))
        found[cells["Kernel Name"][0]].append(
            {metric: _number(*cells[metric]) for metric in cells if metric in METRICS}
        )
    kernels = [
        ProfiledKernel(name, len(rows), _sum(rows, DURATION), _sum(rows, DRAM), _mean(rows, L2_HIT))
        for name, rows in found.items()
    ]
    return KernelProfile(version, len(launches), sorted(kernels, key=lambda k: -(k.duration_ns or 0.0)))


def _number(text: str, unit: str) -> float:
    return float(text.replace(",", "")) * UNITS[unit]


def _sum(rows: Sequence[Mapping[str, float]], metric: str) -> float | None:
    values = [row[metric] for row in rows if metric in row]
    return sum(values) if len(values) == len(rows) else None


def _mean(rows: Sequence[Mapping[str, float]], metric: str) -> float | None:
    total = _sum(rows, metric)
    return None if total is None else total / len(rows)


def _said(command: Sequence[str]) -> str:
    result = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    if result.returncode != 0:
        raise ValueError(result.stderr.strip() or result.stdout.strip() or f"exit status {result.returncode}")
    return result.stdout
