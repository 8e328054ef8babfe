"""Where things are, from environment variables (see docs/operators.md); read when asked, never at import."""

from __future__ import annotations

import os
import sys
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo


def root() -> Path:
    """Repository root, the working folder of the GPU programs: ``NIGHTLY_ROOT``."""
    return Path(os.environ.get("NIGHTLY_ROOT") or Path(__file__).resolve().parents[2])


def gpu_python(workload: str = "") -> str:
    """Interpreter of the GPU programs of a workload: ``NIGHTLY_GPU_PYTHON``, else this one."""
    return _of_workload("NIGHTLY_GPU_PYTHON", workload) or sys.executable


def gpu_environment(workload: str = "") -> str:
    """Environment that a workload's ``provision`` makes or repairs: ``NIGHTLY_GPU_ENVIRONMENT``; empty: none."""
    return _of_workload("NIGHTLY_GPU_ENVIRONMENT", workload)


def _of_workload(variable: str, workload: str) -> str:
    """A variable of one workload, ``NIGHTLY_GPU_PYTHON_LEARNER`` say, else that of all."""
    return os.environ.get(f"{variable}_{workload.upper()}") or os.environ.get(variable) or ""


def runs() -> Path:
    """Folder with one folder a run: ``NIGHTLY_RUNS``."""
    return _folder("NIGHTLY_RUNS")


def records() -> Path:
    """Folder of the kept run records: ``NIGHTLY_RECORDS``."""
    return _folder("NIGHTLY_RECORDS")


def candidates() -> Path:
    """Folder of the bundles of kernels that were tried: ``NIGHTLY_CANDIDATES``."""
    return _folder("NIGHTLY_CANDIDATES")


def payload_folders() -> list[Path]:
    """Folders in which named sets of draws may lie: ``NIGHTLY_PAYLOADS``, and last the one that ships with the code."""
    own = os.environ.get("NIGHTLY_PAYLOADS")
    return [*([Path(own)] if own else []), root() / "gpu_tasks" / "payload"]


def timezone() -> str:
    """Time zone of the schedule: ``NIGHTLY_TIMEZONE``, else UTC."""
    return os.environ.get("NIGHTLY_TIMEZONE") or "UTC"


def schedule() -> str | None:
    """Cron line of the night: ``NIGHTLY_SCHEDULE``, else 02:00; None for "none": then only runs asked for."""
    line = os.environ.get("NIGHTLY_SCHEDULE") or "0 2 * * *"
    return None if line == "none" else line


def scheduled_workloads() -> str | None:
    """Names of the workloads whose nights are scheduled, with commas: ``NIGHTLY_WORKLOADS``; None: the default."""
    return os.environ.get("NIGHTLY_WORKLOADS") or None


def start_date() -> datetime:
    """First moment for which nights are scheduled: ``NIGHTLY_START_DATE`` (ISO 8601), else the start of 2026.

    Airflow makes up for the latest missed night when a DAG is switched on; a start in the recent past keeps it from
    running one for a night before the installation existed.
    """
    text = os.environ.get("NIGHTLY_START_DATE") or "2026-01-01T00:00:00+00:00"
    return datetime.fromisoformat(text).astimezone(ZoneInfo(timezone()))


def schedule_file() -> Path | None:
    """File with the plan of the nights, which the launcher writes: ``NIGHTLY_SCHEDULE_FILE``; None: there is none.

    It says what is planned now; the variables above say what was when the process began.
    """
    value = os.environ.get("NIGHTLY_SCHEDULE_FILE")
    return Path(value) if value else None


def deadline_minutes() -> int:
    """Minutes after its planned start by which a night must have a result: ``NIGHTLY_DEADLINE_MINUTES``, else 180."""
    return int(os.environ.get("NIGHTLY_DEADLINE_MINUTES") or 180)


def gpu_pool() -> str:
    """Airflow pool with one slot for each GPU: ``NIGHTLY_GPU_POOL``."""
    return os.environ.get("NIGHTLY_GPU_POOL") or "gpu"


def _folder(variable: str) -> Path:
    value = os.environ.get(variable)
    if not value:
        raise RuntimeError(f"{variable}: expected a folder, found nothing; the launcher sets it")
    return Path(value)
