"""The environments that ``nightly`` needs, in the installation's folder; what makes them is with the GPU programs."""

from __future__ import annotations

import os
from pathlib import Path

from gpu_tasks.environments import build
from gpu_tasks.environments.build import Environment
from gpu_tasks.records import InfrastructureFailure
from local.errors import LauncherError, Usage
from local.paths import ROOT, Home
from regression.nights.workloads import DEFAULT, Workload

ENVIRONMENTS = {
    "scheduler": Environment("scheduler", ROOT / "local/environments/scheduler/requirements.txt"),
    "test": Environment(
        "test",
        ROOT / "local/environments/test/requirements.txt",
        build.named("learner").apart,
        build.named("learner").by_pip,
    ),
    **{name: build.named(name) for name in build.NAMES},
}


def of_gpu_tasks(workload: Workload = DEFAULT) -> str:
    """Name of the environment that a workload's programs run in.

    ``NIGHTLY_GPU_ENVIRONMENT`` where that is set and can run them, else the workload's own.
    """
    name = os.environ.get("NIGHTLY_GPU_ENVIRONMENT") or None
    if name is not None and name not in build.NAMES:
        raise Usage(f"NIGHTLY_GPU_ENVIRONMENT: expected one of {', '.join(build.NAMES)}, found {name!r}")
    return workload.environment(name)


def folder(home: Home, name: str) -> Path:
    """Where the environment ``name`` lives for this lock and this Python, made or not."""
    return ENVIRONMENTS[name].folder(home.environments)


def python(home: Home, name: str) -> Path:
    """Interpreter of the environment ``name``."""
    return ENVIRONMENTS[name].python(home.environments)


def is_complete(home: Home, name: str) -> bool:
    """Whether the environment is made, with its interpreter and its packages."""
    return ENVIRONMENTS[name].is_complete(home.environments)


def ensure(home: Home, *names: str) -> None:
    """Make the environments that are not complete; says what it does and how long it took on stderr."""
    if all(is_complete(home, name) for name in names):
        return
    previous_umask = os.umask(0o022)  # PostgreSQL's unprivileged user must be able to pass through
    try:
        home.create()
        build.ensure(home.environments, *(ENVIRONMENTS[name] for name in names))
    except InfrastructureFailure as error:
        raise LauncherError(error.message) from error
    except OSError as error:
        raise LauncherError(f"{error.filename or home.folder}: cannot be written: {error.strerror}") from error
    finally:
        os.umask(previous_umask)
