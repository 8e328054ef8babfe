"""Did every night come? From the plan of the nights and what is known of the runs: complete, running, missing, ...

Nothing here asks the scheduler: that the scheduler is dead is what this has to find. Pure: the clock is an argument.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from zoneinfo import ZoneInfo

from croniter import CroniterBadDateError, croniter

DEADLINE = timedelta(minutes=180)
LOOK_BACK = timedelta(days=7)


class NightState(str, Enum):
    """What became of a night.

    ``waiting``: no run yet, and time for one. ``running``: a run began and has time left. After the deadline a night
    without a run is ``missing``; one whose run left no record is ``stuck``; one whose record is not in the database, or
    was never judged, is ``incomplete``. A judged one is ``complete``, whatever the verdict: that has alerts of its own.
    """

    WAITING = "waiting"
    RUNNING = "running"
    COMPLETE = "complete"
    MISSING = "missing"
    STUCK = "stuck"
    INCOMPLETE = "incomplete"


UNDECIDED = (NightState.WAITING, NightState.RUNNING)
LOST = (NightState.MISSING, NightState.STUCK, NightState.INCOMPLETE)


@dataclass(frozen=True)
class Plan:
    """When nights are planned: a cron line in a time zone, from ``since`` (aware) on, each due after ``deadline``.

    Raises ``ValueError`` for a cron line, a time zone, a start or a deadline that is none.
    """

    cron: str
    timezone: str
    since: datetime
    deadline: timedelta = DEADLINE

    def __post_init__(self) -> None:
        if len(self.cron.split()) != 5 or not croniter.is_valid(self.cron):
            raise ValueError(f"cron: expected a line of five fields such as '0 2 * * *', found {self.cron!r}")
        if self.since.utcoffset() is None:
            raise ValueError(f"since: expected an aware time, found {self.since}")
        if self.deadline <= timedelta(0):
            raise ValueError(f"deadline: expected a time after the start of the night, found {self.deadline}")
        ZoneInfo(self.timezone)


@dataclass(frozen=True)
class Attempt:
    """A run that may be a night's, as database and run folder know it; times are aware.

    ``logical_date`` is the planned time that the scheduler gave it. ``stored``: it is in the database; ``waits``: its
    record is on its way there. ``verdict`` None: never judged. ``last_sign`` and ``last_part`` are the time and the
    name of the newest file of its folder.
    """

    dag_run_id: str
    started_at: datetime
    logical_date: datetime | None = None
    stored: bool = False
    waits: bool = False
    verdict: str | None = None
    last_sign: datetime | None = None
    last_part: str | None = None


@dataclass(frozen=True)
class Night:
    """One planned night (UTC), when its result is or was due, what became of it, and that in one line."""

    planned: datetime
    due: datetime
    state: NightState
    reason: str
    attempts: tuple[Attempt, ...] = ()


def planned_nights(plan: Plan, until: datetime, look_back: timedelta = LOOK_BACK) -> list[datetime]:
    """Planned times up to ``until``, oldest first, UTC: those of ``look_back``, and as far back as the latest due one.

    The clock on the wall decides: a time that the summer clock skips is the moment at which it would have come, one
    that comes twice is the first of the two.
    """
    zone = ZoneInfo(plan.timezone)
    # From a moment later than any that can be meant: on the wall, the hour after the clock was put back comes twice.
    wall = (until + timedelta(hours=3)).astimezone(zone).replace(tzinfo=None)
    found: set[datetime] = set()
    before = croniter(plan.cron, wall)
    while True:
        try:
            planned = before.get_prev(datetime).replace(tzinfo=zone).astimezone(UTC)
        except CroniterBadDateError:  # a date that there is not, such as 30 February
            break
        if planned > until:
            continue
        if planned < plan.since:
            break
        if planned < until - look_back and any(p + plan.deadline <= until for p in found):
            break
        found.add(planned)
    return sorted(found)


def judge_nights(
    plan: Plan, attempts: Iterable[Attempt], now: datetime, look_back: timedelta = LOOK_BACK
) -> list[Night]:
    """What became of each planned night up to ``now`` (aware), oldest first.

    A run belongs to the night whose planned time is its logical date, else to the latest one planned before it began.
    Of several runs of a night one that is complete suffices.
    """
    planned = planned_nights(plan, now, look_back)
    runs: dict[datetime, list[Attempt]] = {time: [] for time in planned}
    for attempt in attempts:
        night = _night_of(attempt, planned)
        if night is not None:
            runs[night].append(attempt)
    return [_judge(plan, time, runs[time], now) for time in planned]


def lost_nights(nights: Sequence[Night]) -> list[Night]:
    """The nights that are lost, newest first, back from the latest decided one; none where that one is complete.

    What was lost before a complete night was told then, and is over.
    """
    lost: list[Night] = []
    for night in reversed([night for night in nights if night.state not in UNDECIDED]):
        if night.state not in LOST:
            break
        lost.append(night)
    return lost


def _night_of(attempt: Attempt, planned: Sequence[datetime]) -> datetime | None:
    if attempt.logical_date is not None and attempt.logical_date.astimezone(UTC) in planned:
        return attempt.logical_date.astimezone(UTC)
    index = bisect_right(planned, attempt.started_at)
    return planned[index - 1] if index else None


def _judge(plan: Plan, planned: datetime, attempts: Sequence[Attempt], now: datetime) -> Night:
    due = planned + plan.deadline
    of_night = tuple(sorted(attempts, key=lambda a: (a.started_at, a.dag_run_id, a.stored, a.waits)))
    complete = [attempt for attempt in of_night if attempt.verdict is not None]
    if complete:
        return Night(planned, due, NightState.COMPLETE, f"{complete[-1].dag_run_id}: {complete[-1].verdict}", of_night)
    if not of_night:
        if now < due:
            return Night(planned, due, NightState.WAITING, f"no run yet; a result is due by {_minute(due)}")
        return Night(planned, due, NightState.MISSING, f"no run began, a result was due by {_minute(due)}")
    last = of_night[-1]
    due = max(due, last.started_at + plan.deadline)  # a night that is made up for has its own time to do so
    began = f"{last.dag_run_id} began at {_minute(last.started_at)}"
    if now < due:
        return Night(planned, due, NightState.RUNNING, f"{began}; a result is due by {_minute(due)}", of_night)
    if last.stored or last.waits:
        what = "was stored and never judged" if last.stored else "has a record that is not in the database yet"
        return Night(planned, due, NightState.INCOMPLETE, f"{began}, {what}, and was due by {_minute(due)}", of_night)
    sign = f"; last sign: {last.last_part} at {_minute(last.last_sign)}" if last.last_sign else ""
    return Night(planned, due, NightState.STUCK, f"{began} and has no result, due by {_minute(due)}{sign}", of_night)


def _minute(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
