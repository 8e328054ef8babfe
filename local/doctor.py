"""``nightly doctor``: what this machine has and lacks, without changing anything."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from gpu_tasks.records import Outcome
from local import environments
from local.errors import LauncherError
from local.locks import FileLock
from local.paths import Home
from local.postgres import server_account
from local.workloads import payload_is_there, scheduled
from regression.nights.workloads import WORKLOADS

NEEDED_BYTES = 3 * 1024**3


def examine(home: Home) -> int:
    """Print one line per finding; exit 0 when nothing that is needed is missing, else 5."""
    checks: list[tuple[str, Callable[[Home], tuple[str, str]]]] = [
        ("python", _python),
        ("pip", _pip),
        ("system", _system),
        ("home", _home),
        ("disk", _disk),
        ("server user", _server_user),
        ("environments", _environments),
        ("workloads", _workloads),
        ("gpu", _gpu),
        ("stack", _stack),
    ]
    failed = False
    for name, check in checks:
        level, text = check(home)
        failed |= level == "fail"
        print(f"{level:<5} {name:<13} {text}")
    return (Outcome.INFRASTRUCTURE_FAILURE if failed else Outcome.OK).exit_code


def _python(_: Home) -> tuple[str, str]:
    return "ok", f"{platform.python_version()} at {sys.executable}"


def _pip(_: Home) -> tuple[str, str]:
    if importlib.util.find_spec("pip"):
        return "ok", "there"
    return "fail", "python -m pip does not work; install your system's pip package"


def _system(_: Home) -> tuple[str, str]:
    text = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return ("ok" if Path("/proc/self/environ").exists() else "fail"), text


def _home(home: Home) -> tuple[str, str]:
    place = home.folder
    while not place.exists():
        place = place.parent
    if not os.access(place, os.W_OK):
        return "fail", f"{place} is not writable; set NIGHTLY_HOME"
    return "ok", str(home.folder)


def _disk(home: Home) -> tuple[str, str]:
    place = home.folder
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    needed = "3 GiB needed; torch with CUDA, which a workload may ask for, takes 5 more"
    return ("ok" if free >= NEEDED_BYTES else "fail"), f"{free / 1024**3:.1f} GiB free, {needed}"


def _server_user(_: Home) -> tuple[str, str]:
    try:
        account = server_account()
    except LauncherError as error:
        return "fail", str(error)
    return "ok", "PostgreSQL runs as you" if account is None else f"PostgreSQL runs as uid {account.uid}, not as root"


def _environments(home: Home) -> tuple[str, str]:
    needed = {"scheduler", "test", "cpu", *(environments.of_gpu_tasks(workload) for workload in scheduled())}
    missing = [name for name in sorted(needed) if not environments.is_complete(home, name)]
    return ("note", f"to be made when needed: {', '.join(missing)}") if missing else ("ok", "all made")


def _workloads(home: Home) -> tuple[str, str]:
    """Whose nights are scheduled, whose run when somebody asks, and what those would have to make first."""
    told = []
    for workload in WORKLOADS.values():
        name = environments.of_gpu_tasks(workload)
        missing = [f"environment {name}"] if not environments.is_complete(home, name) else []
        missing += [f"set {workload.payload}"] if not payload_is_there(home, workload) else []
        when = "scheduled" if workload in scheduled() else "when asked"
        told.append(f"{workload.name} {when}" + (f" ({' and '.join(missing)} to be made first)" if missing else ""))
    return "ok", "; ".join(told)


def _gpu(_: Home) -> tuple[str, str]:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return "note", "no NVIDIA driver found: kernels run on a CPU device, energy is unavailable"
    command = [tool, "--query-gpu=name,uuid,driver_version", "--format=csv,noheader"]
    listing = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    return ("ok" if listing.returncode == 0 else "fail"), " / ".join(listing.stdout.split("\n")).strip(" /")


def _stack(home: Home) -> tuple[str, str]:
    lock = FileLock(home.locks / "supervisor")
    if not home.locks.exists() or not lock.is_held():
        return "note", "not running"
    return "ok", f"running, pid {lock.holder()}"
