"""Tables of the energy measurement: figures with their uncertainty, power traces, telemetry and its gates."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Computed,
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

from gpu_tasks.records import FIGURES, GATES, TELEMETRY_MOMENTS
from regression.results.columns import (
    DOUBLE,
    OUTCOMES,
    POWER_KINDS,
    READINGS_APART,
    TIMESTAMP,
    json_kind,
    metadata,
    not_blank,
    one_of,
    optional,
    reason_columns,
    required,
)

REFERENCE_LOAD = "reference_"  # before the columns of one reference load, which are all there or all NULL
LOAD_FIELDS = (
    *("size", "repeats", "operations", "duration_s", "energy_j", "idle_w", "above_idle_w"),
    *("joules_per_1e12_operations", "tera_operations_per_s", "largest_error", "result_verified"),
)
LOW_DUTY = "low_duty_joules_per_1e12_operations"  # of the reference load, too, but not always made
WANDER = "idle_"  # before the columns of the idle power's own movement
WANDER_FIELDS = ("power_w", "slope_w_per_s", "walk_w_per_sqrt_s")


def _run_key() -> Column[Any]:
    return required("run_id", UUID(as_uuid=False), "Run", ForeignKey("run.run_id"), primary_key=True)


def _round_key() -> tuple[Any, ...]:
    return (
        required("run_id", UUID(as_uuid=False), "Run", primary_key=True),
        required("arm", Text, "What was measured, as in round", primary_key=True),
        required("round", SmallInteger, "Number of the round", primary_key=True),
        ForeignKeyConstraint(["run_id", "arm", "round"], ["round.run_id", "round.arm", "round.round"]),
    )


def _figure_key() -> tuple[Any, ...]:
    return (
        required(
            "figure", Text, "How it was measured: classic, aligned, audited, interleaved or trial", primary_key=True
        ),
        required(
            "subject", Text, "What it is of: candidate, baseline, control, or a difference of two", primary_key=True
        ),
        one_of("figure", FIGURES),
        CheckConstraint("btrim(subject) <> ''", name="subject"),
    )


def _trace_columns() -> tuple[Any, ...]:
    return (
        required("period_s", DOUBLE, "Time from sample to sample that was asked for, s"),
        optional("power_kind", Text, "instantaneous or average (of one second); NULL: no power was sampled"),
        required("csv", Text, "Samples as CSV with a header line; empty where a value could not be had"),
        optional("error_code", Text, "Why sampling ended early or cannot be relied upon: documented snake_case word"),
        optional("error_message", Text, "Why sampling ended early or cannot be relied upon: one line"),
        one_of("power_kind", POWER_KINDS),
        CheckConstraint("period_s > 0", name="period_s"),
        CheckConstraint("(error_code IS NULL) = (error_message IS NULL)", name="error"),
    )


def _all_or_none(prefix: str, names: tuple[str, ...]) -> CheckConstraint:
    columns = ", ".join(f"{prefix}{name}" for name in names)
    return CheckConstraint(f"num_nulls({columns}) IN (0, {len(names)})", name=f"{prefix}complete")


run_energy = Table(
    "run_energy",
    metadata,
    _run_key(),
    *_figure_key(),
    required("rounds", Integer, "Valid rounds that have the figure"),
    required("median_mj", DOUBLE, "Median over those rounds, mJ a replay; may be negative"),
    required("min_mj", DOUBLE, "Smallest of them, mJ a replay"),
    required("max_mj", DOUBLE, "Largest of them, mJ a replay"),
    optional("sample_sd_mj", DOUBLE, "Sample standard deviation (n-1), mJ a replay; NULL for one round"),
    optional(
        "detectable_mj",
        DOUBLE,
        "Smallest difference to another such run that is found in 80 of 100 cases at a level of 5 per cent, mJ",
    ),
    optional(
        "per_reference_load",
        DOUBLE,
        "Median in units of 10^9 operations of the reference load: what may be compared across boards",
    ),
    CheckConstraint("rounds > 0", name="rounds"),
    CheckConstraint("median_mj BETWEEN min_mj AND max_mj", name="median_mj"),
    CheckConstraint("sample_sd_mj >= 0", name="sample_sd_mj"),
    CheckConstraint("(rounds > 1) = (sample_sd_mj IS NOT NULL)", name="spread"),
    CheckConstraint("detectable_mj >= 0", name="detectable_mj"),
    comment="Energy of a replay over the valid rounds of a run, one row a figure",
)

round_energy = Table(
    "round_energy",
    metadata,
    *_round_key(),
    *_figure_key(),
    required("adjusted_mj", DOUBLE, "Energy a replay without idle energy, mJ; may be negative"),
    optional("gross_mj", DOUBLE, "Energy a replay with idle energy, mJ"),
    optional("idle_w", DOUBLE, "Idle power that was taken off, W"),
    required("tick_mj", DOUBLE, "Standard uncertainty from the update period of the counter, mJ a replay"),
    required("timing_mj", DOUBLE, "Standard uncertainty from the moment of a reading within its call, mJ a replay"),
    required("quantisation_mj", DOUBLE, "Standard uncertainty from the unit of the counter, mJ a replay"),
    required("drift_mj", DOUBLE, "Standard uncertainty from idle power that wanders, mJ a replay"),
    required("combined_mj", DOUBLE, "Standard uncertainty, all components together, mJ a replay"),
    required("bias_mj", DOUBLE, "What the way of measuring is expected to read too much, mJ a replay"),
    optional("degrees_of_freedom", DOUBLE, "Of the quantile that the interval was made with; NULL: a normal one"),
    required("low_mj", DOUBLE, "Lower edge of the 95 per cent interval, bias taken off, mJ a replay"),
    required("high_mj", DOUBLE, "Upper edge of the 95 per cent interval, bias taken off, mJ a replay"),
    CheckConstraint("least(tick_mj, timing_mj, quantisation_mj, drift_mj, combined_mj) >= 0", name="uncertainty"),
    CheckConstraint("degrees_of_freedom > 0", name="degrees_of_freedom"),
    CheckConstraint("low_mj <= high_mj", name="interval"),
    comment="Energy of a replay in one round with its uncertainty, one row a figure",
)

round_trace = Table(
    "round_trace",
    metadata,
    *_round_key(),
    *_trace_columns(),
    comment="Power samples of a round; may be deleted when old, everything else stays complete without them",
)

telemetry = Table(
    "telemetry",
    metadata,
    _run_key(),
    required("moment", Text, "before or after the rounds", primary_key=True),
    required("outcome", Text, "Class of outcome"),
    *reason_columns(),
    optional("energy_reason_code", Text, "Why the device has no energy to look at: documented snake_case word"),
    optional("energy_reason_message", Text, "Why the device has no energy to look at: one line"),
    optional("tick_period_s", DOUBLE, "Update period of the energy counter as measured, s"),
    optional("read_latency_s", DOUBLE, "Duration of one reading of the counter, s"),
    optional("idle_power_w", DOUBLE, "Mean power of a long idle stretch, context present, W"),
    optional("idle_slope_w_per_s", DOUBLE, "Steady slope of the idle power, W/s"),
    optional("idle_walk_w_per_sqrt_s", DOUBLE, "Random walk of the idle power, W a root of s"),
    optional("reference_size", Integer, "Reference load: n of its n x n x n matrix product"),
    optional("reference_repeats", Integer, "Reference load: products made"),
    optional("reference_operations", DOUBLE, "Reference load: operations of all of them"),
    optional("reference_duration_s", DOUBLE, "Reference load: time it took, s"),
    optional("reference_energy_j", DOUBLE, "Reference load: energy by the counter, J"),
    optional("reference_idle_w", DOUBLE, "Reference load: idle power that was taken off, W"),
    optional("reference_above_idle_w", DOUBLE, "Reference load: power above idle, W"),
    optional(
        "reference_joules_per_1e12_operations", DOUBLE, "Reference load: energy above idle, J per 10^12 operations"
    ),
    optional("reference_tera_operations_per_s", DOUBLE, "Reference load: 10^12 operations a second"),
    optional("reference_largest_error", DOUBLE, "Reference load: largest relative error of the elements checked"),
    optional("reference_result_verified", Boolean, "Reference load: whether its result is right"),
    optional(
        "reference_low_duty_joules_per_1e12_operations",
        DOUBLE,
        "The same products with pauses between them: energy above idle, J per 10^12 operations; NULL: not made",
    ),
    required("readings", JSONB, "States of the GPU before and after, counter steps and wander of the idle stretch"),
    required("created_at", TIMESTAMP, "When its record was written (UTC)"),
    Column(
        "power_limit_w",
        DOUBLE,
        Computed("(readings -> 'state_before' ->> 'power_limit_w')::double precision", persisted=True),
        comment="Power limit of the GPU before it, W; NULL: not known (taken from readings)",
    ),
    Index(
        "telemetry_power_limit_idx",
        "run_id",
        postgresql_include=["power_limit_w"],
        postgresql_where=text("moment = 'before'"),
    ),
    one_of("moment", TELEMETRY_MOMENTS),
    one_of("outcome", OUTCOMES),
    CheckConstraint("outcome = 'ok' OR reason_code IS NOT NULL", name="reason"),
    CheckConstraint("tick_period_s > 0", name="tick_period_s"),
    CheckConstraint("read_latency_s >= 0", name="read_latency_s"),
    CheckConstraint("least(reference_size, reference_repeats) > 0", name="reference_size"),
    CheckConstraint(
        "least(reference_operations, reference_duration_s, reference_tera_operations_per_s) > 0", name="reference_work"
    ),
    CheckConstraint("least(reference_largest_error, idle_walk_w_per_sqrt_s) >= 0", name="errors"),
    CheckConstraint("power_limit_w > 0", name="power_limit_w"),
    json_kind("readings", "object"),
    _all_or_none(REFERENCE_LOAD, LOAD_FIELDS),
    _all_or_none(WANDER, WANDER_FIELDS),
    **READINGS_APART,
    comment="The energy sensor before and after the rounds: a known load, the properties of the counter",
)

telemetry_trace = Table(
    "telemetry_trace",
    metadata,
    required("run_id", UUID(as_uuid=False), "Run", primary_key=True),
    required("moment", Text, "before or after the rounds", primary_key=True),
    ForeignKeyConstraint(["run_id", "moment"], ["telemetry.run_id", "telemetry.moment"]),
    *_trace_columns(),
    comment="Power samples of the reference load; may be deleted when old",
)

telemetry_gate = Table(
    "telemetry_gate",
    metadata,
    _run_key(),
    required("gate", Text, "Name of the gate", primary_key=True),
    required("at", Text, "Where it was checked: before, after, run (over all rounds) or round-NN", primary_key=True),
    optional("passed", Boolean, "Whether it passed; NULL: unchecked, which does not pass"),
    optional("value", DOUBLE, "What was found"),
    required("unit", Text, "Unit of value and bounds"),
    optional("low", DOUBLE, "Smallest value that passes"),
    optional("high", DOUBLE, "Largest value that passes"),
    optional("reason_code", Text, "Why it failed or could not be checked: documented snake_case word"),
    optional("reason_message", Text, "Why it failed or could not be checked: one line"),
    one_of("gate", GATES),
    not_blank("unit", "unit"),
    CheckConstraint("at ~ '^(before|after|run|round-[0-9]{2,4})$'", name="at"),
    CheckConstraint("passed IS TRUE OR reason_code IS NOT NULL", name="reason"),
    CheckConstraint("low <= high", name="bounds"),
    comment="Telemetry gates: what vouches for the energy of a run, one row a check",
)

__all__ = ["round_energy", "round_trace", "run_energy", "telemetry", "telemetry_gate", "telemetry_trace"]
