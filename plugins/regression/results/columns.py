"""Small words that the table definitions are written in: columns, constraints and the allowed values."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CheckConstraint, Column, DateTime, Double, Identity, Integer, MetaData, Text

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pk",
        "fk": "%(table_name)s_%(column_0_N_name)s_fk",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    }
)

OUTCOMES = (
    "ok",
    "regression",
    "bad_input",
    "invalid_measurement",
    "verification_mismatch",
    "infrastructure_failure",
)
VERDICTS = ("ok", "inconclusive", *OUTCOMES[1:])
CHECK_VERDICTS = ("ok", "regressed", "improved", "inconclusive", "invalid", "unavailable")
TRIGGERS = ("scheduled", "manual", "backfill", "import")
ENERGY_TRUST = ("verified", "failed", "unverified", "unavailable")
POWER_KINDS = ("instantaneous", "average")
DIRECTIONS = ("lower", "higher", "changed")
TIMESTAMP = DateTime(timezone=True)
DOUBLE: Double[float] = Double()


def required(name: str, kind: Any, comment: str, *rest: Any, **options: Any) -> Column[Any]:
    """A NOT NULL column with its comment."""
    return Column(name, kind, *rest, nullable=False, comment=comment, **options)


def optional(name: str, kind: Any, comment: str, *rest: Any) -> Column[Any]:
    """A column that may be NULL, with its comment."""
    return Column(name, kind, *rest, nullable=True, comment=comment)


def key(name: str, comment: str) -> Column[Any]:
    """A generated integer key."""
    return Column(name, Integer, Identity(always=True), primary_key=True, comment=comment)


def reason_columns() -> tuple[Column[Any], Column[Any]]:
    """Why an outcome is not ok, as records say it."""
    return (
        optional("reason_code", Text, "Documented snake_case word for why the outcome is not ok"),
        optional("reason_message", Text, "One line for people: why the outcome is not ok"),
    )


def one_of(column: str, words: tuple[str, ...]) -> CheckConstraint:
    """The column holds one of ``words``."""
    return CheckConstraint(f"{column} IN ({', '.join(repr(word) for word in words)})", name=column)


def sha256(column: str) -> CheckConstraint:
    """The column holds 64 lower-case hexadecimal digits."""
    return CheckConstraint(f"{column} ~ '^[0-9a-f]{{64}}$'", name=column)
