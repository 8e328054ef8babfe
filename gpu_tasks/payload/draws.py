"""One frozen draw in memory."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_tasks.float32 import Float32Array
from gpu_tasks.payload.layout import draw_layout
from gpu_tasks.payload.manifest import DrawEntry, Manifest, identity, read_inside, read_manifest
from gpu_tasks.payload.npz import read_npz
from gpu_tasks.payload.sets import find_set
from gpu_tasks.records import BadInput, PayloadIdentity, VerificationMismatch
from gpu_tasks.workloads.base import DrawnWorkload, Labels

ZIP_OVERHEAD_BYTES = 4096


@dataclass(frozen=True)
class Draw:
    """Training samples ``x`` with ``labels``, queries ``q`` with frozen predictions and true ``test_labels``."""

    x: Float32Array
    labels: Labels
    q: Float32Array
    frozen_predictions: Labels
    test_labels: Labels


class Payload:
    """A named set of draws, opened: its manifest is read and checked, its draws are read on demand."""

    def __init__(self, name: str, workload: DrawnWorkload) -> None:
        self.name = name
        self._workload = workload
        self._folder = find_set(name)
        self._manifest, self._manifest_sha256 = read_manifest(self._folder, workload)

    @property
    def manifest(self) -> Manifest:
        """The checked manifest."""
        return self._manifest

    def identity(self) -> PayloadIdentity:
        """Name, manifest hash and draws, as records name them."""
        return identity(self.name, self._manifest, self._manifest_sha256)

    def load(self, number: int) -> Draw:
        """Read draw ``number`` after checking its hash.

        Raises ``BadInput`` for a draw that is not there or a malformed file, ``VerificationMismatch`` for other bytes.
        """
        entry = self._manifest.draw(number)
        data = read_inside(self._folder, entry.path, max_npz_bytes(self._workload))
        found = hashlib.sha256(data).hexdigest()
        if found != entry.sha256:
            raise VerificationMismatch(
                "payload_mismatch", f"{self.name}/{entry.path}: sha256: expected {entry.sha256}, found {found}"
            )
        return to_draw(read_npz(data, draw_layout(self._workload), entry.path), entry)


def max_npz_bytes(workload: DrawnWorkload) -> int:
    """Most bytes that the .npz of one draw can have."""
    return sum(layout.npy_bytes for layout in draw_layout(workload).values()) + ZIP_OVERHEAD_BYTES


def to_draw(arrays: dict[str, npt.NDArray[Any]], entry: DrawEntry) -> Draw:
    """The draw in the arrays of its .npz; raises ``BadInput`` when they are another draw's."""
    seed = int(arrays["dataset_seed"])
    if seed != entry.dataset_seed:
        raise BadInput("bad_payload", f"{entry.path}: dataset_seed: expected {entry.dataset_seed}, found {seed}")
    return Draw(
        x=arrays["x"].astype(np.float32),
        labels=arrays["labels"].astype(np.int64),
        q=arrays["q"].astype(np.float32),
        frozen_predictions=arrays["frozen_predictions"].astype(np.int64),
        test_labels=arrays["test_labels"].astype(np.int64),
    )
