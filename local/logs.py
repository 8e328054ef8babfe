"""Logs: of the processes of the stack, and of each task of a run."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from gpu_tasks.records import Outcome
from local.errors import Usage
from local.paths import Home


def show_logs(home: Home, name: str | None, task: str | None) -> int:
    """Print one log, or the list of what there is."""
    files = {path.stem: path for path in sorted(home.logs.glob("*.log"))}
    files["postgres"] = home.postgres / "server.log"
    runs = {path.name.removeprefix("run_id="): path for path in _run_folders(home)}
    if name is None:
        print("\n".join(f"{stem:<15} {path}" for stem, path in files.items() if path.exists()))
        print("\n".join(f"run {run_id}" for run_id in list(runs)[-20:]) or "no run has logs yet")
        return Outcome.OK.exit_code
    if name in files and files[name].exists():
        sys.stdout.write(files[name].read_text(errors="replace"))
        return Outcome.OK.exit_code
    if name not in runs:
        raise Usage(f"logs {name}: expected a run or one of {', '.join(files)}; `nightly logs` lists them")
    found = [path for path in sorted(runs[name].rglob("*.log")) if task is None or _task_of(path) == task]
    if not found:
        raise Usage(f"logs {name} {task or ''}: no task of that name has a log")
    for path in found:
        print(f"== {path.relative_to(runs[name])}")
        print("\n".join(_lines(path)))
    return Outcome.OK.exit_code


def _run_folders(home: Home) -> list[Path]:
    return sorted((home.airflow / "logs").glob("dag_id=*/run_id=*"), key=lambda path: path.stat().st_mtime)


def _task_of(path: Path) -> str:
    return next(part.removeprefix("task_id=") for part in path.parts if part.startswith("task_id="))


def _lines(path: Path) -> Iterator[str]:
    """Airflow writes its task logs as JSON lines: time, level, message."""
    for line in path.read_text(errors="replace").splitlines():
        try:
            item = json.loads(line)
            yield f"{item['timestamp']} {item['level']:<7} {item['event']}"
        except (ValueError, KeyError, TypeError):
            yield line
