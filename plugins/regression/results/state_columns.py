"""Columns of ``validation`` about what a workload that trains started from and left behind."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, CheckConstraint, Text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from regression.results.columns import json_kind, optional, required, sha256


def state_columns() -> tuple[Any, ...]:
    """Hashes of the eager run and of the reference, and whether replays gave the former again; else NULL or empty."""
    return (
        optional(
            "state_hashes",
            JSONB(none_as_null=True),
            "sha256 by name of what the eager run started from and left behind; NULL: nothing but its predictions",
        ),
        required("replay_states_equal", ARRAY(Boolean), "For each replay, whether it left all of these behind again"),
        optional(
            "reference_state_name",
            Text,
            "What is hashed of where the reference ended, for example state_grid_sha256; NULL: no reference was run",
        ),
        optional(
            "reference_state_expected_sha256",
            Text,
            "Where the reference ended when the draw was frozen; NULL: not known",
        ),
        optional("reference_state_found_sha256", Text, "Where the reference ended now, on this host"),
        json_kind("state_hashes", "object"),
        sha256("reference_state_expected_sha256"),
        sha256("reference_state_found_sha256"),
        CheckConstraint(
            "(reference_state_name IS NULL) = (reference_state_found_sha256 IS NULL)"
            " AND (reference_state_expected_sha256 IS NULL OR reference_state_name IS NOT NULL)",
            name="reference_state",
        ),
        CheckConstraint(
            "outcome <> 'ok' OR true = ALL (replay_states_equal)"
            " AND coalesce(reference_state_expected_sha256 = reference_state_found_sha256, true)",
            name="states",
        ),
    )
