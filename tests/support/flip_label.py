"""The GPU task programs with one label of one draw wrong, for tests of what follows from a regression.

``flipping_python(folder, draw, index)`` writes an executable that stands in for the Python of the GPU tasks: called
with ``-m gpu_tasks validate --draw DRAW ...`` it adds one to the predicted class of query INDEX, in the eager run and
in every replay alike; everything else runs unchanged.
"""

from __future__ import annotations

import os
import shlex
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def flipping_python(folder: Path, draw: int, index: int, python: str = sys.executable) -> Path:
    """Write the stand-in into ``folder`` and return its path; ``python`` is the interpreter it runs on."""
    script = folder / "python-with-a-flipped-label"
    command = shlex.join([python, __file__, python, str(draw), str(index)])
    script.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return script


def main(python: str, draw: int, index: int, arguments: list[str]) -> int:
    """Act as ``python`` with these arguments."""
    if "gpu_tasks" not in arguments:
        os.execv(python, [python, *arguments])  # noqa: S606
    sys.path[0] = str(ROOT)
    from gpu_tasks.programs import cli

    program = arguments[arguments.index("gpu_tasks") + 1 :]
    if program[:1] == ["validate"] and _option(program, "--draw") == str(draw):
        _flip(index)
    return cli.main(program)


def _option(program: list[str], name: str) -> str | None:
    values = [after for word, after in pairwise(program) if word == name]
    values += [word.partition("=")[2] for word in program if word.startswith(f"{name}=")]
    return values[-1] if values else None


def _flip(index: int) -> None:
    from gpu_tasks.programs import validate

    opener = validate.open_device

    def open_flipping(*arguments: Any, **options: Any) -> Any:
        device = opener(*arguments, **options)
        predictions = device.predictions

        def flipped() -> Any:
            found = predictions()
            found[index] = (found[index] + 1) % 10
            return found

        device.predictions = flipped
        return device

    validate.open_device = open_flipping


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))
