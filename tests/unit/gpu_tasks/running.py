"""Shared by the tests that start the GPU programs as their users do: as a child process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def program(
    *arguments: object, python: object = sys.executable, root: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m gpu_tasks ARGUMENTS`` of the checkout ``root``."""
    return subprocess.run(
        [str(python), "-m", "gpu_tasks", *map(str, arguments)],
        cwd=root,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def complaint(result: subprocess.CompletedProcess[str]) -> str:
    """The one line of a failure."""
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("gpu_tasks ")]
    return line
