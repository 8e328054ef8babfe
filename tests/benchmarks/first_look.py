"""How long an engineer waits: from a saved kernel source to the verdict of the first look, each time another kernel.

``python -m tests.benchmarks.first_look`` makes a scratch checkout, changes the source anew for each run, and prints the
median, the shortest and the longest of ``./nightly try`` without a stack, and beside a running one with ``--running``.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
import time
from pathlib import Path

from tests.support.scratch import Scratch

SOURCE = "kernels/class_blocks.py"
AT = "    stage_query_word(queries, word, at)\n"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--running", action="store_true", help="beside a running stack, which is started for it")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kernel-nightly-first-look-", dir="/tmp") as folder:
        place = Path(folder)
        place.chmod(0o755)  # PostgreSQL's user passes through it
        scratch = Scratch(place)
        scratch.home.mkdir()
        if arguments.running:
            assert scratch.nightly("up", "--schedule", "0 3 1 1 *").returncode == 0
        try:
            seconds, worked = _measured(scratch, arguments.runs)
        finally:
            if arguments.running:
                scratch.nightly("down", "--force")
    where = "beside a running stack" if arguments.running else "without a stack"
    median = statistics.median(seconds)
    print(f"{where}: median {median:.1f} s, {min(seconds):.1f} to {max(seconds):.1f} s, {len(seconds)} runs")
    print(f"{statistics.median(worked):.1f} s of CPU on {os.cpu_count()} cores; load average {os.getloadavg()[0]:.1f}")


def _measured(scratch: Scratch, runs: int) -> tuple[list[float], list[float]]:
    before = AT
    seconds, worked = [], []
    for number in range(runs + 1):  # the first one fills the caches of the disk
        after = f"    move({number})\n{AT}"
        scratch.replace(SOURCE, before, after)
        before = after
        began, used = time.monotonic(), _cpu_s()
        tried = scratch.nightly("try", SOURCE)
        assert tried.returncode == 0, tried.stderr
        seconds.append(time.monotonic() - began)
        worked.append(_cpu_s() - used)
    return seconds[1:], worked[1:]


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
