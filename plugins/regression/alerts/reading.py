"""Judged runs as the results database has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, select

from regression.alerts import texts
from regression.alerts.judged import Check, JudgedRun
from regression.results import tables

FIGURES = ("value", "baseline_value", "baseline_low", "baseline_high", "direction", "baseline_id")


def judged_run(connection: Connection, run_id: str) -> JudgedRun | None:
    """A stored run with what its checks found; None where there is no such run."""
    return next(iter(_judged(connection, tables.run.c.run_id == run_id)), None)


def judged_since(connection: Connection, workload: str, device_id: int | None, since: datetime) -> list[JudgedRun]:
    """Runs of a workload (on one device, where one is given) that began at ``since`` or later, oldest first.

    Withdrawn ones are left out: nothing is to be concluded from them.
    """
    run, withdrawal = tables.run.c, tables.withdrawal.c
    withdrawn = select(withdrawal.run_id).where(withdrawal.scope == "all")
    wanted = [run.workload == workload, run.started_at >= since, run.run_id.not_in(withdrawn)]
    return _judged(connection, *wanted, *([run.device_id == device_id] if device_id is not None else []))


def _judged(connection: Connection, *wanted: ColumnElement[bool]) -> list[JudgedRun]:
    run, device = tables.run, tables.device
    stored = connection.execute(
        select(run, device.c.name.label("device"))
        .select_from(run.outerjoin(device))
        .where(*wanted)
        .order_by(run.c.started_at, run.c.run_id)
    ).all()
    steps = _steps(connection, [row.run_id for row in stored])
    return [
        JudgedRun(
            run_id=row.run_id,
            dag_id=row.dag_id,
            dag_run_id=row.dag_run_id,
            workload=row.workload,
            trigger=row.trigger,
            started_at=row.started_at,
            verdict=row.verdict,
            reason_code=row.reason_code,
            reason=row.reason_message,
            device_id=row.device_id,
            device=row.device,
            checks=_checks(steps.get(row.run_id, [])),
            label=row.label,
            inject=row.inject,
            candidate=row.candidate,
            has_kernel=row.kernel_ptx_sha256 is not None,
        )
        for row in stored
    ]


def _steps(connection: Connection, run_ids: Sequence[str]) -> dict[str, list[Row[Any]]]:
    """Every step of every check of these runs, with the run that each was compared with, in order."""
    check, baseline, accepted = tables.check_result, tables.baseline, tables.run.alias("accepted")
    stored = connection.execute(
        select(
            check,
            accepted.c.dag_run_id.label("accepted_run"),
            baseline.c.accepted_at,
            baseline.c.accepted_by,
        )
        .select_from(
            check.outerjoin(baseline, baseline.c.baseline_id == check.c.baseline_id).outerjoin(
                accepted, accepted.c.run_id == baseline.c.run_id
            )
        )
        .where(check.c.run_id.in_(run_ids))
        .order_by(check.c.check_name, check.c.step)
    )
    found: dict[str, list[Row[Any]]] = {}
    for row in stored:
        found.setdefault(row.run_id, []).append(row)
    return found


def _checks(steps: Iterable[Row[Any]]) -> list[Check]:
    """The last step of each check, with what the one before it found."""
    by_name: dict[str, list[Row[Any]]] = {}
    for row in steps:
        by_name.setdefault(row.check_name, []).append(row)
    return [_check(rows[-1], rows[0] if len(rows) > 1 else None) for rows in by_name.values()]


def _check(row: Row[Any], first: Row[Any] | None) -> Check:
    accepted = row.accepted_run and f"{row.accepted_run}, {texts.moment(row.accepted_at)}, by {row.accepted_by}"
    return Check(
        name=row.check_name,
        verdict=row.verdict,
        metric=row.metric,
        unit=row.unit,
        reason_code=row.reason_code,
        plain_reason=texts.without_changes(row.reason),
        **{name: getattr(row, name) for name in FIGURES},
        details=row.details,
        baseline=accepted,
        first_look=first and texts.first_look(_check(first, None), row.verdict),
    )
