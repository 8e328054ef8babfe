"""The watchdog as a command and in the status, on an installation of its own whose Airflow never runs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from local.databases import engine_of
from local.paths import Home
from local.stack import hold
from regression.nights.schedule import planned_now, stopped_now
from tests.integration.regression.test_watchdog import folder_of
from tests.support.commands import Run


def hours_ago(hours: float) -> datetime:
    return datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=hours)


def daily(moment: datetime) -> str:
    return f"{moment.minute} {moment.hour} * * *"


def rows(home: Home, statement: str) -> list[dict[str, Any]]:
    with (
        hold(home, None, need_airflow=False) as held,
        engine_of(held.databases().writer) as engine,
        engine.begin() as connection,
    ):
        result = connection.execute(text(statement))
        return [dict(row._mapping) for row in result] if result.returns_rows else []


@pytest.fixture(autouse=True)
def nothing_planned(home: Home) -> None:
    home.schedule.unlink(missing_ok=True)


def test_a_night_that_did_not_come_is_told_and_ends_with_5(nightly: Run, home: Home) -> None:
    planned = hours_ago(4)
    planned_now(home.schedule, daily(planned), "UTC", 180, planned - timedelta(hours=1))
    status, output, errors = nightly("watchdog")
    assert status == 5
    night = f"{planned:%Y-%m-%d %H:%M} UTC"
    assert output.startswith(f"{night}  missing     no run began, a result was due by ")
    first, *facts = errors.splitlines()
    assert first.startswith(f"nightly: the night of {night} is missing: no run began")
    assert facts == [f"  planned: {daily(planned)} (UTC), a result within 3:00:00", "  look: ./nightly status"]
    assert rows(home, "SELECT metric, direction, state, occurrences FROM alert") == [
        {"metric": "night", "direction": "missing", "state": "open", "occurrences": 1}
    ]
    assert nightly("watchdog")[0] == 5
    assert rows(home, "SELECT occurrences FROM alert") == [{"occurrences": 1}]
    alerts = list((home.records).rglob("*alert*"))
    assert alerts, "an alert is on file as it is stored"

    status, output, errors = nightly("watchdog", "--deadline", "300", "--json")
    assert (status, errors) == (0, "")
    found = json.loads(output)
    assert (found["lost"], [entry["state"] for entry in found["nights"]]) == (0, ["waiting"])

    status, output, _ = nightly("status")
    assert status == 0
    assert f"nights:     {daily(planned)} (UTC)" in output.splitlines()
    assert f"            {night}  missing     no run began" in output


def test_nights_that_were_stopped_are_missed_with_the_reason(nightly: Run, home: Home) -> None:
    planned = hours_ago(4)
    planned_now(home.schedule, daily(planned), "UTC", 180, planned - timedelta(days=1, hours=1))
    stopped_now(home.schedule, planned - timedelta(hours=2))
    status, _, errors = nightly("watchdog")
    assert status == 5
    assert f"  stopped: by `./nightly down` at {planned - timedelta(hours=2):%Y-%m-%d %H:%M} UTC" in errors.splitlines()
    assert "2 nights in a row" in errors
    assert "(UTC), stopped by `./nightly down` at " in nightly("status")[1]


def test_a_plan_may_be_given_by_hand(nightly: Run, home: Home) -> None:
    planned = hours_ago(5)
    folder_of(home.runs, planned, "manual")
    line = ("watchdog", "--schedule", daily(planned), "--since", (planned - timedelta(minutes=1)).isoformat())
    status, output, _ = nightly(*line)
    assert (status, " missing " in output) == (5, True)
    status, output, errors = nightly(*line, "--by-hand")
    assert (status, " stuck " in output) == (5, True)
    assert f"  look: ./nightly logs manual__{planned.isoformat()}" in errors.splitlines()
    assert nightly(*line[:3], "--since", datetime.now(UTC).isoformat())[:2] == (
        0,
        f"no night was due yet: {daily(planned)} (UTC)\n",
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "watchdog: expected nights that are planned (`./nightly up`) or --schedule CRON, found neither"),
        (["--since", "2026-11-01"], "watchdog --since: expected with --schedule, found without"),
        (["--timezone", "UTC"], "watchdog --timezone: expected with --schedule, found without"),
        (["--schedule", "often"], "schedule: expected a cron line of five fields such as '0 2 * * *', found 'often'"),
        (["--schedule", "0 2 * * *", "--timezone", "Mars"], "NIGHTLY_TIMEZONE: expected a zone such as Europe/Berlin"),
        (["--schedule", "0 2 * * *", "--deadline", "0"], "deadline: expected minutes from 1 to 10080, found '0'"),
        (["--schedule", "0 2 * * *", "--deadline", "-5"], "deadline: expected minutes from 1 to 10080, found '-5'"),
        (["--schedule", "0 2 * * *", "--since", "soon"], "--since: expected a date such as 2026-11-30"),
    ],
)
def test_what_cannot_be_watched_is_refused(nightly: Run, arguments: list[str], told: str) -> None:
    status, output, errors = nightly("watchdog", *arguments)
    assert (status, output) == (2, "")
    assert errors.startswith(f"nightly: {told}"), errors


def test_each_workload_whose_nights_are_planned_is_watched(nightly: Run, home: Home) -> None:
    planned = hours_ago(4)
    began = planned - timedelta(hours=1)
    planned_now(home.schedule, daily(planned), "UTC", 180, began, workloads=("qda", "learner"))
    folder_of(home.runs, planned)
    status, output, errors = nightly("watchdog")
    night = f"{planned:%Y-%m-%d %H:%M} UTC"
    lines = output.splitlines()
    assert (status, len(lines)) == (5, 2)
    assert lines[0].startswith(f"learner   {night}  missing     no run began")
    assert lines[1].startswith(f"qda       {night}  stuck ")
    assert f"nightly: learner: the night of {night} is missing: no run began" in errors
    assert f"nightly: qda: the night of {night} is stuck: " in errors
    told = rows(home, "SELECT workload, metric FROM alert WHERE state = 'open'")
    assert {"workload": "learner", "metric": "night"} in told
    status, output, _ = nightly("watchdog", "--workload", "learner", "--json")
    assert {entry["workload"] for entry in json.loads(output)["nights"]} == {"learner"}
    status, output, _ = nightly("status")
    assert f"nights:     {daily(planned)} (UTC), learner, qda" in output.splitlines()
    assert f"            qda       {night}  stuck" in output
    assert f"            learner   {night}  missing" in output
    status, _, errors = nightly("watchdog", "--workload", "x")
    assert (status, errors) == (2, "nightly: --workload: expected one of qda, learner, found 'x'\n")


def test_a_plan_of_a_workload_that_is_gone_is_named(nightly: Run, home: Home) -> None:
    planned_now(home.schedule, "0 2 * * *", "UTC", 180, hours_ago(4), workloads=("gone",))
    status, _, errors = nightly("watchdog")
    assert (status, errors) == (2, "nightly: workload: expected one of qda, learner, found 'gone'\n")
    status, output, _ = nightly("status")
    assert (status, "workload: expected one of qda, learner, found 'gone'" in output) == (0, True)


def test_a_damaged_plan_is_named(nightly: Run, home: Home) -> None:
    home.schedule.write_text("{")
    status, _, errors = nightly("watchdog")
    assert (status, str(home.schedule) in errors) == (2, True)
    assert str(home.schedule) in nightly("status")[1]


def test_where_nothing_is_planned_the_status_says_so(nightly: Run) -> None:
    assert "nights:     none are planned; `./nightly up` plans them" in nightly("status")[1].splitlines()


def test_a_channel_that_is_no_address_is_refused_before_anything_is_looked_at(
    nightly: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTLY_ALERT_SLACK", "not an address with a secret")
    status, _, errors = nightly("watchdog", "--schedule", "0 2 * * *")
    assert (status, "NIGHTLY_ALERT_SLACK: expected" in errors, "secret" in errors) == (2, True, False)
