"""PTX from kernel sources, in a process of its own: what is built may be of another commit than what builds it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from gpu_tasks.records import BadInput, InfrastructureFailure

HOUSE = "kernels"
MANIFEST = "manifest.json"
TIMEOUT_S = 60.0


def build(checkout: Path, folder: Path, what: str) -> Path:
    """Build ``checkout``/kernels into ``folder``; returns its manifest. ``what`` is its name in messages.

    Raises ``InfrastructureFailure`` (``pyptx_missing``), and ``BadInput`` (``does_not_build``) with the last line that
    the build had to say.
    """
    if importlib.util.find_spec("pyptx") is None:
        message = f"{what}: expected the package pyptx to build kernels with, found none in {sys.executable}"
        raise InfrastructureFailure("pyptx_missing", message)
    environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", HOUSE, "build", "--folder", str(folder)]
    try:
        found = subprocess.run(
            command,
            cwd=checkout,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        message = f"{what}: expected kernels that are built within {TIMEOUT_S:g} s, found the build running"
        raise BadInput("does_not_build", message) from None
    if found.returncode:
        lines = found.stderr.decode("utf-8", "replace").strip().splitlines()
        why = " ".join(lines[-1].split())[:300] if lines else f"exit status {found.returncode}"
        place = next((line.strip() for line in reversed(lines) if line.lstrip().startswith("File ")), "")
        place = f" ({place.replace(f'{checkout}/', '')})" if str(checkout) in place else ""
        raise BadInput("does_not_build", f"{what}: expected kernels that build, found: {why}{place}")
    if not (folder / MANIFEST).is_file():
        raise BadInput("does_not_build", f"{what}: expected a build that writes {MANIFEST}, found none")
    return folder / MANIFEST
