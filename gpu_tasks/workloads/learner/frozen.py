"""What is frozen of the learner and lies beside the code: its draws in compact form, and where it starts and ends.

``frozen/manifest.json`` is the manifest of the set ``learner``, so that every array of it is pinned though no image of
it is here: ``payload build`` makes them from MNIST. ``frozen/predictions.npy`` has what the float64 reference predicts,
``frozen/initial.npy`` the initial parameters, ``frozen/states.json`` where the reference ended.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_tasks.float32 import Float32Array
from gpu_tasks.records import VerificationMismatch, record_from_bytes
from gpu_tasks.workloads.base import Labels, PinnedSet
from gpu_tasks.workloads.learner.config import RECORDED
from gpu_tasks.workloads.learner.initial import parameter_shapes

FOLDER = Path(__file__).parent / "frozen"
WIDTH = 82
SEEDS = tuple(range(2026091400, 2026091411))
MANIFEST_SHA256 = "f2cc7d09dea14017faaba6e6f4f285b75e34cd16ef2076d46d1888c109153cde"
PREDICTIONS_SHA256 = "6c1baf9b5075d5c1aca7afbfa688c2b51dd93c4221b532f70a4a6c6aef8b7f8a"
INITIAL_SHA256 = "9e5641b6c1794df3adfdaeae2589dab06268a998ff4cfa397d9fa48da9030cec"
STATES_SHA256 = "ecd48bfe7164a63995739b6df422ee6f197b3fec6544d0880237f29dd9660619"


@dataclass(frozen=True)
class ReferenceState:
    """Where the float64 reference ended on one draw.

    ``state_grid_sha256`` is ``hashes.grid_sha256``, the same on every kind of CPU that was tried.
    ``correct`` of the predictions are right; ``smallest_score_gap`` is the smallest between two best scores.
    """

    draw: int
    dataset_seed: int
    correct: int
    smallest_score_gap: float
    state_grid_sha256: str


@dataclass(frozen=True)
class FloatHistory:
    """Hashes of float64 values of draw 0 as one setting of one machine gave them. Nothing checks them."""

    setting: str
    state_vector_sha256: str
    scores_sha256: str


@dataclass(frozen=True)
class ReferenceStates:
    """All draws, and what is kept as history."""

    states: list[ReferenceState]
    history: list[FloatHistory]


def predictions(draw: int) -> Labels:
    """(10000,) int64 frozen predictions of ``draw``."""
    found: Labels = _load("predictions.npy", PREDICTIONS_SHA256)[draw].astype(np.int64)
    return found


def initial_parameters() -> dict[str, Float32Array]:
    """The float32 parameters that the recorded config starts from, by name.

    Frozen and not drawn, because the last bits that torch draws depend on the CPU (docs/learner.md).
    """
    flat = _load("initial.npy", INITIAL_SHA256)
    values: dict[str, Float32Array] = {}
    start = 0
    for name, shape in parameter_shapes(RECORDED.depth, WIDTH).items():
        values[name] = flat[start : start + prod(shape)].reshape(shape)
        start += prod(shape)
    return values


def reference_states() -> ReferenceStates:
    """Where the reference ended, draw by draw."""
    return record_from_bytes(_read("states.json", STATES_SHA256), ReferenceStates, "states.json")


def _load(name: str, sha256: str) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = np.load(io.BytesIO(_read(name, sha256)), allow_pickle=False)
    return array


def _read(name: str, sha256: str) -> bytes:
    try:
        data = (FOLDER / name).read_bytes()
    except OSError as error:
        message = f"{name}: expected a readable file, found: {error.strerror}"
        raise VerificationMismatch("frozen_mismatch", message) from None
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise VerificationMismatch("frozen_mismatch", f"{name}: sha256: expected {sha256}, found {found}")
    return data


PINNED = PinnedSet(name="learner", seeds=SEEDS, manifest_sha256=MANIFEST_SHA256, predictions=predictions)
"""The eleven draws. Their predictions come from here, so that the set is built without torch."""
