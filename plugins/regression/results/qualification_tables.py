"""Tables of settings and qualifications: how a workload was set, and whether it computes what it should."""

from __future__ import annotations

from sqlalchemy import Boolean, CheckConstraint, ForeignKey, Integer, Table, Text
from sqlalchemy.dialects.postgresql import JSONB, UUID

from gpu_tasks.records import SETTING_ORIGINS
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
    together,
)

run_setting = Table(
    "run_setting",
    metadata,
    required("run_id", UUID(as_uuid=False), "Run", ForeignKey("run.run_id"), primary_key=True),
    required("name", Text, "Setting of a library, for example CUBLAS_WORKSPACE_CONFIG", primary_key=True),
    optional("value", Text, "What it was; NULL: unset"),
    required("origin", Text, "environment (set before the process began), program or unset"),
    one_of("origin", SETTING_ORIGINS),
    CheckConstraint("(origin = 'unset') = (value IS NULL)", name="unset"),
    not_blank("name", "name"),
    comment="Settings of the libraries that a run computed with, as they were in force",
)

qualification = Table(
    "qualification",
    metadata,
    required("run_id", UUID(as_uuid=False), "Run", ForeignKey("run.run_id"), primary_key=True),
    required("outcome", Text, "Class of outcome: regression when a check failed"),
    *reason_columns(),
    optional("computed_on", Text, "What the cases ran on where they ask for a device; NULL: it could not be asked"),
    optional("captured", Boolean, "Whether they ran as captured CUDA graphs"),
    optional("passed", Boolean, "Whether every check holds; NULL: none could be made"),
    optional("checks", Integer, "Single comparisons over all cases"),
    optional("maximum_abs_error", DOUBLE, "Largest absolute difference over all cases"),
    required("tolerance", JSONB, "What differences are held against: atol (absolute), rtol (relative)"),
    optional("duration_s", DOUBLE, "Time it took, s"),
    required("created_at", TIMESTAMP, "When its record was written (UTC)"),
    one_of("outcome", OUTCOMES),
    CheckConstraint("outcome = 'ok' OR reason_code IS NOT NULL", name="reason"),
    CheckConstraint("(outcome = 'ok') = (passed IS TRUE)", name="passed"),
    together("asked", "passed", "checks"),
    CheckConstraint("checks >= 0", name="checks"),
    CheckConstraint("maximum_abs_error >= 0", name="maximum_abs_error"),
    CheckConstraint("duration_s >= 0", name="duration_s"),
    json_kind("tolerance", "object"),
    comment="Qualifications: whether a workload computes what an independent implementation does, one row a run",
)

qualification_case = Table(
    "qualification_case",
    metadata,
    required("run_id", UUID(as_uuid=False), "Run", ForeignKey("qualification.run_id"), primary_key=True),
    required("case_name", Text, "What was checked", primary_key=True),
    required("passed", Boolean, "Whether every check of the case holds"),
    required("checks", Integer, "Single comparisons of the case"),
    required("failures", JSONB, "Names of those that do not hold"),
    required("figures", JSONB, "The case's own figures, by the names of the workload"),
    CheckConstraint("checks >= 0", name="checks"),
    CheckConstraint("passed = (failures = '[]')", name="passed"),
    not_blank("case_name", "case_name"),
    json_kind("failures", "array"),
    json_kind("figures", "object"),
    comment="Cases of qualifications with their figures",
)

__all__ = ["qualification", "qualification_case", "run_setting"]
