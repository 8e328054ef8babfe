"""What the programs need to know of a workload: sizes, features, checks, reference answer and pinned draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from gpu_tasks.float32 import Float32Array
from gpu_tasks.records import QualificationCase, ReferenceState

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
    """A workload that devices run.

    ``benchmark_draw`` is the draw that measurement rounds run on, ``protocol`` the one they follow on a device with an
    energy counter, ``plain_protocol`` on one without. ``classic_repeats`` has the replays of a classic round on models
    whose history has a fixed number of them, by a part of the model's name.
    """

    benchmark_draw: int
    protocol: str
    plain_protocol: str
    classic_repeats: Mapping[str, int]

    def scores(self, x: Float32Array, labels: Labels, q: Float32Array) -> npt.NDArray[np.float64]:
        """(m, class_count) scores of the reference in float64, of which ``predict`` takes the first highest."""

    def moved_inputs(self, x: Float32Array, q: Float32Array) -> tuple[Float32Array, Float32Array]:
        """Training samples and queries of the same problem where float32 has less room: a test of kernels' arithmetic.

        Up to the rounding of the inputs themselves, which the reference sees as well, the exact answer is the same.
        """

    def intermediates(self, x: Float32Array, labels: Labels, q: Float32Array) -> dict[str, Float32Array]:
        """Named intermediate values of the reference, rounded to float32, to compare a device's with."""

    def reference_state(
        self, x: Float32Array, labels: Labels, q: Float32Array, draw: int | None
    ) -> ReferenceState | None:
        """Where the reference ends on these inputs, beside where it ended when ``draw`` was frozen.

        ``draw`` is the number in the workload's own pinned set, None for inputs of another. Null where a reference
        leaves nothing but its predictions.
        """


@dataclass(frozen=True)
class Qualification:
    """What ``QualifiedWorkload.qualify`` found; the names are those of ``gpu_tasks.records.QualificationRecord``."""

    computed_on: str
    captured: bool
    maximum_abs_error: float
    tolerance: dict[str, float]
    cases: list[QualificationCase]


@runtime_checkable
class QualifiedWorkload(Protocol):
    """A workload that has an independent implementation to be held against, beside its reference."""

    def qualify(self, device_kind: str) -> Qualification:
        """Check everything on a device of this kind; a failed check is a result. Raises what the device lacks."""
