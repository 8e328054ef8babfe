"""GPU programs as the launcher runs them itself: one child process, whose record comes back over its standard output.

No file is written for it, so that nothing is left of a program that was killed; its progress goes to standard error.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TypeVar

from gpu_tasks.records import BadInput, Outcome, record_from_bytes
from local import environments
from local.errors import LauncherError
from local.paths import ROOT, Home
from local.processes import die_with_parent
from regression.nights.workloads import DEFAULT, Workload

T = TypeVar("T")
ANSWERS = {outcome.exit_code for outcome in (Outcome.OK, Outcome.REGRESSION, Outcome.BAD_INPUT)}
"""Ends of a program whose record says everything."""
GRACE_S = 10
"""Longer than a program needs to end what it started, and to write that it was interrupted."""


class Program:
    """A GPU program that has been started; ``record`` waits for it."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], unheard: IO[bytes] | None = None) -> None:
        self.name = name
        self._process = process
        self._unheard = unheard

    def record(self, cls: type[T]) -> T:
        """Wait for its end and read what it wrote, on success as on failure.

        Raises ``LauncherError`` where it left no record: it was killed, or took its arguments for none.
        """
        written, _ = self._process.communicate()
        status = self._process.returncode
        if self._unheard and not (written and status in ANSWERS):
            self._unheard.seek(0)
            sys.stderr.write(self._unheard.read().decode("utf-8", "replace"))
        try:
            return record_from_bytes(written, cls, self.name)
        except BadInput as error:
            if status < 0:
                raise LauncherError(f"{self.name}: ended by {signal.Signals(-status).name}") from None
            if status == Outcome.BAD_INPUT.exit_code and not written:
                raise LauncherError(f"{self.name}: arguments refused, see above", Outcome.BAD_INPUT) from None
            raise LauncherError(f"{self.name}: ended with {status} and no record: {error.message}") from None

    def end(self) -> None:
        """Have it end what it started, and wait; SIGKILL after ``GRACE_S`` seconds. Nothing where it has ended."""
        if self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            self._process.communicate(timeout=GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


@contextmanager
def started(
    home: Home, name: str, arguments: list[str], *, quiet: bool = False, workload: Workload = DEFAULT
) -> Iterator[Program]:
    """A program of ``gpu_tasks`` while it runs; whatever ends this block or this process ends it as well.

    It runs in the environment of ``workload``. Of a ``quiet`` one the progress is told only where it came to no answer.
    """
    interpreter = environments.python(home, environments.of_gpu_tasks(workload))
    sys.stderr.flush()
    unheard = tempfile.TemporaryFile() if quiet else None  # noqa: SIM115 - as long as the program, and closed below
    process = subprocess.Popen(
        [str(interpreter), "-m", "gpu_tasks", name, *arguments],
        cwd=ROOT,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=unheard,
        preexec_fn=die_with_parent(signal.SIGTERM),  # noqa: PLW1509 - no threads here
    )
    program = Program(name, process, unheard)
    try:
        yield program
    finally:
        program.end()
        if unheard:
            unheard.close()


def carry_out(command: list[str]) -> int:
    """Exit status of a program that talks to the user itself; whatever ends this process ends it as well."""
    sys.stdout.flush()
    process = subprocess.Popen(command, cwd=ROOT, preexec_fn=die_with_parent(signal.SIGTERM))  # noqa: PLW1509
    try:
        return process.wait()
    finally:
        Program(command[-1], process).end()


def environment(home: Home) -> dict[str, str]:
    """What a GPU program finds in its environment, whoever starts it."""
    ours = {"PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}  # this checkout, not the one we may stand in
    defaults = {
        "NIGHTLY_PAYLOADS": str(home.payloads),
        "NIGHTLY_ENVIRONMENTS": str(home.environments),
        "NIGHTLY_CANDIDATES": str(home.candidates),
    }
    return defaults | dict(os.environ) | ours
