"""What the programs need to know of a workload: sizes, features, checks, reference answer and pinned draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from gpu_tasks.float32 import Float32Array

Labels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PinnedSet:
    """A set of draws that is known before it is built: it comes out with this manifest or not at all.

    ``predictions`` gives the frozen predictions of a draw by number, for a set that is built without the reference;
    None: the reference makes them. The rest is provenance for the manifest; without ``source_sha256`` that is the
    hashes of what the set is built from.
    """

    name: str
    seeds: tuple[int, ...]
    manifest_sha256: str
    predictions: Callable[[int], Labels] | None = None
    source_sha256: Mapping[str, str] | None = None
    prediction_manifest_sha256: str | None = None
    draw_manifest_sha256: str | None = None


class DrawnWorkload(Protocol):
    """Train on ``train_samples`` labelled samples and predict ``query_samples`` more: one task, one draw.

    A sample has ``feature_count`` float32 features. This is what sets of draws need to know of a workload.
    """

    name: str
    train_samples: int
    query_samples: int
    feature_count: int
    class_count: int
    pinned_sets: Mapping[str, PinnedSet]

    def features(self, images: npt.NDArray[np.uint8]) -> Float32Array:
        """(n, feature_count) float32 features of (n, 28, 28) uint8 images, the same bits on every machine."""

    def check_inputs(self, x: Float32Array, labels: Labels, q: Float32Array) -> None:
        """Raise ``BadInput`` when no correct answer exists for these inputs, naming array and class.

        ``x`` (n, feature_count) float32, ``labels`` (n,) int64, ``q`` (m, feature_count) float32, any n and m.
        """

    def predict(self, x: Float32Array, labels: Labels, q: Float32Array) -> Labels:
        """(m,) int64 classes by the reference algorithm in float64; raises ``BadInput`` as ``check_inputs`` does."""


class Workload(DrawnWorkload, Protocol):
    """A workload that devices run kernels of. ``benchmark_draw`` is the draw that measurement rounds run on."""

    benchmark_draw: int

    def scores(self, x: Float32Array, labels: Labels, q: Float32Array) -> npt.NDArray[np.float64]:
        """(m, class_count) scores of the reference in float64, of which ``predict`` takes the first highest."""

    def moved_inputs(self, x: Float32Array, q: Float32Array) -> tuple[Float32Array, Float32Array]:
        """Training samples and queries of the same problem where float32 has less room: a test of kernels' arithmetic.

        Up to the rounding of the inputs themselves, which the reference sees as well, the exact answer is the same.
        """

    def intermediates(self, x: Float32Array, labels: Labels, q: Float32Array) -> dict[str, Float32Array]:
        """Named intermediate values of the reference, rounded to float32, to compare a device's with."""
