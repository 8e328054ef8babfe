"""Where things are, from environment variables (see docs/operators.md); read when asked, never at import."""

from __future__ import annotations

import os
import sys
from pathlib import Path

RESULTS_CONNECTION = "kernel_nightly_results"


def root() -> Path:
    """Repository root, the working folder of the GPU programs: ``NIGHTLY_ROOT``."""
    return Path(os.environ.get("NIGHTLY_ROOT") or Path(__file__).resolve().parents[2])


def gpu_python() -> str:
    """Interpreter of the GPU programs' environment: ``NIGHTLY_GPU_PYTHON``, else this one."""
    return os.environ.get("NIGHTLY_GPU_PYTHON") or sys.executable


def runs() -> Path:
    """Folder with one folder a run: ``NIGHTLY_RUNS``."""
    return _folder("NIGHTLY_RUNS")


def records() -> Path:
    """Folder of the kept run records: ``NIGHTLY_RECORDS``."""
    return _folder("NIGHTLY_RECORDS")


def payload_folders() -> list[Path]:
    """Folders in which named sets of draws may lie; ``NIGHTLY_PAYLOADS`` comes before what ships with the code."""
    own = os.environ.get("NIGHTLY_PAYLOADS")
    return [*([Path(own)] if own else []), root() / "gpu_tasks" / "payload"]


def timezone() -> str:
    """Time zone of the schedule: ``NIGHTLY_TIMEZONE``, else UTC."""
    return os.environ.get("NIGHTLY_TIMEZONE") or "UTC"


def schedule() -> str:
    """Cron line of the night: ``NIGHTLY_SCHEDULE``, else 02:00."""
    return os.environ.get("NIGHTLY_SCHEDULE") or "0 2 * * *"


def gpu_pool() -> str:
    """Airflow pool with one slot for each GPU: ``NIGHTLY_GPU_POOL``."""
    return os.environ.get("NIGHTLY_GPU_POOL") or "gpu"


def _folder(variable: str) -> Path:
    value = os.environ.get(variable)
    if not value:
        raise RuntimeError(f"{variable}: expected a folder, found nothing; the launcher sets it")
    return Path(value)
