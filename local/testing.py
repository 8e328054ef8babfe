"""``nightly test``: static checks, then the tests in their three speeds."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from local import environments
from local.errors import Usage
from local.paths import ROOT, Home

SUITES = ("lint", "unit", "integration", "end_to_end", "gpu")
MOST_PROCESSES = 4
"""Each may have a PostgreSQL or an Airflow of its own."""
_LINT = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
    ("lint-imports", "--no-cache"),
)


def run_suites(home: Home, chosen: list[str], keyword: str | None) -> int:
    """Run the chosen suites (default: all) and stop at the first static check that fails; returns the exit status."""
    suites = chosen or list(SUITES)
    unknown = [name for name in suites if name not in SUITES]
    if unknown:
        raise Usage(f"test {unknown[0]}: expected one of {', '.join(SUITES)}")
    bin_folder = environments.folder(home, "test") / "bin"
    environment = dict(os.environ) | {
        "PATH": os.pathsep.join([str(bin_folder), os.environ.get("PATH", os.defpath)]),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
        # end-to-end tests start installations of their own and share only the environments
        "NIGHTLY_ENVIRONMENTS": str(home.environments),
    }
    environment.pop("NIGHTLY_HOME", None)
    environment.pop("NIGHTLY_DSN", None)
    if "lint" in suites:
        for command in _LINT:
            if _run([str(bin_folder / command[0]), *command[1:]], environment) != 0:
                return 1
    folders = [f"tests/{name}" for name in suites if name != "lint"]
    if not folders:
        return 0
    options = ["-k", keyword] if keyword else []
    processes = min(os.cpu_count() or 1, MOST_PROCESSES)
    options += ["-n", str(processes), "--dist", "loadfile", "--no-loadscope-reorder"]
    return _run([str(bin_folder / "pytest"), "--durations=10", *options, *folders], environment)


def _run(command: list[str], environment: dict[str, str]) -> int:
    started = time.monotonic()
    name = " ".join([os.path.basename(command[0]), *command[1:]])  # noqa: PTH119 - text for people
    print(f"== {name}", flush=True)
    status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    print(f"== {name}: {'passed' if status == 0 else f'failed ({status})'} in {time.monotonic() - started:.0f} s")
    sys.stdout.flush()
    return status
