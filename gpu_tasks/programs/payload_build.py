"""``payload build``: a set of draws from MNIST, in a folder that was not there before."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from gpu_tasks.payload.build import build_set, building
from gpu_tasks.payload.mnist import check_is_mnist, read_source
from gpu_tasks.payload.sets import SHIPPED, SHIPPED_NAME, check_name, new_set_folder
from gpu_tasks.programs.console import progress
from gpu_tasks.records import BadInput
from gpu_tasks.workloads.base import DrawnWorkload
from gpu_tasks.workloads.registry import get_workload


def run(arguments: Namespace) -> None:
    """Build, verify, and say where."""
    workload = get_workload(arguments.workload)
    name, folder, seeds = check_name(arguments.set), _folder(arguments), _seeds(arguments, workload)
    if folder.exists():
        raise BadInput("payload_exists", f"{folder}: expected a new folder, found an existing one; nothing was changed")
    progress(f"reading {arguments.source}")
    source = read_source(arguments.source)
    check_is_mnist(source, arguments.source)
    with building(folder):
        build_set(name, folder, source, seeds, workload=workload, progress=progress)
    print(f"{folder}: {len(seeds)} draws built and verified")


def _folder(arguments: Namespace) -> Path:
    if arguments.folder is not None:
        return Path(arguments.folder)
    return SHIPPED / SHIPPED_NAME if arguments.set == SHIPPED_NAME else new_set_folder(arguments.set)


def _seeds(arguments: Namespace, workload: DrawnWorkload) -> list[int]:
    pinned = workload.pinned_sets.get(arguments.set)
    if pinned is not None:
        if arguments.seeds is not None:
            raise BadInput("bad_seeds", f"--seeds: the seeds of {pinned.name} are fixed; give another set with --set")
        return list(pinned.seeds)
    if arguments.set == SHIPPED_NAME:
        known = ", ".join(workload.pinned_sets)
        message = f"--set: expected {known} or a new name, found {SHIPPED_NAME}, a set of another workload"
        raise BadInput("bad_payload_name", message)
    if arguments.seeds is None:
        raise BadInput("bad_seeds", f"--seeds: expected the seeds of the new set {arguments.set}, found none")
    return list(arguments.seeds)
