"""The task that tells of a night and the notifier for other DAGs: what they raise and send; nothing stops them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG

from local.alert_channels import connections
from regression.nights import alerting
from regression.nights.alerting import alert
from regression.operators import AlertNotifier
from regression.operators.connection import results_engine
from regression.results.alert_files import files
from tests.integration.regression.alert_nights import energy, judged_night, states
from tests.integration.regression.databases import PASSWORDS, Database, one
from tests.integration.regression.example_nights import asked
from tests.support.receivers import Inbox, free_port, http_receiver

ON = datetime(2026, 12, 24, 2, tzinfo=UTC)


@pytest.fixture
def inbox(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Inbox]:
    """A webhook, and the surroundings of a task: the results database, the folder of records, Airflow's address."""
    url = database.writer.url
    results = {"conn_type": "postgres", "host": url.host, "port": url.port, "schema": url.database}
    results |= {"login": url.username, "password": PASSWORDS[str(url.username)]}
    monkeypatch.setenv("AIRFLOW_CONN_KERNEL_NIGHTLY_RESULTS", json.dumps(results))
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://airflow.example:8080")
    monkeypatch.setenv("NIGHTLY_RECORDS", str(tmp_path))
    results_engine.cache_clear()
    with http_receiver() as found:
        for name, value in connections({"NIGHTLY_ALERT_WEBHOOK": f"http://127.0.0.1:{found.port}/hook"}).items():
            monkeypatch.setenv(name, value)
        yield found
    results_engine.cache_clear()


def context(name: str, **more: Any) -> dict[str, Any]:
    dag_run = SimpleNamespace(run_id=name, logical_date=ON, run_after=ON, start_date=ON)
    return {"dag": DAG("nightly_qda", schedule=None), "run_id": name, "dag_run": dag_run} | more


def test_a_night_is_told_once_with_a_link_and_kept_on_file(database: Database, inbox: Inbox, tmp_path: Path) -> None:
    judged_night(database, 1, energy("regressed"))
    assert alert(context("scheduled__01")) == {"raised": [1], "deliveries": [[1, "webhook", True, "answered 200 ok"]]}
    assert alert(context("scheduled__01")) == {"raised": [], "deliveries": []}
    (body,) = inbox.bodies
    assert body["subject"].startswith("[nightly] qda on Test GPU: adjusted energy per replay 10.0 % higher")
    assert "http://airflow.example:8080/dags/nightly_qda/runs/scheduled__01" in body["text"]
    (path,) = files(tmp_path)
    assert [event["event"] for event in json.loads(path.read_text())["events"]] == ["opened", "notified"]


def test_a_fine_night_sends_nothing_and_ends_what_is_over(database: Database, inbox: Inbox) -> None:
    judged_night(database, 1, energy("regressed"))
    alert(context("scheduled__01"))
    for day in range(2, 9):
        judged_night(database, day, energy("ok"), verdict="ok")
        assert alert(context(f"scheduled__{day:02d}")) == {"raised": [], "deliveries": []}
    assert states(database) == [("energy", "higher", "resolved", 1)]
    assert len(inbox.requests) == 1


def test_a_channel_that_fails_is_no_failure_of_the_night(
    database: Database, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regression.alerts.delivering.PAUSES_S", (0.0, 0.0))
    inbox.status = 500
    judged_night(database, 1, energy("regressed"))
    told = alert(context("scheduled__01"))
    assert told["deliveries"] == [[1, "webhook", False, "attempt 3 of 3: answered 500 ok"]]
    assert one(database, "SELECT verdict FROM run") == {"verdict": "regression"}


def test_without_a_database_the_channels_are_told_that(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    away = {"conn_type": "postgres", "host": "127.0.0.1", "port": free_port(), "login": "n", "password": "s3cret"}
    monkeypatch.setenv("AIRFLOW_CONN_KERNEL_NIGHTLY_RESULTS", json.dumps(away))
    assert alert(context("scheduled__01")) == {
        "raised": [],
        "deliveries": [[None, "webhook", True, "answered 200 ok"]],
    }
    assert inbox.bodies[0]["subject"] == "[nightly] nightly_qda: the results database is away"
    assert "s3cret" not in caplog.text + json.dumps(inbox.bodies)


def test_whatever_goes_wrong_is_logged_and_stops_nothing(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def break_down(*_: Any) -> None:
        raise RuntimeError("no idea")

    monkeypatch.setattr(alerting, "tell_of_run", break_down)
    assert alert(context("scheduled__01")) == {"raised": [], "deliveries": []}
    assert "no idea" in caplog.text
    assert logging.ERROR in {record.levelno for record in caplog.records}


def test_a_failed_run_of_another_dag_is_one_alert_however_many_of_its_tasks_fail(
    database: Database, inbox: Inbox
) -> None:
    notifier = AlertNotifier(workload="mine")
    assert notifier.template_fields == ()
    for task in ("first", "second"):
        failing = SimpleNamespace(task_id=task)
        notifier(context("other__1", dag=DAG("other", schedule=None), task_instance=failing))
    assert states(database) == [("night", "missing", "open", 1)]
    (body,) = inbox.bodies
    assert body["subject"] == "[nightly] mine: the run other__1 of other failed in its task first"
    assert "http://airflow.example:8080/dags/other/runs/other__1" in body["text"]


def test_a_failed_run_that_was_judged_is_told_by_what_its_checks_found(database: Database, inbox: Inbox) -> None:
    judged_night(database, 1, energy("regressed"))
    AlertNotifier()(context("scheduled__01"))
    assert states(database) == [("energy", "higher", "open", 1)]
    judged_night(database, 2, energy("ok"), verdict="ok")
    AlertNotifier()(context("scheduled__02"))  # it failed for something else
    assert asked(database, "SELECT workload, metric, text FROM alert WHERE alert_id = 2") == [
        ("nightly_qda", "night", "nightly_qda: the run scheduled__02 of nightly_qda failed")
    ]
