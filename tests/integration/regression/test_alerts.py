"""The life of an alert on a real PostgreSQL: opened once, updated, answered, muted for a while, over, and back."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import text

from gpu_tasks.records import BadInput
from regression.alerts.answers import acknowledge, mute, resolve
from regression.alerts.raising import REOPEN_DAYS, raise_alerts
from regression.alerts.resolving import FINE_NIGHTS, resolve_quiet
from regression.detectors import CheckVerdict, Verdict
from regression.results.checks import Finding, store_findings
from regression.results.withdrawals import withdraw_run
from tests.integration.regression.alert_nights import (
    energy,
    events,
    judged_night,
    missing,
    moment,
    night,
    raised,
    signals,
    states,
)
from tests.integration.regression.databases import Database, one
from tests.integration.regression.example_nights import asked

SAID = {"author": "ann", "reason": "the fan"}


def test_a_regression_is_told_once_however_many_nights_show_it(database: Database) -> None:
    assert [night(database, day) for day in (1, 2, 3)] == [["opened"], [], []]
    assert states(database) == [("energy", "higher", "open", 3)]
    assert events(database) == ["opened", "seen_again", "seen_again"]
    stored = one(database, "SELECT * FROM open_alerts")
    assert (stored["value"], stored["baseline_value"], stored["unit"]) == (0.66, 0.6, "mJ")
    assert (stored["first_night"].day, stored["last_night"].day) == (1, 3)
    assert stored["text"] == "qda on Test GPU: adjusted energy per replay 10.0 % higher (0.66 mJ, baseline 0.6 mJ)"
    assert (stored["opened_at"], stored["last_seen_at"]) == (moment(1), moment(3))


def test_a_repeat_brings_the_newest_figures(database: Database) -> None:
    night(database, 1)
    later = judged_night(database, 2, energy("regressed", value=0.72))
    assert raised(database, later, moment(2)) == []
    assert one(database, "SELECT value, last_run_id::text FROM alert") == {"value": 0.72, "last_run_id": later}


def test_a_run_that_is_judged_late_counts_and_changes_no_figure(database: Database) -> None:
    night(database, 5)
    newest = one(database, "SELECT last_run_id FROM alert")
    late = judged_night(database, 3, energy("regressed", value=0.9))
    assert raised(database, late, moment(6)) == []
    assert one(database, "SELECT last_run_id FROM alert") == newest
    assert one(database, "SELECT value, occurrences FROM alert") == {"value": 0.66, "occurrences": 2}


def test_other_directions_metrics_devices_and_workloads_are_other_alerts(database: Database) -> None:
    lower = energy("regressed", value=0.5, direction="lower")
    time = CheckVerdict("time", Verdict.REGRESSED, "cuda_time_per_replay", "ms", "c", "r", 2.1, 2.0, direction="higher")
    night(database, 1)
    for day, found in ((2, lower), (3, time)):
        assert len(raised(database, judged_night(database, day, found), moment(day))) == 1
    assert len(raise_alerts(database.writer, [missing(4)], moment(4))) == 1
    assert [row[:2] for row in states(database)] == [
        ("energy", "higher"),
        ("energy", "lower"),
        ("time", "higher"),
        ("night", "missing"),
    ]


def test_a_run_that_is_judged_again_never_counts_twice_whatever_became_of_its_alert(database: Database) -> None:
    run_id = judged_night(database, 1, energy("regressed"))
    assert len(raised(database, run_id, moment(1))) == 1
    before = asked(database, "SELECT * FROM alert")
    assert raised(database, run_id, moment(1.5)) == []
    assert asked(database, "SELECT * FROM alert") == before
    resolve(database.writer, 1, **SAID, now=moment(1.6))
    assert raised(database, run_id, moment(1.7)) == []
    assert states(database) == [("energy", "higher", "resolved", 1)]


def test_raisers_at_the_same_time_leave_one_open_alert(database: Database) -> None:
    """Each with a connection of its own; the first one is held up until all the others wait (treeherder 9754, 1846)."""
    found = [signals(database, judged_night(database, day, energy("regressed"))) for day in range(1, 5)]
    told: list[Any] = []
    failures: list[BaseException] = []

    def work(day: int) -> None:
        try:
            told.extend(raise_alerts(database.writer, found[day], moment(5)))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(day,)) for day in range(4)]
    with database.admin.begin() as holder:
        holder.execute(text("LOCK TABLE alert IN SHARE MODE"))  # readers pass, writers wait
        for thread in threads:
            thread.start()
        while waiting(database) < len(threads):
            pass
    for thread in threads:
        thread.join(30)
    assert failures == []
    assert [found.event for found in told] == ["opened"]
    assert states(database) == [("energy", "higher", "open", 4)]


def waiting(database: Database) -> int:
    statement = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid()"
    with database.admin.connect() as connection:
        return int(connection.execute(text(statement)).scalar_one())


def test_what_is_acknowledged_is_not_told_again(database: Database) -> None:
    night(database, 1)
    acknowledge(database.writer, 1, **SAID, now=moment(1.5))
    assert night(database, 2) == []
    stored = one(database, "SELECT state, occurrences, acknowledged_by, acknowledged_reason FROM alert")
    assert stored == {
        "state": "acknowledged",
        "occurrences": 2,
        "acknowledged_by": "ann",
        "acknowledged_reason": "the fan",
    }


def test_a_mute_ends_by_itself_and_what_is_seen_after_it_is_told_again(database: Database) -> None:
    """Horreum 273."""
    night(database, 1)
    mute(database.writer, 1, **SAID, until=moment(3.5), now=moment(1.5))
    assert [night(database, day) for day in (2, 3)] == [[], []]
    assert states(database) == [("energy", "higher", "muted", 3)]
    assert [night(database, day) for day in (4, 5)] == [["seen_again"], []]
    assert states(database) == [("energy", "higher", "open", 5)]
    assert events(database)[3:6] == ["seen_again", "mute_ended", "seen_again"]
    assert one(database, "SELECT acknowledged_by, muted_until FROM alert") == dict.fromkeys(
        ("acknowledged_by", "muted_until")
    )
    assert "after its mute, still" in one(database, "SELECT text FROM alert")["text"]


def test_a_mute_that_is_over_and_not_seen_again_is_told_to_nobody(database: Database) -> None:
    night(database, 1)
    mute(database.writer, 1, **SAID, until=moment(2), now=moment(1.5))
    assert night(database, 3, "ok") == []
    assert one(database, "SELECT state, tell_since FROM alert") == {"state": "open", "tell_since": None}


@pytest.mark.parametrize(("days", "event", "alerts"), [(REOPEN_DAYS, "reopened", 1), (REOPEN_DAYS + 1, "opened", 2)])
def test_what_is_back_soon_is_the_same_alert_and_later_a_new_one(
    database: Database, days: int, event: str, alerts: int
) -> None:
    night(database, 1)
    acknowledge(database.writer, 1, **SAID, now=moment(1))
    resolve(database.writer, 1, **SAID, now=moment(1))
    assert night(database, 1 + days) == [event]
    assert len(states(database)) == alerts
    assert states(database)[-1][2:] == ("open", 2 if event == "reopened" else 1)
    assert one(database, "SELECT count(*) AS open FROM open_alerts") == {"open": 1}


def test_the_latest_of_several_resolved_ones_is_opened_again(database: Database) -> None:
    night(database, 1)
    resolve(database.writer, 1, **SAID, now=moment(1.5))
    night(database, 20)
    resolve(database.writer, 2, **SAID, now=moment(20.5))
    assert night(database, 21) == ["reopened"]
    assert [row[2] for row in states(database)] == ["resolved", "open"]


def test_an_alert_is_over_after_seven_nights_that_were_judged_and_fine(database: Database) -> None:
    night(database, 1)
    for day in range(2, 1 + FINE_NIGHTS):
        night(database, day, "ok")
    night(database, 8, "inconclusive")  # says nothing
    again = judged_night(database, 7, energy("ok"), name="manual__7")  # a second run of the same night
    withdrawn = judged_night(database, 9, energy("ok"))
    withdraw_run(database.writer, withdrawn, scope="all", withdrawn_by="ann", reason="another kernel")
    assert resolve_quiet(database.writer, moment(9)) == []
    assert again
    night(database, 10, "improved")
    assert states(database) == [("energy", "higher", "resolved", 1)]
    last = asked(database, "SELECT event, author, text FROM alert_event ORDER BY alert_event_id DESC LIMIT 1")
    assert last == [("resolved", "kernel-nightly", "judged and fine in 7 nights, 2026-12-02 to 2026-12-10")]


def test_fine_nights_count_from_the_last_time_it_was_seen(database: Database) -> None:
    for day in range(1, 20):
        night(database, day, "regressed" if day in (1, 6) else "ok")
        assert states(database)[0][2] == ("resolved" if day >= 6 + FINE_NIGHTS else "open"), day


def test_fine_nights_on_another_device_do_not_count(database: Database) -> None:
    night(database, 1)
    with database.admin.begin() as connection:
        connection.execute(text("INSERT INTO device (kind, uuid, name) SELECT kind, 'GPU-9', name FROM device"))
    for day in range(2, 12):
        judged_night(database, day, energy("ok"))
    with database.admin.begin() as connection:
        connection.execute(
            text(
                "UPDATE run SET device_id = (SELECT max(device_id) FROM device) "
                "WHERE run_id <> (SELECT first_run_id FROM alert)"
            )
        )
    assert resolve_quiet(database.writer, moment(12)) == []


def test_a_missing_night_is_one_alert_and_over_with_the_next_complete_one(database: Database) -> None:
    """foundry 15720."""
    for hour in range(3):  # the watchdog looks every hour
        told = raise_alerts(database.writer, [missing(1)], moment(1) + timedelta(hours=3 + hour))
        assert len(told) == (hour == 0)
    assert raise_alerts(database.writer, [missing(2)], moment(2)) == []
    assert states(database) == [("night", "missing", "open", 2)]
    judged_night(database, 3, verdict="infrastructure_failure")
    judged_night(database, 3, energy("ok"), verdict="ok", name="late__1")
    with database.admin.begin() as connection:
        connection.execute(text("UPDATE run SET started_at = '2026-12-01T02:00:00Z' WHERE dag_run_id = 'late__1'"))
    assert resolve_quiet(database.writer, moment(3)) == []
    assert raise_alerts(database.writer, [missing(2)], moment(3)) == []
    night(database, 4)  # complete, though it regressed
    assert [row[2] for row in states(database)] == ["resolved", "open"]
    assert raise_alerts(database.writer, [missing(2)], moment(4)) == []
    assert [found.event for found in raise_alerts(database.writer, [missing(5)], moment(5))] == ["reopened"]


def test_a_night_that_comes_late_after_all_is_complete(database: Database) -> None:
    raise_alerts(database.writer, [missing(1)], moment(1.2))
    judged_night(database, 1, energy("ok"), verdict="ok")
    assert resolve_quiet(database.writer, moment(1.3)) == [1]


def test_the_last_step_counts_and_the_first_look_is_told_beside_it(database: Database) -> None:
    run_id = judged_night(database, 1)
    with database.writer.begin() as connection:
        store_findings(connection, run_id, [Finding(energy("regressed"), None, 0), Finding(energy("ok"), None, 1)])
    assert raised(database, run_id, moment(1)) == []
    with database.writer.begin() as connection:
        store_findings(connection, run_id, [Finding(energy("ok", value=0.61), None, 0)])
        store_findings(connection, run_id, [Finding(energy("regressed"), None, 1)])
    assert len(raised(database, run_id, moment(1))) == 1
    line = "looked twice  first rounds alone: ok (0.61 mJ); with the confirmation rounds: regressed"
    assert line in one(database, "SELECT message FROM alert")["message"].splitlines()


@pytest.mark.parametrize(
    ("number", "words", "until", "code"),
    [
        (9, {}, 2.0, "alert_not_found"),
        (0, {}, 2.0, "alert_not_found"),
        (2**40, {}, 2.0, "alert_not_found"),
        (1, {"reason": " "}, 2.0, "no_reason"),
        (1, {"author": ""}, 2.0, "no_author"),
        (1, {"reason": "a\0b"}, 2.0, "blank_text"),
        (1, {}, 1.4, "bad_mute"),
        (1, {}, 400.0, "bad_mute"),
    ],
)
def test_answers_that_cannot_be_are_refused(
    database: Database, number: int, words: dict[str, str], until: float, code: str
) -> None:
    night(database, 1)
    with pytest.raises(BadInput, match="expected") as caught:
        mute(database.writer, number, **(SAID | words), until=moment(until), now=moment(1.5))
    assert caught.value.code == code
    assert states(database) == [("energy", "higher", "open", 1)]


@pytest.mark.parametrize(
    "until",
    [
        datetime(2026, 12, 24),  # noqa: DTZ001 - naive on purpose
        datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-14))),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
    ],
)
def test_no_end_of_a_mute_is_too_odd_to_be_refused_in_words(database: Database, until: datetime) -> None:
    night(database, 1)
    with pytest.raises(BadInput, match="until: expected a time with its UTC offset in the future") as caught:
        mute(database.writer, 1, **SAID, until=until, now=moment(1.5))
    assert str(until.year).zfill(4) in caught.value.message


def test_a_mute_that_would_end_before_its_alert_was_opened_is_refused(database: Database) -> None:
    night(database, 3)
    with pytest.raises(BadInput, match="until: expected"):
        mute(database.writer, 1, **SAID, until=moment(2), now=moment(1))
    assert states(database) == [("energy", "higher", "open", 1)]


def test_what_is_resolved_cannot_be_answered(database: Database) -> None:
    night(database, 1)
    resolve(database.writer, 1, **SAID, now=moment(1.5))
    for answer in (acknowledge, resolve):
        with pytest.raises(BadInput, match="expected one that is not resolved, found it resolved 2026-12-01"):
            answer(database.writer, 1, **SAID, now=moment(2))


def test_answers_follow_each_other_and_the_last_one_holds(database: Database) -> None:
    night(database, 1)
    mute(database.writer, 1, **SAID, until=moment(9), now=moment(2))
    acknowledge(database.writer, 1, author="bob", reason="fan replaced", now=moment(3))
    assert one(database, "SELECT state, acknowledged_by, muted_until FROM alert") == {
        "state": "acknowledged",
        "acknowledged_by": "bob",
        "muted_until": None,
    }
    mute(database.writer, 1, **SAID, until=moment(9), now=moment(3.5))
    resolve(database.writer, 1, **SAID, now=moment(4))
    assert events(database) == ["opened", "muted", "acknowledged", "muted", "resolved"]
    assert one(database, "SELECT state, acknowledged_by FROM alert")["state"] == "resolved"


def test_an_answer_after_the_end_of_a_mute_finds_it_ended(database: Database) -> None:
    night(database, 1)
    mute(database.writer, 1, **SAID, until=moment(2), now=moment(1.5))
    acknowledge(database.writer, 1, **SAID, now=moment(3))
    assert events(database) == ["opened", "muted", "mute_ended", "acknowledged"]


def test_what_was_acknowledged_after_its_mute_is_not_told(database: Database) -> None:
    night(database, 1)
    mute(database.writer, 1, **SAID, until=moment(2), now=moment(1.5))
    night(database, 3, "ok")  # ends the mute
    acknowledge(database.writer, 1, **SAID, now=moment(3.5))
    assert night(database, 4) == []
    assert states(database) == [("energy", "higher", "acknowledged", 2)]
