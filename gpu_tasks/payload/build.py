"""Building a set of draws from MNIST: permute, reduce, predict, freeze, hash."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_tasks.payload.layout import draw_layout, predictions_layout
from gpu_tasks.payload.manifest import MANIFEST, ArrayEntry, DrawEntry, Manifest, check_seeds
from gpu_tasks.payload.mnist import Images
from gpu_tasks.payload.npz import array_bytes, npy_bytes, npz_bytes
from gpu_tasks.payload.verify import verify_payload
from gpu_tasks.records import BadInput, InfrastructureFailure, VerificationMismatch
from gpu_tasks.workloads.base import DrawnWorkload, Labels, PinnedSet

ATTRIBUTION = "ATTRIBUTION.md"
TEMPORARY = ".tmp"
ATTRIBUTION_TEXT = """\
# Attribution

The draws in this folder are derived from the MNIST database of handwritten digits by Yann LeCun, Corinna Cortes and
Christopher J.C. Burges, which is made available under the Creative Commons Attribution-Share Alike 3.0 licence
(https://creativecommons.org/licenses/by-sa/3.0/).

Changes: samples of the 60,000 training images were chosen by seeded permutation, each image was reduced to the mean
grey of a small grid of areas and rescaled, and the predictions of a reference classifier were added.

These derived draws are made available under the same licence, CC BY-SA 3.0.
"""

Progress = Callable[[str], None]


def build_set(
    name: str, folder: Path, source: Images, seeds: list[int], *, workload: DrawnWorkload, progress: Progress
) -> Manifest:
    """Build the set ``name`` with one draw for each seed in the new folder ``folder``.

    All files are made in a temporary folder beside it, verified, and renamed into place, so that ``folder`` is either
    whole or not there. Raises ``BadInput`` when it exists already or a draw cannot be used, ``VerificationMismatch``
    when a set that is pinned does not come out as it is.
    """
    check_seeds(seeds, "--seeds")
    _check_source_size(source, workload)
    if folder.exists() or folder.is_symlink():
        raise BadInput("payload_exists", f"{folder}: expected a new folder, found an existing one; nothing was changed")
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=TEMPORARY))
    try:
        manifest = _write_set(name, temporary, source, seeds, workload=workload, progress=progress)
        _check_set(name, temporary, workload)
        temporary.chmod(0o755)
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return manifest


@contextmanager
def building(folder: Path) -> Iterator[None]:
    """Hold the right to build ``folder``, after whoever builds it now; leaves nothing of one that was killed.

    Raises ``InfrastructureFailure`` (``payload_not_writable``) where nothing can be written there.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = (folder.parent / f".{folder.name}.lock").open("a")
    except OSError as error:
        message = f"{error.filename}: expected a folder that a set can be built in, found: {error.strerror}"
        raise InfrastructureFailure("payload_not_writable", message) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in folder.parent.glob(f".{folder.name}.????????{TEMPORARY}"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def _check_source_size(source: Images, workload: DrawnWorkload) -> None:
    needed = workload.train_samples + workload.query_samples
    if len(source.images) < needed:
        raise BadInput("bad_source", f"source: images: expected at least {needed}, found {len(source.images)}")


def _write_set(
    name: str, folder: Path, source: Images, seeds: list[int], *, workload: DrawnWorkload, progress: Progress
) -> Manifest:
    (folder / "predictions").mkdir()
    pinned = workload.pinned_sets.get(name)
    entries = []
    for number, seed in enumerate(seeds):
        try:
            frozen = pinned.predictions(number) if pinned and pinned.predictions else None
            arrays = draw_arrays(source, seed, workload, frozen)
        except BadInput as error:
            raise BadInput(error.code, f"draw {number} (seed {seed}): {error.message}") from None
        entries.append(_write_draw(folder, number, seed, arrays, workload))
        correct = int(np.sum(arrays["frozen_predictions"] == arrays["test_labels"]))
        progress(
            f"draw {number + 1} of {len(seeds)}: seed {seed}, reference {correct} of {workload.query_samples} correct"
        )
    manifest = _manifest(pinned, source, seeds, entries)
    (folder / ATTRIBUTION).write_text(ATTRIBUTION_TEXT, encoding="utf-8")
    (folder / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
    return manifest


def draw_arrays(
    source: Images, seed: int, workload: DrawnWorkload, frozen: Labels | None = None
) -> dict[str, npt.NDArray[Any]]:
    """The arrays of one draw: the first samples of a seeded permutation train, the next are queries.

    Without ``frozen`` predictions the workload's reference makes them.
    """
    order = np.random.default_rng(seed).permutation(len(source.images))
    train = order[: workload.train_samples]
    query = order[workload.train_samples : workload.train_samples + workload.query_samples]
    x, q = workload.features(source.images[train]), workload.features(source.images[query])
    labels = source.labels[train].astype(np.int64)
    return {
        "x": x,
        "labels": labels,
        "q": q,
        "frozen_predictions": workload.predict(x, labels, q) if frozen is None else frozen,
        "test_labels": source.labels[query].astype(np.int64),
        "dataset_seed": np.array(seed, np.int64),
    }


def _write_draw(
    folder: Path, number: int, seed: int, arrays: dict[str, npt.NDArray[Any]], workload: DrawnWorkload
) -> DrawEntry:
    layouts = draw_layout(workload)
    path, prediction_path = f"draw-{number:02d}.npz", f"predictions/draw-{number:02d}.npy"
    draw = npz_bytes(arrays, layouts)
    predictions = npy_bytes(arrays["frozen_predictions"], predictions_layout(workload))
    (folder / path).write_bytes(draw)
    (folder / prediction_path).write_bytes(predictions)
    return DrawEntry(
        draw=number,
        dataset_seed=seed,
        path=path,
        sha256=hashlib.sha256(draw).hexdigest(),
        arrays={
            key: ArrayEntry(list(layout.shape), layout.dtype, hashlib.sha256(array_bytes(arrays[key])).hexdigest())
            for key, layout in layouts.items()
        },
        frozen_prediction_path=prediction_path,
        frozen_prediction_sha256=hashlib.sha256(predictions).hexdigest(),
    )


def _manifest(pinned: PinnedSet | None, source: Images, seeds: list[int], entries: list[DrawEntry]) -> Manifest:
    if pinned is not None and pinned.source_sha256 is not None:
        return Manifest(
            seeds,
            entries,
            dict(pinned.source_sha256),
            pinned.prediction_manifest_sha256,
            pinned.draw_manifest_sha256,
        )
    hashes = {
        "train-images": hashlib.sha256(source.images.tobytes()).hexdigest(),
        "train-labels": hashlib.sha256(source.labels.tobytes()).hexdigest(),
    }
    return Manifest(seeds, entries, hashes)


def _check_set(name: str, folder: Path, workload: DrawnWorkload) -> None:
    mismatches = verify_payload(name, folder, workload).mismatches
    if mismatches:
        first = mismatches[0]
        raise VerificationMismatch(
            "payload_mismatch",
            f"{name}/{first.file}: {first.field}: expected {first.expected}, found {first.found}; nothing was kept",
        )
