"""The plan of the nights as a file: the launcher writes it, the watchdog reads it, whatever else is alive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from gpu_tasks.records import BadInput, parse_utc, read_record, write_record
from regression.detectors.missing_night import Plan
from regression.nights.workloads import DEFAULT

DEADLINE_MINUTES = 180


@dataclass(frozen=True)
class NightPlan:
    """Cron line, time zone, since when (UTC), minutes to the deadline, and when ``nightly down`` stopped it.

    ``workloads`` are those whose nights it is the plan of, by name.
    """

    kind: str  # "night_plan"
    cron: str
    timezone: str
    since: str
    deadline_minutes: int
    stopped_at: str | None = None
    workloads: list[str] = field(default_factory=lambda: [DEFAULT.name])

    def plan(self) -> Plan:
        """What the watchdog judges by; raises ``BadInput`` naming the field."""
        try:
            return Plan(self.cron, self.timezone, parse_utc(self.since), timedelta(minutes=self.deadline_minutes))
        except (ValueError, KeyError, OSError) as error:
            raise BadInput("bad_plan", str(error)) from None

    def stopped(self) -> datetime | None:
        """When the nights were stopped on purpose; None: they were not. Raises ``BadInput``."""
        return parse_utc(self.stopped_at) if self.stopped_at else None


def read_plan(path: Path) -> NightPlan | None:
    """The plan in a file; None where there is no file. Raises ``BadInput`` for one that is no plan."""
    return read_record(path, NightPlan) if path.exists() else None


def planned_now(
    path: Path,
    cron: str,
    timezone: str,
    deadline_minutes: int,
    now: datetime,
    *,
    workloads: Sequence[str] = (DEFAULT.name,),
) -> NightPlan:
    """Write down what is planned from now on; what was planned before and is the same goes on, unless it was stopped.

    So that nights before a change, and those while nothing was meant to run, are not missed.
    """
    try:
        before = read_plan(path)
    except BadInput:
        before = None  # damaged: a new one takes its place
    plan = NightPlan("night_plan", cron, timezone, now.isoformat(), deadline_minutes, workloads=sorted(workloads))
    same = before and (before.cron, before.timezone, before.workloads) == (cron, timezone, plan.workloads)
    if before and before.stopped_at is None and same:
        plan = replace(plan, since=before.since)
    plan.plan()
    write_record(plan, path)
    return plan


def stopped_now(path: Path, now: datetime) -> None:
    """Write down that the nights were stopped on purpose; nothing where none were planned."""
    try:
        before = read_plan(path)
    except BadInput:
        return
    if before and before.stopped_at is None:
        write_record(replace(before, stopped_at=now.isoformat()), path)
