"""The watchdog on a real database and real run folders: what it finds, whom it tells, and what it does not need."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from sqlalchemy import create_engine, text

from gpu_tasks.records import BadInput, run_id_for, write_record
from regression.alerts import channels, delivering
from regression.alerts.channels import Channel, DeliveryFailed
from regression.alerts.raising import raise_alerts
from regression.alerts.signal import Signal
from regression.alerts.texts import Message
from regression.detectors.missing_night import Plan
from regression.nights import schedule
from regression.nights.fallback import unread_request
from regression.nights.watchdog import Watched, lost_nights, night_signal, watch
from regression.operators import MissingNightOperator, missing_night
from regression.results.outcome import settle_verdict
from tests.integration.regression.databases import Database, one
from tests.integration.regression.example_records import run_record
from tests.integration.regression.test_verdicts import store

NIGHT = datetime(2026, 11, 30, 2, tzinfo=UTC)
PLAN = Plan("0 2 * * *", "UTC", NIGHT - timedelta(days=1, hours=1))
DAG = "nightly_qda"


def stored_night(database: Database, night: datetime, trigger: str = "scheduled", *, judged: bool = True) -> None:
    name = f"{trigger}__{night.isoformat()}"
    record = run_record(name, trigger=trigger)
    times = {field: night.isoformat() for field in ("created_at", "started_at", "completed_at")}
    request = replace(record.request, accepted_at=night.isoformat(), logical_date=night.isoformat())
    store(database, replace(record, request=request, **times))
    if judged:
        with database.writer.begin() as connection:
            settle_verdict(connection, DAG, name, ())


def folder_of(runs: Path, night: datetime, trigger: str = "scheduled", name: str = "request.json") -> Path:
    """The folder of a run whose first task accepted (or refused) its request a moment after it was planned."""
    dag_run_id = f"{trigger}__{night.isoformat()}"
    folder = runs / DAG / dag_run_id
    request = replace(
        run_record(dag_run_id).request,
        trigger=trigger,
        accepted_at=(night + timedelta(seconds=9)).isoformat(),
        logical_date=night.isoformat(),
    )
    if name == "request.json":
        write_record(request, folder / name)
    else:
        refused = unread_request("qda", DAG, dag_run_id, trigger)
        folder.mkdir(parents=True)
        (folder / name).write_text(json.dumps({"request": refused.__dict__ | {"accepted_at": night.isoformat()}}))
    for path in folder.iterdir():
        os.utime(path, (night.timestamp() + 60,) * 2)
    os.utime(folder, (night.timestamp() + 60,) * 2)
    return folder


def states(database: Database, now: datetime, **changes: Any) -> list[tuple[int, str]]:
    with database.reader.connect() as connection:
        nights = watch(connection, Watched(DAG, "qda", **({"plan": PLAN} | changes)), now)
    return [(night.planned.day, night.state.value) for night in nights]


def test_nights_are_found_in_the_database(database: Database) -> None:
    stored_night(database, NIGHT - timedelta(days=1))
    assert states(database, NIGHT + timedelta(hours=2)) == [(29, "complete"), (30, "waiting")]
    assert states(database, NIGHT + timedelta(hours=3)) == [(29, "complete"), (30, "missing")]
    stored_night(database, NIGHT, judged=False)
    assert states(database, NIGHT + timedelta(hours=3)) == [(29, "complete"), (30, "incomplete")]


def test_a_run_by_hand_is_no_night_unless_it_is_said_to_be(database: Database, tmp_path: Path) -> None:
    stored_night(database, NIGHT - timedelta(days=1))
    stored_night(database, NIGHT + timedelta(minutes=1), "manual")
    folder_of(tmp_path, NIGHT + timedelta(minutes=2), "manual")
    late = NIGHT + timedelta(hours=3)
    assert states(database, late, runs=tmp_path) == [(29, "complete"), (30, "missing")]
    assert states(database, late, runs=tmp_path, by_hand=True) == [(29, "complete"), (30, "complete")]
    assert states(database, late) == [(29, "complete"), (30, "missing")]


def test_another_dag_and_an_imported_record_are_no_night(database: Database) -> None:
    stored_night(database, NIGHT, "import")
    with database.reader.connect() as connection:
        found = watch(connection, Watched("another", "qda", PLAN), NIGHT + timedelta(hours=3))
    assert {night.state.value for night in found} == {"missing"}
    assert states(database, NIGHT + timedelta(hours=3))[-1] == (30, "missing")


def test_a_run_that_left_nothing_but_its_folder_is_seen(database: Database, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, NIGHT)
    only_tonight = Plan("0 2 * * *", "UTC", NIGHT)
    watched = Watched(DAG, "qda", only_tonight, tmp_path, tmp_path / "records")
    assert states(database, NIGHT + timedelta(hours=3), plan=only_tonight, runs=tmp_path) == [(30, "running")]
    late = NIGHT + timedelta(hours=3, minutes=1)
    with database.reader.connect() as connection:
        (night,) = watch(connection, watched, late)
    assert night.state.value == "stuck"
    assert night.reason.endswith("due by 2026-11-30 05:00 UTC; last sign: request.json at 2026-11-30 02:01 UTC")
    pending = tmp_path / "records" / "pending" / f"{run_id_for(DAG, folder.name)}.json"
    pending.parent.mkdir(parents=True)
    pending.write_text("{}")
    with database.reader.connect() as connection:
        (night,) = watch(connection, watched, late)
    assert (night.state.value, "not in the database yet" in night.reason) == ("incomplete", True)


def test_a_refused_run_and_rubbish_in_the_folder_do_not_hide_it(database: Database, tmp_path: Path) -> None:
    only_tonight = Plan("0 2 * * *", "UTC", NIGHT)
    for number, content in enumerate(("", "{", "[1]", '{"trigger": "scheduled"}', '{"request": 3}')):
        broken = tmp_path / DAG / f"broken-{number}"
        broken.mkdir(parents=True)
        (broken / "request.json").write_text(content)
        (broken / "refused.json").write_text(content)
    (tmp_path / DAG / "a file").write_text("x")
    late = NIGHT + timedelta(hours=4)
    assert states(database, late, plan=only_tonight, runs=tmp_path) == [(30, "missing")]
    folder_of(tmp_path, NIGHT, name="refused.json")
    assert states(database, late, plan=only_tonight, runs=tmp_path) == [(30, "stuck")]
    assert states(database, late, plan=only_tonight, runs=tmp_path / "none") == [(30, "missing")]


def test_what_is_told_names_the_nights_the_plan_and_where_to_look(database: Database) -> None:
    stored_night(database, NIGHT - timedelta(days=3))
    plan = Plan("0 2 * * *", "UTC", NIGHT - timedelta(days=9))
    stopped = NIGHT - timedelta(days=2, hours=12)
    watched = Watched(DAG, "qda", plan, stopped_at=stopped)
    with database.reader.connect() as connection:
        nights = watch(connection, watched, NIGHT + timedelta(hours=9))
    signal = night_signal(watched, nights)
    assert signal is not None
    assert signal.headline == (
        "the night of 2026-11-30 02:00 UTC is missing, 3 nights in a row: no run began, a result was due by "
        "2026-11-30 05:00 UTC"
    )
    assert (signal.night, signal.value, signal.unit, signal.outcome) == (NIGHT, 3.0, "nights", "infrastructure_failure")
    assert dict(signal.facts) == {
        "planned": "0 2 * * * (UTC), a result within 3:00:00",
        "2026-11-29 02:00 UTC": "missing: no run began, a result was due by 2026-11-29 05:00 UTC",
        "2026-11-28 02:00 UTC": "missing: no run began, a result was due by 2026-11-28 05:00 UTC",
        "stopped": "by `./nightly down` at 2026-11-27 14:00 UTC",
        "look": "./nightly status",
    }
    stored_night(database, NIGHT)
    with database.reader.connect() as connection:
        assert night_signal(watched, watch(connection, watched, NIGHT + timedelta(hours=9))) is None


class Heard(Channel):
    """A channel that keeps what it is sent, or refuses it."""

    name = "webhook"

    def __init__(self) -> None:
        super().__init__(Connection(conn_id="x", conn_type="http"))
        self.subjects: list[str] = []
        self.away = False

    def _send(self, message: Message, document: Mapping[str, Any]) -> str:
        if self.away:
            raise DeliveryFailed("away", "nobody answers")
        self.subjects.append(message.subject)
        return "taken"


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    channel = Heard()
    monkeypatch.setattr(channels, "configured", lambda: [channel])
    monkeypatch.setattr(delivering, "PAUSES_S", ())
    return channel


@pytest.fixture
def operate(database: Database, heard: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Execute the operator at a moment, with the plan in force."""
    monkeypatch.setattr(missing_night, "results_engine", lambda _conn_id: database.writer)
    monkeypatch.setenv("NIGHTLY_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("NIGHTLY_RECORDS", str(tmp_path / "records"))
    monkeypatch.setenv("NIGHTLY_SCHEDULE_FILE", str(tmp_path / "schedule.json"))
    monkeypatch.delenv("NIGHTLY_SCHEDULE", raising=False)
    (tmp_path / "records").mkdir()
    schedule.planned_now(tmp_path / "schedule.json", "0 2 * * *", "UTC", 180, NIGHT - timedelta(days=1, hours=1))

    def execute(now: datetime, **arguments: Any) -> Any:
        class Clock(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> datetime:
                return now.astimezone(tz)

        monkeypatch.setattr(missing_night, "datetime", Clock)
        return MissingNightOperator(task_id="t", watched_dag_id=DAG, workload="qda", **arguments).execute({})

    return execute


def test_the_operator_is_red_and_raises_one_alert_however_often_it_looks(
    database: Database, operate: Callable[..., Any], heard: Heard
) -> None:
    stored_night(database, NIGHT - timedelta(days=1))
    assert operate(NIGHT + timedelta(hours=1)) == {"2026-11-29T02:00Z": "complete", "2026-11-30T02:00Z": "waiting"}
    for hours in (4, 5, 6):
        with pytest.raises(AirflowFailException) as red:
            operate(NIGHT + timedelta(hours=hours))
    assert str(red.value) == (
        "infrastructure_failure (exit 5): the night of 2026-11-30 02:00 UTC is missing: no run began, a result was due "
        "by 2026-11-30 05:00 UTC"
    )
    alert = "SELECT metric, direction, outcome, state, occurrences, value, unit, device_id FROM alert"
    expected = {"metric": "night", "direction": "missing", "outcome": "infrastructure_failure", "state": "open"}
    expected |= {"occurrences": 1, "value": 1.0, "unit": "nights", "device_id": None}
    assert one(database, alert) == expected
    with pytest.raises(AirflowFailException, match="2 nights in a row"):
        operate(NIGHT + timedelta(days=1, hours=4))
    assert one(database, alert) == expected | {"occurrences": 2, "value": 2.0}
    assert heard.subjects == [
        "[nightly] qda: the night of 2026-11-30 02:00 UTC is missing: no run began, a result was due by "
        "2026-11-30 05:00 UTC"
    ]
    stored_night(database, NIGHT + timedelta(days=1))
    assert list(operate(NIGHT + timedelta(days=1, hours=5)).values()) == ["complete", "missing", "complete"]


def test_what_could_not_be_delivered_is_tried_again(
    database: Database, operate: Callable[..., Any], heard: Heard
) -> None:
    heard.away = True
    with pytest.raises(AirflowFailException, match="is missing"):
        operate(NIGHT + timedelta(hours=4))
    heard.away = False
    with database.admin.begin() as connection:  # an hour later, as the deliveries count
        connection.execute(text("UPDATE alert_event SET at = at - interval '2 h' WHERE event = 'notification_failed'"))
    with pytest.raises(AirflowFailException, match="is missing"):
        operate(NIGHT + timedelta(hours=5))
    assert len(heard.subjects) == 1


@pytest.mark.parametrize("planned", [True, False])
def test_what_was_raised_just_before_a_crash_is_told_also_where_no_nights_are_planned(
    database: Database,
    operate: Callable[..., Any],
    heard: Heard,
    monkeypatch: pytest.MonkeyPatch,
    planned: bool,
) -> None:
    slower = Signal("qda", "time", "higher", "regression", "5 % higher", night=NIGHT)
    raise_alerts(database.writer, [slower], NIGHT)  # and then whoever raised it was killed
    if not planned:
        monkeypatch.delenv("NIGHTLY_SCHEDULE_FILE")
        monkeypatch.setenv("NIGHTLY_SCHEDULE", "none")
    for _ in range(2):
        operate(NIGHT - timedelta(hours=30))
    assert heard.subjects == ["[nightly] qda: 5 % higher"]


def test_a_night_that_came_before_anybody_could_be_told_is_told_to_nobody(
    database: Database, operate: Callable[..., Any], heard: Heard
) -> None:
    heard.away = True
    with pytest.raises(AirflowFailException, match="is missing"):
        operate(NIGHT + timedelta(hours=4))
    heard.away = False
    stored_night(database, NIGHT - timedelta(days=1))
    stored_night(database, NIGHT)
    operate(NIGHT + timedelta(hours=5))
    with database.admin.connect() as connection:
        assert connection.execute(text("SELECT state FROM alert")).scalars().all() == ["resolved"]
    assert heard.subjects == []


def test_the_operator_works_for_any_dag_with_its_own_plan(database: Database, operate: Callable[..., Any]) -> None:
    plan = {"cron": "0 1 * * *", "timezone": "Europe/Berlin", "deadline_minutes": 30}
    with pytest.raises(AirflowFailException, match="the night of 2026-11-30 00:00 UTC is missing"):
        operate(NIGHT, since="2026-11-29T12:00:00+01:00", **plan)
    assert operate(NIGHT, since="2026-11-30T12:00:00+01:00", **plan) == {}
    with pytest.raises(AirflowFailException, match="bad_plan: cron: expected a line of five fields"):
        operate(NIGHT, cron="often")


def test_without_a_file_the_plan_is_that_of_the_environment(
    database: Database, operate: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "schedule.json").unlink()
    monkeypatch.setenv("NIGHTLY_START_DATE", (NIGHT - timedelta(hours=1)).isoformat())
    with pytest.raises(AirflowFailException, match="the night of 2026-11-30 02:00 UTC is missing: "):
        operate(NIGHT + timedelta(hours=3))
    monkeypatch.setenv("NIGHTLY_DEADLINE_MINUTES", "240")
    assert operate(NIGHT + timedelta(hours=3)) == {"2026-11-30T02:00Z": "waiting"}
    monkeypatch.setenv("NIGHTLY_SCHEDULE", "none")
    assert operate(NIGHT + timedelta(hours=9)) == {}


def test_a_database_that_is_away_may_be_tried_again(
    operate: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    away = create_engine("postgresql+psycopg2://nobody:x@127.0.0.1:1/none")
    monkeypatch.setattr(missing_night, "results_engine", lambda _conn_id: away)
    with pytest.raises(AirflowException, match="the results database is away, nobody knows of the nights") as red:
        operate(NIGHT)
    assert not isinstance(red.value, AirflowFailException)


def test_what_was_planned_goes_on_until_it_is_changed_or_stopped(tmp_path: Path) -> None:
    path = tmp_path / "schedule.json"
    first, later = NIGHT, NIGHT + timedelta(days=5)
    schedule.planned_now(path, "0 2 * * *", "UTC", 180, first)
    assert schedule.planned_now(path, "0 2 * * *", "UTC", 60, later).plan() == Plan(
        "0 2 * * *", "UTC", first, timedelta(hours=1)
    )
    for changed in (("0 3 * * *", "UTC"), ("0 3 * * *", "Europe/Berlin")):
        assert schedule.planned_now(path, *changed, 180, later).plan().since == later
    assert schedule.planned_now(path, *changed, 180, later + timedelta(days=1)).workloads == ["qda"]
    both = schedule.planned_now(path, *changed, 180, later, workloads=("qda", "learner"))
    assert (both.workloads, both.plan().since) == (["learner", "qda"], later), "another workload is another plan"
    same = schedule.planned_now(path, *changed, 180, later + timedelta(days=1), workloads=("learner", "qda"))
    assert same.plan().since == later
    schedule.planned_now(path, *changed, 180, later)
    schedule.stopped_now(path, later)
    schedule.stopped_now(path, later + timedelta(days=9))
    found = schedule.read_plan(path)
    assert found is not None and found.stopped() == later
    again = schedule.planned_now(path, "0 3 * * *", "Europe/Berlin", 180, later + timedelta(days=9))
    assert (again.stopped(), again.plan().since) == (None, later + timedelta(days=9))
    path.write_text("{")
    schedule.stopped_now(path, later)
    with pytest.raises(BadInput, match=r"schedule\.json"):
        schedule.read_plan(path)
    assert schedule.planned_now(path, "0 2 * * *", "UTC", 180, later).since == later.isoformat()
    schedule.stopped_now(tmp_path / "none.json", later)
    assert not (tmp_path / "none.json").exists()
    assert lost_nights([]) == []
