"""Columns of ``run`` about its confirmation rounds."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Integer, Text
from sqlalchemy.dialects.postgresql import JSONB

from regression.results.columns import optional

CONFIRMATION = (
    "confirmation_rounds",
    "confirmation_reason_code",
    "confirmation_reason_message",
    "confirmation_looks",
)
"""All of them are there, or none: nobody looked."""


def confirmation_columns() -> tuple[Column[Any], ...]:
    """How many were planned, why, and the figures that say so."""
    return (
        optional(
            "confirmation_rounds",
            Integer,
            "Confirmation rounds planned after a look at the first rounds; 0: nothing to confirm; NULL: nobody looked",
        ),
        optional(
            "confirmation_reason_code",
            Text,
            "Documented snake_case word for what is to be confirmed, or why nothing is",
        ),
        optional(
            "confirmation_reason_message",
            Text,
            "One line for people: what is to be confirmed, or why nothing is",
        ),
        optional(
            "confirmation_looks",
            JSONB(none_as_null=True),
            "The figures of the first rounds against the spread of their baselines: check, verdict, figures with unit, "
            "out_of_spread",
        ),
    )
