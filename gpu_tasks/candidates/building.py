"""PTX from kernel sources, in a process of its own: what is built may be of another commit than what builds it.

Sources are a program like any other, and a slip of the pen may do anything in it. It has a minute, memory and file
sizes with a limit, and nothing that it starts is left behind.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path

from gpu_tasks.records import BadInput, InfrastructureFailure
from gpu_tasks.tied import die_with

HOUSE = "kernels"
MANIFEST = "manifest.json"
TIMEOUT_S = 60.0
MOST_BYTES = 64 * 1024 * 1024
"""Of a file, the build's messages among them."""
MOST_MEMORY_BYTES = 4 * 1024**3
LEAST_FREE_BYTES = 1024 * 1024
"""Several times what the kernels take."""
LONGEST_COMPLAINT = 300
_TAIL_BYTES = 64 * 1024


def build(checkout: Path, folder: Path, what: str) -> Path:
    """Build ``checkout``/kernels into ``folder``; returns its manifest. ``what`` is its name in messages.

    Raises ``InfrastructureFailure`` (``pyptx_missing``), and ``BadInput`` (``does_not_build``) with the last line that
    the build had to say.
    """
    if importlib.util.find_spec("pyptx") is None:
        message = f"{what}: expected the package pyptx to build kernels with, found none in {sys.executable}"
        raise InfrastructureFailure("pyptx_missing", message)
    status, told = _built([sys.executable, "-m", HOUSE, "build", "--folder", str(folder)], checkout, what)
    if status:
        _check_space(what)
        lines = told.replace(f"{checkout}/", "").strip().splitlines()
        why = " ".join(lines[-1].split())[:LONGEST_COMPLAINT] if lines else f"exit status {status}"
        place = next((line.strip() for line in reversed(lines) if line.lstrip().startswith(f'File "{HOUSE}/')), "")
        place = f" ({place})" if place else ""
        raise BadInput("does_not_build", f"{what}: expected kernels that build, found: {why}{place}")
    _check_files(folder, what)
    return folder / MANIFEST


def _built(command: Sequence[str], checkout: Path, what: str) -> tuple[int, str]:
    """Exit status of the build, and the end of what it said on standard error."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    # A file: a pipe is open as long as anything lives that the build has started.
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command,
            cwd=checkout,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
            preexec_fn=_limited(os.getpid()),  # noqa: PLW1509 - no threads here
        )
        try:
            status = process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            message = f"{what}: expected kernels that are built within {TIMEOUT_S:g} s, found the build running"
            raise BadInput("does_not_build", message) from None
        finally:
            _end(process)
        said.seek(max(0, said.seek(0, os.SEEK_END) - _TAIL_BYTES))
        return status, said.read().decode("utf-8", "replace")


def _limited(parent: int) -> Callable[[], None]:
    """For the child: it ends with its parent, killed as well; CPU time, for what it starts in turn; memory; files."""

    def prepare() -> None:
        die_with(parent)
        cpu_s = ceil(TIMEOUT_S)
        for kind, limit in (
            (resource.RLIMIT_CPU, cpu_s),
            (resource.RLIMIT_DATA, MOST_MEMORY_BYTES),
            (resource.RLIMIT_FSIZE, MOST_BYTES),
        ):
            _, hard = resource.getrlimit(kind)
            resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))

    return prepare


def _end(process: subprocess.Popen[bytes]) -> None:
    """The build and what it has started and left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _check_space(what: str) -> None:
    """A full disk is no fault of the sources, and what the build had to say of it may not be there either."""
    place = tempfile.gettempdir()
    if shutil.disk_usage(place).free < LEAST_FREE_BYTES:
        message = f"{place}: expected space to build {what} in, found: No space left on device"
        raise InfrastructureFailure("no_space", message)


def _check_files(folder: Path, what: str) -> None:
    """Kernels are files: a link may lead anywhere, a pipe keeps waiting whoever reads it."""
    try:
        kinds = {path.name: path.lstat().st_mode for path in sorted(folder.iterdir())}
    except OSError:
        kinds = {}
    odd = next((name for name, mode in kinds.items() if not stat.S_ISREG(mode)), None)
    if odd is not None:
        message = f"{what}: expected a build that writes plain files, found another kind: {odd}"
        raise BadInput("does_not_build", message)
    if MANIFEST not in kinds:
        raise BadInput("does_not_build", f"{what}: expected a build that writes {MANIFEST}, found none")
