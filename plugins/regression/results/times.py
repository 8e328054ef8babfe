"""Stored times of a run and of its baseline in the form the time detector takes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, select, true

from regression.detectors import CheckVerdict, Problem
from regression.detectors.time import RoundTime, TimeBaseline, TimeRun, judge_time
from regression.results import tables
from regression.results.checks import Finding
from regression.results.history import (
    StoredBaseline,
    closest_of_device_kind,
    conditions_of,
    name_of,
    of_the_run,
    problem_of,
    rounds_expected,
    run_by_id,
)
from regression.results.steps import findings_by_step
from regression.results.surroundings import beside_changes

WITH_GPU_TIME = ("cuda", "simulated")
"""Kinds of device whose times are a GPU's, or stand for one's; those of a CPU say nothing about a kernel."""


def time_findings(connection: Connection, run: Row[Any]) -> list[Finding]:
    """The time of a run against its baseline: its first rounds, and these with the confirmation rounds if it has any.

    What else changed is said beside a change.
    """
    baseline, stored = time_baseline(connection, run)

    def judge(step: int) -> CheckVerdict:
        found = judge_time(time_run(connection, run, step), baseline)
        return beside_changes(connection, run, found, stored.run_id if stored else None)

    return findings_by_step(connection, run, stored.baseline_id if stored else None, judge)


def time_run(connection: Connection, run: Row[Any], step: int) -> TimeRun:
    """Rounds of a run, of that step and those before, as the time detector takes them."""
    return TimeRun(
        conditions=conditions_of(connection, run) if run.device_id is not None else None,
        rounds=_rounds(connection, run.run_id, step),
        rounds_expected=rounds_expected(run, step),
        no_gpu_time=no_gpu_time(run),
        problem=problem_of(run),
    )


def time_baseline(connection: Connection, run: Row[Any]) -> tuple[TimeBaseline | None, StoredBaseline | None]:
    """The baseline for time: the closest one there is, so that the detector can say what is different about it."""
    found = closest_of_device_kind(connection, run, tables.baseline.c.for_time)
    if found is None:
        return None, None
    accepted = run_by_id(connection, found.run_id)
    detector_input = TimeBaseline(
        name=name_of(accepted),
        conditions=conditions_of(connection, accepted),
        rounds=_rounds(connection, found.run_id),
        accepted=found.for_time,
    )
    return detector_input, found


def no_gpu_time(run: Row[Any]) -> Problem | None:
    """Why the times of a run's device are not judged; None where they are, or where no device is known."""
    if run.kind is None or run.kind in WITH_GPU_TIME:
        return None
    return Problem("ok", "no_gpu_time", f"the {run.kind} device has no GPU whose time could be measured")


def _rounds(connection: Connection, run_id: str, last_step: int | None = None) -> tuple[RoundTime, ...]:
    measured = tables.round_.c
    wanted = true() if last_step is None else measured.step <= last_step
    stored = connection.execute(
        select(measured.round, measured.valid, measured.cuda_ms, measured.repeats, measured.reason_code)
        .where(measured.run_id == run_id, wanted, of_the_run())
        .order_by(measured.arm, measured.round)
    )
    return tuple(RoundTime(row.round, row.valid, row.cuda_ms, row.repeats, row.reason_code) for row in stored)
