"""Hashing a whole payload: every file and every array against the manifest, all differences and not just the first."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gpu_tasks.payload.draws import max_npz_bytes
from gpu_tasks.payload.errors import PayloadDefect
from gpu_tasks.payload.layout import draw_layout, predictions_layout
from gpu_tasks.payload.manifest import MANIFEST, MAX_MANIFEST_BYTES, DrawEntry, identity, read_inside, read_manifest
from gpu_tasks.payload.npz import Array, array_bytes, read_npy, read_npz
from gpu_tasks.records import BadInput, FileMismatch, PayloadIdentity
from gpu_tasks.workloads.base import DrawnWorkload, PinnedSet


@dataclass(frozen=True)
class PayloadReport:
    """Result of a verification; ``payload`` is null when the manifest itself could not be used."""

    files_checked: int
    mismatches: list[FileMismatch]
    payload: PayloadIdentity | None


def verify_payload(name: str, folder: Path, workload: DrawnWorkload) -> PayloadReport:
    """Check the payload in ``folder``; a set that is pinned also against its pinned manifest.

    Raises ``BadInput`` when a manifest that nothing is pinned for cannot be read at all.
    """
    mismatches = _manifest_mismatches(workload.pinned_sets.get(name), folder)
    try:
        manifest, manifest_sha256 = read_manifest(folder, workload)
    except BadInput:
        if not mismatches:
            raise
        return PayloadReport(1, mismatches, None)
    for entry in manifest.draws:
        mismatches += _draw_mismatches(folder, entry, workload)
    return PayloadReport(1 + 2 * len(manifest.draws), mismatches, identity(name, manifest, manifest_sha256))


def _manifest_mismatches(pinned: PinnedSet | None, folder: Path) -> list[FileMismatch]:
    if pinned is None:
        return []
    data = read_inside(folder, MANIFEST, MAX_MANIFEST_BYTES)
    return _compare(MANIFEST, "sha256", pinned.manifest_sha256, hashlib.sha256(data).hexdigest())


def _draw_mismatches(folder: Path, entry: DrawEntry, workload: DrawnWorkload) -> list[FileMismatch]:
    found: list[FileMismatch] = []
    arrays: dict[str, Array] = {}
    try:
        data = read_inside(folder, entry.path, max_npz_bytes(workload))
        found += _compare(entry.path, "sha256", entry.sha256, hashlib.sha256(data).hexdigest())
        arrays = read_npz(data, draw_layout(workload), entry.path)
        for name, array in arrays.items():
            digest = hashlib.sha256(array_bytes(array)).hexdigest()
            found += _compare(entry.path, f"{name} sha256", entry.arrays[name].sha256, digest)
        found += _compare(entry.path, "dataset_seed", str(entry.dataset_seed), str(int(arrays["dataset_seed"])))
    except PayloadDefect as defect:
        found.append(defect.mismatch)
    return found + _prediction_mismatches(folder, entry, workload, arrays.get("frozen_predictions"))


def _prediction_mismatches(
    folder: Path, entry: DrawEntry, workload: DrawnWorkload, frozen: Array | None
) -> list[FileMismatch]:
    layout, file = predictions_layout(workload), entry.frozen_prediction_path
    found: list[FileMismatch] = []
    try:
        data = read_inside(folder, file, layout.npy_bytes)
        found += _compare(file, "sha256", entry.frozen_prediction_sha256, hashlib.sha256(data).hexdigest())
        predictions = read_npy(data, layout, file, "predictions")
        if frozen is not None and not np.array_equal(predictions, frozen):
            index = int(np.argmax(predictions != frozen))
            found.append(FileMismatch(file, f"prediction {index}", str(frozen[index]), str(predictions[index])))
    except PayloadDefect as defect:
        found.append(defect.mismatch)
    return found


def _compare(file: str, field: str, expected: str, found: str) -> list[FileMismatch]:
    return [] if expected == found else [FileMismatch(file, field, expected, found)]
