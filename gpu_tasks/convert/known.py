"""What is known of the originals and stands in none of them: their names, and what became of their figures."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from gpu_tasks.records import Reason, parse_utc

NAMES = {
    ("GPU-98d97ad6-4528-7be9-28a9-1508130aa10e", "2026-09-15T11:55:29Z"): "qda-eleven-draws",
    ("GPU-87335ec7-4260-ce3c-9bea-69a4ecbf5771", "2026-09-14T23:53:15.609021+00:00"): "learner-measure",
    ("GPU-1552a575-ab47-76b8-3221-83dd4cb89278", "2026-09-14T23:40:42.785484+00:00"): "learner-qualification",
}
"""Names of the three originals, by board and time of completion."""

NO_GATES = Reason(
    "gate_not_made", "the original measurement made no telemetry gates: nothing vouches for its energy counter"
)
WITHDRAWN = {
    "qda-eleven-draws": Reason(
        "power_telemetry_withdrawn",
        "the power telemetry of the host later failed its sanity checks and the energy figure was withdrawn: "
        "published as 0.010 mJ, truly about 0.59 mJ on healthy boards",
    )
}
"""Why the energy of an original is not only unverified."""


@dataclass(frozen=True)
class Predictions:
    """The learner's predictions on one draw, which every run of it gave so far, on CPU and GPU, to the last byte.

    ``int64_sha256`` and ``int32_sha256`` are of the ``total`` classes, ``npy_sha256`` of ``numpy.save`` of the int64
    ones; ``correct`` of them are right.
    """

    draw: int
    dataset_seed: int
    labels_sha256: str
    int64_sha256: str
    int32_sha256: str
    npy_sha256: str
    total: int
    correct: int


LEARNER_DRAW_0 = Predictions(
    draw=0,
    dataset_seed=2026091400,
    labels_sha256="72abc25a7a08e37d3ae171b30b3e5617ce288cafab5f4df112b352b93f2133fb",
    int64_sha256="37724115cb2d3242eb4a4f76d3a879ac92d729939320e5f6f2bd046bd631f200",
    int32_sha256="3a70c3c50987f658cbe92e2078fe1a06991f30ca81d12976d627a8579ab8a2b0",
    npy_sha256="fce8a9458d2158537c7d6207fb0c8e9cfcbba007e7a748976bf3e7cd002729f3",
    total=10_000,
    correct=8887,
)


def name_of(form: str, device_uuid: str, completed_at: str, content: dict[str, Any]) -> str:
    """Name of the run: an original's own, else the form and the start of the hash of what the record says."""
    known = NAMES.get((device_uuid, completed_at))
    if known:
        return known
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return f"{form}-{hashlib.sha256(canonical.encode()).hexdigest()[:12]}"


def record_time(text: str) -> str:
    """A time of an original, checked before, as our records write it."""
    return parse_utc(text).isoformat(timespec="microseconds").replace("+00:00", "Z")
