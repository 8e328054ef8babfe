"""Make the environment that a program asks for, and start the program anew in it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gpu_tasks.environments import build
from gpu_tasks.records import BadInput, InfrastructureFailure
from gpu_tasks.sources import ROOT

_ENTERED = "NIGHTLY_ENVIRONMENT_ENTERED"  # told to the program started anew, so that it is started anew only once


def enter(environment: build.Environment, folder: Path | None) -> None:
    """Make the environment where it is not complete, and start this program anew in it; returns when it is in it."""
    text = os.environ.get("NIGHTLY_ENVIRONMENTS")
    if folder is None and not text:
        message = "--environments: expected a folder, or one in NIGHTLY_ENVIRONMENTS, found neither"
        raise BadInput("no_environments_folder", message)
    base = (folder or Path(str(text))).expanduser().absolute()
    build.ensure(base, environment)
    target, python = environment.folder(base), str(environment.python(base))
    if Path(sys.prefix).resolve() == target.resolve():
        return
    if os.environ.get(_ENTERED) == str(target):
        message = f"{python}: expected an interpreter of {target}, found one of {sys.prefix}"
        raise InfrastructureFailure("environment_not_entered", message)
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1", _ENTERED: str(target)}
    os.execve(python, [python, "-m", "gpu_tasks", *sys.argv[1:]], variables)  # noqa: S606 - no shell is wanted
