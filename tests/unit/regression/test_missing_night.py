"""Which nights are planned, and what became of each: pure, with every clock that misleads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regression.detectors.missing_night import (
    LOST,
    UNDECIDED,
    Attempt,
    NightState,
    Plan,
    judge_nights,
    lost_nights,
    planned_nights,
)

START = datetime(2026, 11, 1, tzinfo=UTC)
DAILY = Plan("0 2 * * *", "UTC", START)


def at(day: int, hour: int = 2, minute: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


def run(day: int, hour: int = 2, minute: int = 0, **changes: object) -> Attempt:
    values = {"stored": True, "verdict": "ok", "logical_date": at(day)} | changes
    return Attempt(f"scheduled__{day:02d}", at(day, hour, minute), **values)  # type: ignore[arg-type]


UNFINISHED = {"stored": False, "verdict": None}


def states(now: datetime, *attempts: Attempt, plan: Plan = DAILY) -> list[str]:
    return [night.state.value for night in judge_nights(plan, attempts, now, timedelta(days=2))]


def test_a_night_has_until_its_deadline() -> None:
    before = [run(28), run(29)]
    assert states(at(30, 4, 59), *before) == ["complete", "complete", "waiting"][1:]
    assert states(at(30, 5), *before) == ["complete", "missing"]
    assert states(at(30, 1, 59), *before) == ["complete", "complete"]
    (*_, night) = judge_nights(DAILY, before, at(30, 5))
    assert night.reason == "no run began, a result was due by 2026-11-30 05:00 UTC"
    assert night.due == at(30, 5)


@pytest.mark.parametrize(
    ("changes", "now", "state", "told"),
    [
        ({}, at(30, 4, 59), "complete", "scheduled__30: ok"),
        ({"verdict": "infrastructure_failure"}, at(30, 9), "complete", "scheduled__30: infrastructure_failure"),
        (UNFINISHED, at(30, 5, 9), "running", "began at 2026-11-30 02:10 UTC; a result is due by 2026-11-30 05:10 UTC"),
        (UNFINISHED, at(30, 5, 10), "stuck", "and has no result, due by 2026-11-30 05:10 UTC"),
        (
            UNFINISHED | {"last_sign": at(30, 2, 14), "last_part": "round-03.json"},
            at(30, 6),
            "stuck",
            "due by 2026-11-30 05:10 UTC; last sign: round-03.json at 2026-11-30 02:14 UTC",
        ),
        (UNFINISHED | {"waits": True}, at(30, 6), "incomplete", "has a record that is not in the database yet"),
        ({"verdict": None}, at(30, 5, 10), "incomplete", "was stored and never judged"),
        ({"verdict": None}, at(30, 5, 9), "running", "a result is due by"),
    ],
)
def test_what_became_of_a_run_that_began(changes: dict[str, object], now: datetime, state: str, told: str) -> None:
    (night,) = judge_nights(Plan("0 2 * * *", "UTC", at(30, 1)), [run(30, 2, 10, **changes)], now)
    assert (night.state.value, told in night.reason) == (state, True), night.reason


def test_a_night_that_is_made_up_for_has_its_own_time() -> None:
    """The machine was off at two; the scheduler runs the night at nine."""
    late = run(30, 9, 0, **UNFINISHED)
    assert states(at(30, 9, 5), run(29), late) == ["complete", "running"]
    assert states(at(30, 12), run(29), late) == ["complete", "stuck"]
    assert states(at(30, 12), run(29), run(30, 9)) == ["complete", "complete"]


def test_of_two_runs_of_a_night_one_that_is_complete_suffices() -> None:
    """Two backfills of one date, a cleared run, an hour that came twice (Airflow 47670)."""
    again = Attempt("backfill__30", at(30, 3), at(30), stored=True, verdict="ok")
    broken = run(30, **UNFINISHED)
    for order in ([broken, again], [again, broken]):
        assert states(at(30, 9), run(29), *order) == ["complete", "complete"]
    both = [broken, Attempt("backfill__30", at(30, 3), at(30))]
    (*_, night) = judge_nights(DAILY, both, at(30, 9))
    assert night.state is NightState.STUCK and night.reason.startswith("backfill__30 began at 2026-11-30 03:00")
    # The other night of the two is not helped by it.
    assert states(at(30, 9), again) == ["missing", "complete"]


def test_a_run_without_a_fitting_logical_date_is_of_the_night_that_it_began_in() -> None:
    other = Attempt("x", at(30, 2, 1), at(29, 23), stored=True, verdict="ok")
    none = Attempt("x", at(30, 2, 1), None, stored=True, verdict="ok")
    for found in (other, none):
        assert states(at(30, 9), run(29), found) == ["complete", "complete"]
    assert states(at(30, 9), run(29), Attempt("x", at(30, 1, 59), None, stored=True, verdict="ok")) == [
        "complete",
        "missing",
    ]


def test_only_what_was_lost_since_the_last_complete_night_is_told() -> None:
    nights = judge_nights(DAILY, [run(26), run(28)], at(30, 9))
    assert [night.planned.day for night in lost_nights(nights)] == [30, 29]
    assert lost_nights(judge_nights(DAILY, [run(26), run(30)], at(30, 9))) == []
    # Tonight's is under way: the ones before are lost all the same.
    tonight = judge_nights(DAILY, [run(28), run(30, **UNFINISHED)], at(30, 3))
    assert [(night.planned.day, night.state.value) for night in lost_nights(tonight)] == [(29, "missing")]
    assert lost_nights([]) == []


def test_nights_before_the_plan_are_not_expected() -> None:
    assert planned_nights(Plan("0 2 * * *", "UTC", at(30, 2, 1)), at(30, 9)) == []
    assert planned_nights(Plan("0 2 * * *", "UTC", at(30)), at(30, 9)) == [at(30)]


def test_the_latest_night_that_is_due_is_looked_at_however_long_ago_it_was() -> None:
    weekly = Plan("0 2 * * 1", "UTC", START)  # Mondays: the 16th and the 23rd
    assert planned_nights(weekly, at(29), timedelta(days=2)) == [at(23)]
    assert planned_nights(Plan("0 2 30 2 *", "UTC", START), at(30)) == []


BERLIN = Plan("30 2 * * *", "Europe/Berlin", datetime(2026, 1, 1, tzinfo=UTC))
FORWARD, BACK = datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC)


@pytest.mark.parametrize("day", [FORWARD, BACK])
def test_there_is_one_night_on_each_date_when_the_clock_is_changed(day: datetime) -> None:
    """02:30 does not come on one of the dates and comes twice on the other (Airflow 38098)."""
    planned = planned_nights(BERLIN, day + timedelta(days=1, hours=12), timedelta(days=3))
    hours = [(time - day).total_seconds() / 3600 for time in planned]
    before, changed, after = (1.5, 1.5, 0.5) if day == FORWARD else (0.5, 0.5, 1.5)
    assert hours[-3:] == [before - 24, changed, after + 24]


@pytest.mark.parametrize("day", [FORWARD, BACK])
@pytest.mark.parametrize("line", ["30 2 * * *", "0 3 * * *", "0 2 * * *", "59 1 * * 0"])
def test_airflow_plans_each_night_inside_the_night_that_is_expected(day: datetime, line: str) -> None:
    """Whatever the scheduler makes of the clock, each of its runs is found in a night, and none is left without."""
    from airflow.timetables.base import TimeRestriction
    from airflow.timetables.trigger import CronTriggerTimetable

    timetable = CronTriggerTimetable(line, timezone="Europe/Berlin")
    first, last = day - timedelta(days=3), day + timedelta(days=3)
    import pendulum

    restriction = TimeRestriction(pendulum.instance(first), pendulum.instance(last), catchup=True)
    runs, previous = [], None
    while (
        info := timetable.next_dagrun_info(last_automated_data_interval=previous, restriction=restriction)
    ) is not None:
        runs.append(info.logical_date)
        previous = info.data_interval
    assert runs
    plan = Plan(line, "Europe/Berlin", first)
    attempts = [Attempt(str(time), time + timedelta(seconds=5), time, stored=True, verdict="ok") for time in runs]
    nights = judge_nights(plan, attempts, last + timedelta(hours=1), timedelta(days=9))
    assert {night.state for night in nights if night.due <= last} == {NightState.COMPLETE}, [
        (night.planned, night.state) for night in nights
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"cron": "2 *"},
        {"cron": "61 2 * * *"},
        {"cron": "@daily"},
        {"timezone": "Mars/Base"},
        {"since": datetime(2026, 11, 1)},  # noqa: DTZ001 - that is what is refused
        {"deadline": timedelta(0)},
    ],
)
def test_a_plan_that_means_nothing_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises((ValueError, KeyError)):
        Plan(**{"cron": "0 2 * * *", "timezone": "UTC", "since": START} | wrong)  # type: ignore[arg-type]


MINUTES = st.integers(0, 60 * 24 * 9)
ATTEMPTS = st.lists(
    st.builds(
        lambda minutes, stored, judged, waits: Attempt(
            f"r{minutes}",
            START + timedelta(minutes=minutes),
            stored=stored or judged,
            verdict="ok" if judged else None,
            waits=waits,
        ),
        MINUTES,
        st.booleans(),
        st.booleans(),
        st.booleans(),
    ),
    max_size=6,
)


@given(ATTEMPTS, MINUTES, st.sampled_from(["0 2 * * *", "30 */6 * * *", "0 2 * * 1"]))
def test_time_only_ever_decides_what_was_undecided(attempts: list[Attempt], minutes: int, line: str) -> None:
    """Of the same runs a later look finds the same or what an undecided night came to; order changes nothing."""
    plan, now = Plan(line, "UTC", START), START + timedelta(minutes=minutes)
    known = [attempt for attempt in attempts if attempt.started_at <= now]
    early = {night.planned: night for night in judge_nights(plan, known, now, timedelta(days=30))}
    late = judge_nights(plan, list(reversed(known)), now + timedelta(days=2), timedelta(days=40))
    for night in late:
        before = early.get(night.planned)
        if before and before.state not in UNDECIDED:
            assert night.state is before.state
        if before and before.state is NightState.WAITING:
            assert night.state is NightState.MISSING
    assert all(night.state in UNDECIDED or night.state in (*LOST, NightState.COMPLETE) for night in late)
    assert [night.planned for night in late] == sorted({night.planned for night in late})
