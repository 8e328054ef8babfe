"""Finds the night that did not come: what is planned, what the database has, and what lies in the folders of runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from gpu_tasks.records import BadInput, Outcome, parse_utc, run_id_for
from regression.alerts.signal import MISSING, NIGHT, Signal
from regression.detectors.missing_night import (
    LOOK_BACK,
    Attempt,
    Night,
    Plan,
    judge_nights,
    lost_nights,
    planned_nights,
)
from regression.nights.folder import safe_name
from regression.results import tables
from regression.results.spool import PENDING

BY_PLAN = ("scheduled", "backfill")
BY_HAND = "manual"
MARGIN = timedelta(days=1)  # a run may be older than the night that its logical date names


@dataclass(frozen=True)
class Watched:
    """Which nights are watched, and where their traces are.

    ``by_hand``: a run that somebody asked for counts as a night. ``stopped_at``: when the nights were stopped on
    purpose; they are missed all the same, and whoever is told is told that, too.
    """

    dag_id: str
    workload: str
    plan: Plan
    runs: Path | None = None
    records: Path | None = None
    by_hand: bool = False
    stopped_at: datetime | None = None


def watch(connection: Connection, watched: Watched, now: datetime, look_back: timedelta = LOOK_BACK) -> list[Night]:
    """What became of each night up to ``now`` (aware), oldest first."""
    planned = planned_nights(watched.plan, now, look_back)
    if not planned:
        return []
    since = planned[0] - MARGIN
    attempts = {a.dag_run_id: a for a in _in_folders(watched, since)}
    for stored in _stored(connection, watched, since):
        known = attempts.get(stored.dag_run_id)
        signed = replace(stored, last_sign=known.last_sign, last_part=known.last_part) if known else stored
        attempts[stored.dag_run_id] = signed
    return judge_nights(watched.plan, attempts.values(), now, look_back)


def night_signal(watched: Watched, nights: Sequence[Night]) -> Signal | None:
    """What somebody must be told of the nights; None where the latest decided one is complete.

    The words are those of the latest lost night, so that the same one is told once, however often it is looked at.
    """
    lost = lost_nights(nights)
    if not lost:
        return None
    latest = lost[0]
    several = f", {len(lost)} nights in a row" if len(lost) > 1 else ""
    facts = [("planned", f"{watched.plan.cron} ({watched.plan.timezone}), a result within {watched.plan.deadline}")]
    facts += [(f"{night.planned:%Y-%m-%d %H:%M} UTC", f"{night.state.value}: {night.reason}") for night in lost[1:]]
    if watched.stopped_at:
        facts.append(("stopped", f"by `./nightly down` at {watched.stopped_at:%Y-%m-%d %H:%M} UTC"))
    where = f"./nightly logs {latest.attempts[-1].dag_run_id}" if latest.attempts else "./nightly status"
    return Signal(
        workload=watched.workload,
        metric=NIGHT,
        direction=MISSING,
        outcome=Outcome.INFRASTRUCTURE_FAILURE.value,
        headline=f"the night of {latest.planned:%Y-%m-%d %H:%M} UTC is {latest.state.value}{several}: {latest.reason}",
        facts=(*facts, ("look", where)),
        night=latest.planned,
        value=float(len(lost)),
        baseline_value=0.0,
        unit="nights",
    )


def _stored(connection: Connection, watched: Watched, since: datetime) -> Iterator[Attempt]:
    run = tables.run.c
    triggers = (*BY_PLAN, *([BY_HAND] if watched.by_hand else []))
    stored = connection.execute(
        select(run.dag_run_id, run.started_at, run.logical_date, run.verdict).where(
            run.dag_id == watched.dag_id, run.trigger.in_(triggers), run.started_at >= since, ~run.candidate
        )
    )
    for row in stored:
        yield Attempt(row.dag_run_id, row.started_at, row.logical_date, stored=True, verdict=row.verdict)


def _in_folders(watched: Watched, since: datetime) -> Iterator[Attempt]:
    """Runs that left a request, accepted or refused; what cannot be read is no run."""
    folder = watched.runs / safe_name(watched.dag_id) if watched.runs else None
    if folder is None or not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        with suppress(OSError):
            if datetime.fromtimestamp(path.stat().st_mtime, UTC) < since:
                continue
        request = _request(path)
        if request is None or request.get("trigger") not in (*BY_PLAN, *([BY_HAND] if watched.by_hand else [])):
            continue
        if request.get("candidate") is not None or request.get("kernel_changed"):
            continue  # it tries another kernel than the night's
        with suppress(BadInput, KeyError, TypeError, AttributeError):
            name, date = str(request["dag_run_id"]), request.get("logical_date")
            sign, part = _last_sign(path)
            pending = (
                watched.records / PENDING / f"{run_id_for(watched.dag_id, name)}.json" if watched.records else None
            )
            yield Attempt(
                name,
                parse_utc(request["accepted_at"]),
                parse_utc(date) if date else None,
                waits=bool(pending and pending.exists()),
                last_sign=sign,
                last_part=part,
            )


def _request(folder: Path) -> dict[str, Any] | None:
    """The request of a run, also of one that was refused; read leniently, for it is only looked at."""
    for name, inner in (("request.json", None), ("refused.json", "request")):
        with suppress(OSError, ValueError, AttributeError):
            found = json.loads((folder / name).read_text(encoding="utf-8"))
            request = found.get(inner) if inner else found
            if isinstance(request, dict):
                return request
    return None


def _last_sign(folder: Path) -> tuple[datetime | None, str | None]:
    """Time and name of the newest record of a run."""
    newest: tuple[float, str] | None = None
    for path in folder.glob("*.json"):
        with suppress(OSError):
            newest = max(newest or (0.0, ""), (path.stat().st_mtime, path.name))
    return (datetime.fromtimestamp(newest[0], UTC), newest[1]) if newest else (None, None)


__all__ = ["Night", "Watched", "lost_nights", "night_signal", "watch"]
