"""How long a night takes and where the time goes: `python -m tests.benchmarks.night [--runs 3]`.

Makes a fresh clone and a fresh home for each cold and each warm start (cold: empty package caches), then runs the
night again in the same home. Prints medians as a Markdown table. The part that is GPU work is what the run's own
records say: the validations and the measurement windows.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PHASES = ("environments", "PostgreSQL", "Airflow", "queue", "verify", "validate", "measure", "load and judge", "stop")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="how often each kind is measured (default 3)")
    parser.add_argument("--python", default=sys.executable, help="system interpreter that starts ./nightly")
    arguments = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {"cold": [], "warm": [], "second run": []}
    for _ in range(arguments.runs):
        for kind in ("cold", "warm"):
            with tempfile.TemporaryDirectory(prefix="kernel-nightly-bench-", dir="/tmp") as folder:
                Path(folder).chmod(0o755)
                found[kind].append(_night(arguments.python, Path(folder), cold=kind == "cold"))
                if kind == "warm":
                    found["second run"].append(_night(arguments.python, Path(folder), cold=False))
    print(f"| seconds, medians of {arguments.runs} | {' | '.join(found)} |\n|---|{'---:|' * len(found)}")
    for name in ("whole", *PHASES, "GPU work"):
        medians = [statistics.median(run[name] for run in runs) for runs in found.values()]
        print(f"| {name} | {' | '.join(f'{value:.1f}' for value in medians)} |")
    return 0


def _night(python: str, folder: Path, *, cold: bool) -> dict[str, float]:
    clone, home = folder / "clone", folder / "home"
    environment = dict(os.environ) | {"NIGHTLY_HOME": str(home)}
    if cold:
        environment |= {"UV_CACHE_DIR": str(folder / "cache"), "PIP_NO_CACHE_DIR": "1"}
    started = time.monotonic()
    if not clone.exists():
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    process = subprocess.Popen(
        [python, str(clone / "nightly"), "run", "--json"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None and process.stdout is not None
    marks = {"start": started}
    for line in process.stderr:
        _mark(marks, line, time.monotonic())
    result = json.loads(process.stdout.read().splitlines()[-1])
    ended = time.monotonic()
    if process.wait() != 0:
        raise SystemExit(f"the night ended with {process.returncode}")
    if cold:
        shutil.rmtree(folder / "cache")
    return _phases(marks, ended) | {"whole": ended - started, "GPU work": _gpu_work(home, result["run_id"])}


def _mark(marks: dict[str, float], line: str, now: float) -> None:
    """Note when each phase was last heard of."""
    for text, name in (
        ("starting PostgreSQL", "environments"),
        ("starting Airflow", "PostgreSQL"),
        ("ready after", "Airflow"),
        ("  request", "queue"),
        ("  verify_", "verify"),
        ("  validate", "validate"),
        ("  measure", "measure"),
        ("verdict:", "load and judge"),
    ):
        if text in line:
            marks[name] = now


def _phases(marks: dict[str, float], ended: float) -> dict[str, float]:
    edges = [marks["start"], *(marks[name] for name in PHASES[:-1]), ended]
    return {name: after - before for name, before, after in zip(PHASES, edges, edges[1:], strict=False)}


def _gpu_work(home: Path, run_id: str) -> float:
    record = json.loads((home / "records" / f"{run_id}.json").read_text())
    windows = [r["measurement_end"]["time_s"] - r["measurement_start"]["time_s"] for r in record["rounds"]]
    return sum(v["duration_s"] for v in record["validations"]) + sum(windows)


if __name__ == "__main__":
    sys.exit(main())
