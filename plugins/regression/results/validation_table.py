"""The table of validations: the device's predictions against the frozen ones, and what it left behind beside them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, CheckConstraint, ForeignKey, Integer, SmallInteger, Table, Text, UniqueConstraint
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

from regression.results.columns import (
    DOUBLE,
    OUTCOMES,
    TIMESTAMP,
    json_kind,
    metadata,
    not_blank,
    one_of,
    optional,
    reason_columns,
    required,
    sha256,
)


def _state_columns() -> tuple[Any, ...]:
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


validation = Table(
    "validation",
    metadata,
    required("run_id", UUID(as_uuid=False), "Run", ForeignKey("run.run_id"), primary_key=True),
    required("case_name", Text, "What was validated, for example draw-03", primary_key=True),
    optional("draw", SmallInteger, "Number of the draw, where the case is one"),
    required("outcome", Text, "Class of outcome: regression when a prediction or a replay differs"),
    *reason_columns(),
    optional("payload_sha256", Text, "sha256 of the file with the draw's arrays, as found"),
    optional("total", Integer, "Predictions made; NULL when the case could not be run"),
    optional("agreed", Integer, "Predictions equal to the frozen ones"),
    optional("device_correct", Integer, "Predictions of the device equal to the true label"),
    optional("reference_correct", Integer, "Frozen predictions equal to the true label"),
    optional("predictions_int32_sha256", Text, "sha256 of the predictions as little-endian int32"),
    required("mismatches", JSONB, "Every prediction that differs: index, expected, found"),
    required("replays_equal_eager", ARRAY(Boolean), "For each replay, whether it gave the eager run's predictions"),
    optional("scratch_poisoned", Boolean, "Whether scratch memory was poisoned before the eager run and each replay"),
    optional("graph_reused", Boolean, "Whether one captured graph was reused across changed inputs"),
    optional("floats_equal_reference", Boolean, "Whether intermediate floats equal the reference bit by bit"),
    optional("duration_s", DOUBLE, "Time the case took, s"),
    required("created_at", TIMESTAMP, "When its record was written (UTC)"),
    *_state_columns(),
    UniqueConstraint("run_id", "draw"),
    one_of("outcome", OUTCOMES),
    CheckConstraint("outcome = 'ok' OR reason_code IS NOT NULL", name="reason"),
    CheckConstraint("(total IS NULL) = (agreed IS NULL) AND agreed BETWEEN 0 AND total", name="agreed"),
    CheckConstraint("device_correct BETWEEN 0 AND total", name="device_correct"),
    CheckConstraint("reference_correct BETWEEN 0 AND total", name="reference_correct"),
    CheckConstraint("outcome <> 'ok' OR agreed = total", name="all_agreed"),
    CheckConstraint("jsonb_array_length(mismatches) = total - agreed", name="mismatches"),
    CheckConstraint("draw >= 0", name="draw"),
    CheckConstraint("duration_s >= 0", name="duration_s"),
    json_kind("mismatches", "array"),
    not_blank("case_name", "case_name"),
    sha256("payload_sha256"),
    sha256("predictions_int32_sha256"),
    comment="Validations: the device's predictions against the frozen ones, one row a draw",
)

__all__ = ["validation"]
