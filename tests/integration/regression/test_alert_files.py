"""Alerts on file: everything that happened to them comes back into a database that is made again, numbers as well."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from sqlalchemy import text

from gpu_tasks.records import BadInput, read_record
from regression.alerts.answers import acknowledge, mute, resolve
from regression.alerts.delivering import deliver
from regression.alerts.raising import raise_alerts
from regression.alerts.resolving import resolve_quiet
from regression.results import alert_files
from regression.results.alert_files import AlertFile, files, keep_alerts, read_alert
from regression.results.baselines import accept_baseline
from regression.results.judgements import keep_judgement
from regression.results.outcome import settle_verdict
from regression.results.rebuild import rebuild
from regression.results.spool import load_record
from tests.integration.regression.alert_nights import missing, moment, night_record, raised, states
from tests.integration.regression.databases import Database, one
from tests.integration.regression.example_nights import asked
from tests.integration.regression.natural import natural
from tests.integration.regression.test_alert_deliveries import Fake
from tests.integration.regression.test_rebuild import other
from tests.integration.regression.test_verdicts import judge

__all__ = ["other"]


def whole_night(database: Database, folder: Path, day: int, energy_mj: float = 0.6) -> str:
    """Load, check, report and alert as a night does."""
    record = night_record(day, energies=[energy_mj] * 7)
    load_record(database.writer, folder, record)
    judge(database, record)
    name = record.request.dag_run_id
    with database.writer.begin() as connection:
        run_id = settle_verdict(connection, "nightly_qda", name, ("agreement", "energy")).run_id
        keep_judgement(connection, folder, run_id)
    raised(database, run_id, moment(day), folder)
    return run_id


def lived_in(database: Database, folder: Path) -> None:
    """Alerts in every state, with every kind of event, the first of them resolved and back."""
    first = whole_night(database, folder, 1)
    accept_baseline(database.writer, first, accepted_by="ann", reason="first", records=folder)
    whole_night(database, folder, 2, 0.7)
    deliver(database.writer, [Fake(), Fake("smtp", failing=True)], clock=lambda: moment(2), pause=lambda _: None)
    resolve(database.writer, 1, author="ann", reason="fan", now=moment(2.1), records=folder)
    whole_night(database, folder, 3, 0.71)
    raise_alerts(database.writer, [missing(4)], moment(4), records=folder)
    whole_night(database, folder, 5, 0.5)
    mute(database.writer, 1, author="ann", reason="fan", until=moment(6), now=moment(5), records=folder)
    whole_night(database, folder, 7)  # ends the mute
    acknowledge(database.writer, 1, author="bob", reason="it is the fan", now=moment(7.1), records=folder)
    mute(database.writer, 3, author="bob", reason="later", until=moment(90), now=moment(7.2), records=folder)
    resolve_quiet(database.writer, moment(7.3), records=folder)


def test_alerts_come_back_with_their_numbers_and_all_that_happened(
    database: Database, other: Database, tmp_path: Path
) -> None:
    lived_in(database, tmp_path)
    assert [row[2] for row in states(database)] == ["acknowledged", "resolved", "muted"]
    told = {event for (event,) in asked(database, "SELECT event FROM alert_event")}
    assert told == {
        *("opened", "seen_again", "reopened", "resolved", "acknowledged", "muted", "mute_ended"),
        *("notified", "notification_failed"),
    } - {"seen_again"}
    done = rebuild(other.writer, tmp_path)
    assert (done.broken, done.alerts) == ([], 3)
    assert natural(other.writer) == natural(database.writer)
    numbers = "SELECT alert_id, metric, direction FROM alert ORDER BY alert_id"
    assert asked(other, numbers) == asked(database, numbers)
    assert keep_alerts(other.writer, tmp_path) == []


def test_a_rebuilt_database_goes_on_where_the_other_one_ended(
    database: Database, other: Database, tmp_path: Path
) -> None:
    lived_in(database, tmp_path)
    rebuild(other.writer, tmp_path)
    slack = Fake()
    for at in (database, other):
        run_id = whole_night(at, tmp_path, 8, 0.72)
        assert raised(at, run_id, moment(8.1)) == []  # acknowledged, and counted already
        raise_alerts(at.writer, [missing(9)], moment(9))
        deliver(at.writer, [slack], clock=lambda: moment(9), pause=lambda _: None)
    assert states(other) == states(database)
    assert states(other)[0] == ("energy", "higher", "acknowledged", 3)
    assert [message.subject for message, _ in slack.sent] == [
        "[nightly] qda: again: no result of the night of 2026-12-09"
    ] * 2
    with other.writer.begin() as connection:
        connection.execute(text("UPDATE alert SET state = 'resolved', resolved_at = opened_at, tell_since = NULL"))
    raise_alerts(other.writer, [missing(60)], moment(60))
    assert one(other, "SELECT max(alert_id) AS newest FROM alert") == {"newest": 4}


def test_a_number_that_is_taken_gives_way(database: Database, other: Database, tmp_path: Path) -> None:
    """As where a new database alerted before the old one was brought back."""
    lived_in(database, tmp_path)
    raise_alerts(other.writer, [missing(20)], moment(20))
    done = rebuild(other.writer, tmp_path)
    assert (done.broken, done.alerts) == ([], 3)
    assert asked(other, "SELECT alert_id, opened_at FROM alert WHERE metric = 'night' ORDER BY alert_id") == [
        (1, moment(20)),
        (2, moment(4)),
    ]
    assert one(other, "SELECT count(DISTINCT alert_id) AS alerts, max(alert_id) AS newest FROM alert") == {
        "alerts": 4,
        "newest": 4,
    }


def test_of_two_files_of_one_alert_the_one_that_knows_more_comes_back(
    database: Database, other: Database, tmp_path: Path
) -> None:
    """Its number gave way in a rebuild before this one."""
    lived_in(database, tmp_path)
    (path,) = [path for path in files(tmp_path) if "night-missing" in path.name]
    later = json.loads(path.read_text()) | {"alert_id": 9, "state": "acknowledged"}
    said = {"acknowledged_by": "ann", "acknowledged_at": later["last_seen_at"], "acknowledged_reason": "a power cut"}
    event = later["events"][0] | {"event": "acknowledged", "author": "ann", "text": "a power cut", "night": None}
    told = later | said | {"events": [*later["events"], event], "tell_since": None, "resolved_at": None}
    path.with_name(path.name.replace("0002", "0009")).write_text(json.dumps(told))
    assert rebuild(other.writer, tmp_path).broken == []
    assert asked(other, "SELECT alert_id, state FROM alert WHERE metric = 'night'") == [(9, "acknowledged")]


def test_a_file_is_complete_in_itself_and_written_when_something_happened(database: Database, tmp_path: Path) -> None:
    lived_in(database, tmp_path)
    paths = files(tmp_path)
    assert [path.name for path in paths] == [
        "20261202T021000.000000Z-qda-energy-higher-0001.json",
        "20261204T021000.000000Z-qda-night-missing-0002.json",
        "20261205T021000.000000Z-qda-energy-lower-0003.json",
    ]
    alert = read_record(paths[0], AlertFile)
    assert alert.device is not None
    assert alert.device.uuid == "GPU-1"
    assert alert.baseline is not None
    assert alert.baseline.run_id == one(database, "SELECT run_id::text FROM baseline")["run_id"]
    for path in paths:
        os.utime(path, (1, 1))  # two writings within one tick of the file system's clock have one time
    assert keep_alerts(database.writer, tmp_path) == []
    resolve(database.writer, 3, author="ann", reason="done", now=moment(8), records=tmp_path)
    assert [path for path in paths if path.stat().st_mtime != 1] == [paths[2]]


def test_what_a_crash_left_unwritten_is_written_the_next_time(database: Database, tmp_path: Path) -> None:
    raise_alerts(database.writer, [missing(1)], moment(1))
    assert files(tmp_path) == []
    raise_alerts(database.writer, [], moment(1), records=tmp_path)
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize(
    "fault",
    [
        ('"opened_at": "2026', '"opened_at": "in 2026', "$.opened_at: expected an ISO 8601 time"),
        ('"at": "2026', '"at": "in 2026', "$.events[0].at: expected an ISO 8601 time"),
        ('"uuid": "GPU-1"', '"uuid": "GPU-7"', "$.device: expected a device of a kept run, found none of uuid GPU-7"),
        ('"occurrences": 2', '"occurrences": "two"', "$.occurrences"),
        ('"alert_id": 1,', '"alert_id": 1000000001,', "$.alert_id: expected a number from 1 to 1000000"),
        ('"alert_id": 1,', '"alert_id": 0,', "$.alert_id: expected a number from 1 to 1000000"),
        ('"workload": "qda"', '"workload": "q\\u0000"', "$.workload"),
        ('"author": "kernel-nightly"', '"author": "\\ud800"', "$.events[0].author"),
        ('"state": "acknowledged"', '"state": "forgotten"', "alert_state_check"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_and_the_others_come_back(
    database: Database, other: Database, tmp_path: Path, fault: tuple[str, str, str]
) -> None:
    old, new, told = fault
    lived_in(database, tmp_path)
    path = files(tmp_path)[0]
    words = path.read_text()
    assert old in words
    path.write_text(words.replace(old, new))
    done = rebuild(other.writer, tmp_path)
    assert done.alerts == 2
    (line,) = done.broken
    assert path.name in line
    assert told in line
    assert [row[0] for row in states(other)] == ["night", "energy"]


def test_an_alert_of_a_run_that_is_gone_is_named(database: Database, other: Database, tmp_path: Path) -> None:
    lived_in(database, tmp_path)
    run_id = one(database, "SELECT last_run_id::text AS run FROM alert WHERE alert_id = 3")["run"]
    (tmp_path / f"{run_id}.json").unlink()
    done = rebuild(other.writer, tmp_path)
    assert [line for line in done.broken if f"expected its runs to be there, found nothing of {run_id}" in line]
    assert done.alerts == 2


def test_times_of_events_are_read_as_times(database: Database, tmp_path: Path) -> None:
    raise_alerts(database.writer, [missing(1)], moment(1), records=tmp_path)
    (path,) = files(tmp_path)
    path.write_text(path.read_text().replace('"night": "2026-12-01T02:00:00.000000Z"', '"night": "2026-12-01"'))
    with pytest.raises(BadInput, match=r"events\[0\]\.night: expected a time with a UTC offset"):
        read_alert(path)
    assert alert_files.FOLDER in str(path)
