"""Stored qualifications in the form the qualification detector takes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, exists, select

from regression.detectors.qualification import Case, QualificationBaseline, QualificationRun, judge_qualification
from regression.results import tables
from regression.results.checks import Finding
from regression.results.history import StoredBaseline, closest_of_device_kind, name_of, problem_of, run_by_id
from regression.results.surroundings import beside_changes

IMPORTED = "import"


def qualification_findings(connection: Connection, run: Row[Any]) -> list[Finding]:
    """The qualification of a run, and whether it is as complete as that of its baseline."""
    baseline, stored = qualification_baseline(connection, run)
    found = judge_qualification(qualification_run(connection, run.run_id), baseline, problem_of(run))
    found = beside_changes(connection, run, found, stored.run_id if stored else None)
    return [Finding(found, stored.baseline_id if stored else None)]


def qualification_run(connection: Connection, run_id: str) -> QualificationRun | None:
    """The qualification of a run as the detector takes it; None where there is none."""
    made, case = tables.qualification, tables.qualification_case
    row = connection.execute(select(made).where(made.c.run_id == run_id)).one_or_none()
    if row is None:
        return None
    cases = connection.execute(select(case).where(case.c.run_id == run_id).order_by(case.c.case_name))
    return QualificationRun(
        passed=row.passed,
        checks=row.checks,
        cases=tuple(Case(c.case_name, c.passed, c.checks, tuple(c.failures)) for c in cases),
        computed_on=row.computed_on,
        maximum_abs_error=row.maximum_abs_error,
        tolerance=row.tolerance,
        problem=problem_of(row),
    )


def qualification_baseline(
    connection: Connection, run: Row[Any]
) -> tuple[QualificationBaseline | None, StoredBaseline | None]:
    """The closest accepted run that was qualified here: an imported record counts its checks in its own way."""
    accepted, made = tables.run.alias("qualified"), tables.qualification.c
    qualified = exists().where(
        accepted.c.run_id == tables.baseline.c.run_id,
        accepted.c.trigger != IMPORTED,
        made.run_id == accepted.c.run_id,
        made.passed,
    )
    found = closest_of_device_kind(connection, run, qualified, (qualified,))
    if found is None:
        return None, None
    stored = run_by_id(connection, found.run_id)
    qualification = qualification_run(connection, found.run_id)
    if stored.trigger == IMPORTED or qualification is None or not qualification.passed:
        return None, None
    return QualificationBaseline(name_of(stored), {case.name: case.checks for case in qualification.cases}), found
