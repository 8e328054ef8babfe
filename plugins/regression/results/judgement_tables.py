"""Tables of what is said of runs: baselines, verdicts of checks, withdrawals."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

from regression.results.columns import (
    BASELINE_KEY_OF_RUN,
    CHECK_VERDICTS,
    DIRECTIONS,
    DOUBLE,
    TIMESTAMP,
    UNITS,
    WITHDRAWAL_SCOPES,
    json_kind,
    key,
    metadata,
    not_blank,
    one_of,
    optional,
    required,
    together,
)

baseline = Table(
    "baseline",
    metadata,
    key("baseline_id", "Key"),
    required("workload", Text, "Workload"),
    required("payload_id", Integer, "Payload", ForeignKey("payload.payload_id")),
    required("device_id", Integer, "Device", ForeignKey("device.device_id")),
    required("protocol", Text, "Measurement protocol"),
    required("environment_id", Integer, "Environment of the accepted run"),
    required("environment_class", Text, "Versions that start a new baseline when they change, of that environment"),
    required("run_id", UUID(as_uuid=False), "The accepted run"),
    required("for_agreement", Boolean, "Whether predictions are compared with it (on every device)"),
    required("for_time", Boolean, "Whether times are compared with it (same device only)"),
    required("for_energy", Boolean, "Whether energies are compared with it (same device only)"),
    required("energy_trust", Text, "Trust in the energy of the accepted run"),
    required("accepted_by", Text, "Who accepted it"),
    required("accepted_at", TIMESTAMP, "When it was accepted (UTC)", server_default=text("now()")),
    required("reason", Text, "Why it was accepted"),
    optional("retired_at", TIMESTAMP, "When it stopped being current (UTC); NULL while it is"),
    optional("retired_by", Text, "Who ended it; NULL while it is current, and for those of the first versions"),
    optional("retired_reason", Text, "Why it was ended"),
    ForeignKeyConstraint(
        ["run_id", *BASELINE_KEY_OF_RUN],
        [f"run.{name}" for name in ("run_id", *BASELINE_KEY_OF_RUN)],
        "baseline_run_fk",
    ),
    ForeignKeyConstraint(
        ["environment_id", "environment_class"], ["environment.environment_id", "environment.environment_class"]
    ),
    Index(
        "baseline_current_key",
        *("workload", "payload_id", "device_id", "protocol", "environment_class"),
        unique=True,
        postgresql_where=text("retired_at IS NULL"),
    ),
    CheckConstraint("retired_at >= accepted_at", name="retired_at"),
    together("retired", "retired_by", "retired_reason"),
    CheckConstraint("retired_by IS NULL OR retired_at IS NOT NULL", name="retired_by"),
    not_blank("retired_reason", "retired_by", "retired_reason"),
    CheckConstraint("for_agreement OR for_time OR for_energy", name="purpose"),
    CheckConstraint("NOT for_energy OR energy_trust <> 'failed'", name="energy_trust"),
    not_blank("reason", "accepted_by", "reason"),
    comment="Accepted runs that others are compared with; at most one current one a key",
)

check_result = Table(
    "check_result",
    metadata,
    required("run_id", UUID(as_uuid=False), "Run", ForeignKey("run.run_id"), primary_key=True),
    required("check_name", Text, "agreement, energy, ...", primary_key=True),
    required(
        "step",
        SmallInteger,
        "0: the first rounds alone; 1: first and confirmation rounds together; the last one counts",
        primary_key=True,
    ),
    required("verdict", Text, "ok, regressed, improved, inconclusive, invalid or unavailable"),
    required("metric", Text, "What was compared"),
    required("unit", Text, "Unit of the figures"),
    optional("value", DOUBLE, "Figure of this run"),
    optional("baseline_value", DOUBLE, "Figure of the baseline"),
    optional("baseline_low", DOUBLE, "Lower edge of the baseline's spread"),
    optional("baseline_high", DOUBLE, "Upper edge of the baseline's spread"),
    optional("direction", Text, "Where the figure went: lower, higher or changed"),
    required("reason_code", Text, "Documented snake_case word for the verdict's reason"),
    required("reason", Text, "One line for people"),
    required("details", JSONB, "Everything else the check found"),
    optional("baseline_id", Integer, "Baseline compared with", ForeignKey("baseline.baseline_id")),
    required("checked_at", TIMESTAMP, "When the check ran (UTC)", server_default=text("now()")),
    one_of("verdict", CHECK_VERDICTS),
    one_of("direction", DIRECTIONS),
    one_of("unit", UNITS),
    json_kind("details", "object"),
    CheckConstraint("baseline_low <= baseline_high", name="baseline_spread"),
    CheckConstraint("step >= 0", name="step"),
    comment="Verdicts of the checks of each run",
)

withdrawal = Table(
    "withdrawal",
    metadata,
    required("run_id", UUID(as_uuid=False), "The withdrawn run", ForeignKey("run.run_id"), primary_key=True),
    required("scope", Text, "What of it must not be used any more: energy, or all of it", primary_key=True),
    required("withdrawn_by", Text, "Who withdrew it"),
    required("withdrawn_at", TIMESTAMP, "When that was recorded (UTC)", server_default=text("now()")),
    required("reason", Text, "Why it was withdrawn"),
    optional("successor_run_id", UUID(as_uuid=False), "Run to be used instead", ForeignKey("run.run_id")),
    optional("figures", Text, "The figures that were published, and what holds instead, with their units"),
    one_of("scope", WITHDRAWAL_SCOPES),
    CheckConstraint("successor_run_id <> run_id", name="successor"),
    not_blank("reason", "withdrawn_by", "reason"),
    not_blank("figures", "figures"),
    comment="Runs whose energy, or which altogether, must not be used any more; they stay readable",
)

__all__ = ["baseline", "check_result", "withdrawal"]
