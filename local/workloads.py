"""The workloads as the commands name them, and what a night of one needs before it can begin."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from gpu_tasks.records import BadInput, Outcome, VerifyRecord
from local import environments, programs
from local.errors import LauncherError, Usage
from local.paths import ROOT, Home
from regression.nights.workloads import DEFAULT, WORKLOADS, Workload, find, named

SCHEDULED = "NIGHTLY_WORKLOADS"
GPU_TASKS = ROOT / "gpu_tasks"


def asked_for(arguments: argparse.Namespace) -> Workload:
    """That of ``--workload``; raises ``Usage``."""
    try:
        return find(arguments.workload)
    except BadInput as error:
        raise Usage(f"--{error.message}") from None


def scheduled() -> list[Workload]:
    """Those whose nights ``up`` schedules: ``NIGHTLY_WORKLOADS``, else the default one; raises ``Usage``."""
    try:
        return named(os.environ.get(SCHEDULED))
    except BadInput as error:
        raise Usage(f"{SCHEDULED}: {error.message}") from None


def needed_by(arguments: argparse.Namespace) -> list[str]:
    """Environments of GPU programs that a command cannot do without."""
    if arguments.command == "up":
        wanted = scheduled()
    elif arguments.command in ("run", "trigger"):
        wanted = [asked_for(arguments)]
    else:
        wanted = [DEFAULT]
    return list(dict.fromkeys(environments.of_gpu_tasks(workload) for workload in wanted))


def of_program(words: Sequence[str]) -> Workload:
    """The workload whose environment a GPU program is run in by hand: that of its ``--workload``, else the default one.

    Sets of draws are built and verified in any. A workload that there is none of is for the program to refuse.
    """
    given = [word.partition("=")[2] for word in words if word.startswith("--workload=")]
    given += [value for option, value in pairwise(words) if option == "--workload"]
    return WORKLOADS.get(given[-1], DEFAULT) if given and words[0] != "payload" else DEFAULT


def payload_is_there(home: Home, workload: Workload, name: str | None = None) -> bool:
    """Whether a set of draws need not be built: it lies where runs look for it, or nobody could build it."""
    name = name or workload.payload
    return name not in workload.pinned_sets(GPU_TASKS) or any(
        (folder / name / "manifest.json").is_file() for folder in payload_folders(home)
    )


def payload_folders(home: Home) -> list[Path]:
    """Folders in which sets of draws lie, in the order in which runs look for them."""
    return [Path(os.environ.get("NIGHTLY_PAYLOADS") or home.payloads), GPU_TASKS / "payload"]


def ensure_payloads(home: Home, wanted: Iterable[tuple[Workload, str]]) -> None:
    """Build the sets of draws that are not there, so that no night has to; tells the progress on standard error.

    Raises ``LauncherError`` with the reason of the program that builds.
    """
    for workload, name in wanted:
        if payload_is_there(home, workload, name):
            continue
        options = ["--workload", workload.name, "--subject", "payload", "--payload", name, "--build"]
        with programs.started(home, "verify", options, workload=workload) as program:
            record = program.record(VerifyRecord)
        if record.outcome is not Outcome.OK:
            raise LauncherError(record.reason.message if record.reason else f"{name}: not built", record.outcome)


__all__ = [
    "asked_for",
    "ensure_payloads",
    "needed_by",
    "of_program",
    "payload_folders",
    "payload_is_there",
    "scheduled",
]
