"""pip, run so that whoever waits sees what it is at: a download of several gigabytes is minutes without a word else.

Standard library only: it runs before there is any environment.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath

_FILE = re.compile(r"\s*(Downloading|Using cached) (?P<file>\S+) \((?P<size>[\d.]+ [MG]B)\)")
"""What is smaller than a megabyte is not worth a line."""
_INSTALLING = re.compile(r"\s*Installing collected packages: (?P<names>.+)")


def run(command: Sequence[str], environment: Mapping[str, str], say: Callable[[str], None]) -> tuple[int, str]:
    """Run a command of pip to its end; returns its exit status and what it wrote on stderr.

    ``say`` gets a line for each large file and one when installing begins. The command must not be ``--quiet``.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as messages:
        with subprocess.Popen(
            [*command, "--progress-bar", "off"],
            env={**environment, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=messages,
            encoding="utf-8",
            errors="replace",
        ) as process:
            try:
                for line in process.stdout or ():
                    if step := step_of(line):
                        say(step)
            except BaseException:
                process.kill()
                raise
        messages.seek(0)
        return process.returncode, messages.read()


def step_of(line: str) -> str | None:
    """What a line of pip's output tells somebody who waits; None: nothing.

    Of an address only the file is told: an index may be given with a password.
    """
    if file := _FILE.match(line):
        verb = "downloading" if file[1] == "Downloading" else "cached"
        name = PurePosixPath(file["file"].partition("#")[0].partition("?")[0]).name
        return f"{verb} {name} ({file['size']})"
    if installing := _INSTALLING.match(line):
        count = len(installing["names"].split(","))
        return f"installing {count} package{'s' if count > 1 else ''}"
    return None


__all__ = ["run", "step_of"]
