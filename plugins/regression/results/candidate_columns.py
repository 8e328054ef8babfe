"""Columns of ``run`` about a kernel that is tried: what it is, and what it is held against."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, CheckConstraint, Text, false
from sqlalchemy.dialects.postgresql import JSONB

from regression.results.columns import json_kind, optional, required, sha256

COMPARISON = "comparison"
"""Arm of the rounds in which two kernels took turns; every other arm is of the kernel that the run is of."""

PINNED, EMULATED = "pinned-", "emulated-"
"""Before the name of a case that was not the kernel of the run on its device: the other kernel, the emulator."""


def candidate_columns() -> tuple[Any, ...]:
    """Whether it is tried, where it comes from, and the other kernel; the latter are NULL for every night."""
    return (
        required(
            "candidate",
            Boolean,
            "Whether it tries a kernel that nights do not run; such a run is no night and in no series",
            server_default=false(),
        ),
        optional(
            "candidate_origin",
            JSONB(none_as_null=True),
            "Where the tried kernel comes from: spec, origin, commit, modified, bundle, kernel, against_bundle, "
            "equals_pinned, notes; NULL: not known, or no candidate",
        ),
        optional("pinned_variant", Text, "Variant of the kernels that it was held against"),
        optional("pinned_ptx_sha256", Text, "sha256 of the PTX that it was held against"),
        json_kind("candidate_origin", "object"),
        sha256("pinned_ptx_sha256"),
        CheckConstraint(
            "candidate OR num_nonnulls(candidate_origin, pinned_variant, pinned_ptx_sha256) = 0", name="candidate"
        ),
        CheckConstraint("pinned_ptx_sha256 IS NULL OR pinned_variant IS NOT NULL", name="pinned"),
    )
