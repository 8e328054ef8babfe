"""Small words that the table definitions are written in: columns, constraints and the allowed values."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CheckConstraint, Column, DateTime, Double, Identity, Integer, MetaData, Table, Text

from gpu_tasks.records import Outcome

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pk",
        "fk": "%(table_name)s_%(column_0_N_name)s_fk",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    }
)

OUTCOMES = tuple(outcome.value for outcome in Outcome)
VERDICTS = ("ok", "inconclusive", *OUTCOMES[1:])
EXIT_CODES = {"inconclusive": 0} | {outcome.value: outcome.exit_code for outcome in Outcome}
CHECK_VERDICTS = ("ok", "regressed", "improved", "inconclusive", "invalid", "unavailable")
TRIGGERS = ("scheduled", "manual", "backfill", "import")
ENERGY_TRUST = ("verified", "failed", "unverified", "unavailable")
POWER_KINDS = ("instantaneous", "average")
DIRECTIONS = ("lower", "higher", "changed")
UNITS = (
    *("predictions", "mJ", "J", "ms", "s", "W", "ratio", "J per 10^12 operations", "nights", "versions"),
    *("bytes", "checks", "hashes"),
)
"""Of figures that runs are compared by: one word a unit, so that 990 ns never meets 1.1 us."""
ALERT_DIRECTIONS = (*DIRECTIONS, "missing")
ALERT_OUTCOMES = (*OUTCOMES[1:], "environment_change")
ALERT_STATES = ("open", "acknowledged", "muted", "resolved")
ALERT_EVENTS = (
    *("opened", "seen_again", "acknowledged", "muted", "mute_ended", "resolved", "reopened"),
    *("notified", "notification_failed"),
)
ALERT_CHANNELS = ("smtp", "slack", "webhook")
WITHDRAWAL_SCOPES = ("energy", "all")

BASELINE_KEY_OF_RUN = ("workload", "payload_id", "device_id", "protocol", "environment_id", "energy_trust")
"""What a baseline takes from its run; foreign keys over these columns keep the two from contradicting each other."""
TIMESTAMP = DateTime(timezone=True)
DOUBLE: Double[float] = Double()
READINGS_APART: dict[str, Any] = {"postgresql_with": {"toast_tuple_target": 128}}
"""Of a table with raw readings: they lie beside the figures, so that what asks for figures reads fewer pages."""


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


def not_blank(name: str, *columns: str) -> CheckConstraint:
    """Each of the columns that is not NULL says something."""
    return CheckConstraint(" AND ".join(f"btrim({column}) <> ''" for column in columns), name=name)


def together(name: str, *columns: str) -> CheckConstraint:
    """The columns are all there or all NULL."""
    return CheckConstraint(f"num_nulls({', '.join(columns)}) IN (0, {len(columns)})", name=name)


def json_kind(column: str, kind: str) -> CheckConstraint:
    """The column holds a JSON ``kind``: object or array."""
    return CheckConstraint(f"jsonb_typeof({column}) = '{kind}'", name=f"{column}_{kind}")


def refuse_infinities(table: Table) -> None:
    """No figure of ``table`` is infinite or NaN, which PostgreSQL sorts after infinity: what there is none of is NULL.

    One constraint over all of them, so that a figure added later cannot be forgotten.
    """
    names = ", ".join(column.name for column in table.columns if isinstance(column.type, Double))
    if names:
        largest, smallest = (f"{function}({names})" for function in ("greatest", "least"))
        table.append_constraint(CheckConstraint(f"{largest} < 'Infinity' AND {smallest} > '-Infinity'", name="finite"))
