"""`nightly alerts` on an installation of its own: what it prints, stores, sends and refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from local import airflow
from local.databases import engine_of
from local.paths import ROOT, Home
from local.secrets import load
from local.stack import hold
from regression.alerts.raising import raise_alerts
from regression.alerts.signal import Signal
from regression.results.alert_files import files
from tests.support.commands import Run
from tests.support.receivers import free_port, http_receiver, mail_receiver

NOW = datetime.now(UTC)
CHANNELS = ("NIGHTLY_ALERT_SMTP", "NIGHTLY_ALERT_SLACK", "NIGHTLY_ALERT_WEBHOOK")


@pytest.fixture
def engine(home: Home) -> Iterator[Engine]:
    with hold(home, None, need_airflow=False) as held, engine_of(held.databases().writer) as found:
        yield found


@pytest.fixture
def number(engine: Engine, home: Home, request: pytest.FixtureRequest) -> int:
    """An open alert of this test's own workload."""
    workload = request.node.name[:60]
    line = "no result of the night"
    signal = Signal(workload, "night", "missing", "infrastructure_failure", line, night=NOW - timedelta(hours=3))
    (raised,) = raise_alerts(engine, [signal], NOW - timedelta(minutes=1), records=home.records)
    return raised.alert_id


def stored(engine: Engine, number: int) -> dict[str, Any]:
    with engine.connect() as connection:
        statement = text("SELECT * FROM alert WHERE alert_id = :number")
        return dict(connection.execute(statement, {"number": number}).one()._mapping)


def test_an_alert_is_listed_shown_and_answered(nightly: Run, home: Home, engine: Engine, number: int) -> None:
    status, out, _ = nightly("alerts", "list")
    assert status == 0
    assert [line for line in out.splitlines() if line.startswith(f"{number} ") and "no result of the night" in line]
    status, out, err = nightly("alerts", "ack", number, "--reason", "the switch is being replaced", "--by", "ann")
    assert (status, err) == (0, "")
    assert out.startswith(f"alert {number}, acknowledged: ")
    _, out, _ = nightly("alerts", "show", number)
    assert "acknowledged, ann: the switch is being replaced" in out
    assert f"./nightly alerts show {number}" in out
    assert nightly("alerts", "resolve", number, "--reason", "replaced")[0] == 0
    assert stored(engine, number)["state"] == "resolved"
    assert f"\n{number} " not in nightly("alerts", "list")[1]
    assert f"\n{number} " in nightly("alerts", "list", "--all")[1]
    assert f"\n{number} " in nightly("alerts", "list", "--state", "resolved")[1]
    (path,) = [path for path in files(home.records) if path.stem.endswith(f"-{number:04d}")]
    assert [event["event"] for event in json.loads(path.read_text())["events"]] == [
        "opened",
        "acknowledged",
        "resolved",
    ]


def test_json_has_every_field_and_event(nightly: Run, number: int) -> None:
    _, out, _ = nightly("alerts", "list", "--json")
    (listed,) = [alert for alert in json.loads(out) if alert["alert_id"] == number]
    assert datetime.fromisoformat(listed["opened_at"]).tzinfo is not None
    _, out, _ = nightly("alerts", "show", number, "--json")
    shown = json.loads(out)
    assert {**shown, "events": None} == {**listed, "events": None}
    assert [event["event"] for event in shown["events"]] == ["opened"]


@pytest.mark.parametrize(("given", "days"), [(("--for", "7d"), 7.0), (("--for", "12h"), 0.5), (("--for", "2w"), 14.0)])
def test_a_mute_has_an_end(nightly: Run, engine: Engine, number: int, given: tuple[str, str], days: float) -> None:
    before = datetime.now(UTC)
    status, out, err = nightly("alerts", "mute", number, *given, "--reason", "known")
    assert (status, err) == (0, "")
    until = stored(engine, number)["muted_until"]
    assert timedelta(0) <= until - before - timedelta(days=days) < timedelta(minutes=10)
    assert f"muted until {until.astimezone(UTC):%Y-%m-%d %H:%M} UTC" in out


def test_the_end_of_a_mute_is_a_date_or_a_time(nightly: Run, engine: Engine, number: int) -> None:
    day = (NOW + timedelta(days=10)).date()
    assert nightly("alerts", "mute", number, "--until", day, "--reason", "known")[0] == 0
    assert stored(engine, number)["muted_until"] == datetime(day.year, day.month, day.day, tzinfo=UTC)
    assert nightly("alerts", "mute", number, "--until", f"{day}T08:00+02:00", "--reason", "known")[0] == 0
    assert stored(engine, number)["muted_until"] == datetime(day.year, day.month, day.day, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    "case",
    [
        (
            ("mute", "{}", "--for", "ever", "--reason", "r"),
            "--for: expected a span such as 12h, 7d or 2w, found 'ever'",
        ),
        (("mute", "{}", "--for", "600d", "--reason", "r"), "in the future, within a year, found "),
        (("mute", "{}", "--until", "2020-01-01", "--reason", "r"), "in the future, within a year, found 2020-01-01"),
        (("mute", "{}", "--until", "tomorrow", "--reason", "r"), "--until: expected a date such as"),
        (("mute", "{}", "--until", "2030-01-01T00:00", "--reason", "r"), "--until: expected a date such as"),
        (("mute", "{}", "--reason", "r"), "one of the arguments --until --for is required"),
        (("ack", "{}"), "the following arguments are required: --reason"),
        (("ack", "{}", "--reason", " "), "argument --reason: expected some words, found ' '"),
        (("ack", "999999", "--reason", "r"), "alert 999999: expected the number of an alert"),
        (("show", "999999"), "alert 999999: expected the number of an alert"),
        (("show", "x"), "argument N: invalid int value: 'x'"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    nightly: Run, engine: Engine, number: int, case: tuple[tuple[str, ...], str], capsys: pytest.CaptureFixture[str]
) -> None:
    words, told = case
    try:
        status, out, err = nightly("alerts", *(word.format(number) for word in words))
    except SystemExit as ended:
        status, (out, err) = ended.code, capsys.readouterr()
    assert (status, out) == (2, "")
    assert told in err
    assert stored(engine, number)["state"] == "open"


def alerts_test(home: Home, **channels: str) -> tuple[int, str, str]:
    """``nightly alerts test`` in a process of its own, as Airflow keeps what it once read of a connection."""
    environment = {name: value for name, value in os.environ.items() if name not in CHANNELS}
    main = (
        "import sys; from local import cli; cli._inside_scheduler = lambda home: True; "
        "sys.exit(cli.main(['alerts', 'test']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", main],
        env=environment | channels | {"NIGHTLY_HOME": str(home.folder)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr


def test_a_test_message_goes_to_every_channel_and_each_answer_is_told(home: Home) -> None:
    with http_receiver() as inbox, mail_receiver(login=("n", "p4ssw0rd")) as post:
        inbox.said = "ok {path}"
        status, out, err = alerts_test(
            home,
            NIGHTLY_ALERT_SMTP=f"smtp://n:p4ssw0rd@127.0.0.1:{post.port}/?from=n@x.org&to=a@x.org&tls=none",
            NIGHTLY_ALERT_SLACK=f"http://127.0.0.1:{inbox.port}/services/s3cret",
            NIGHTLY_ALERT_WEBHOOK=f"http://127.0.0.1:{inbox.port}/hook?key=s3cret",
        )
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "smtp: taken for 1 of 1 addresses",
        "slack: answered 200 ok ***",
        "webhook: answered 200 ok ***",
    ]
    assert post.mails[0][1]["Subject"] == "[nightly] test of this channel"
    assert [len(inbox.requests), "A test of this channel" in inbox.bodies[1]["text"]] == [2, True]


def test_a_channel_that_does_not_take_it_is_named_and_no_secret_is_told(home: Home) -> None:
    with http_receiver() as inbox:
        inbox.status = 403
        status, out, err = alerts_test(
            home,
            NIGHTLY_ALERT_SMTP=f"smtp://n:p4ssw0rd@127.0.0.1:{free_port()}/?from=n@x.org&to=a@x.org",
            NIGHTLY_ALERT_WEBHOOK=f"http://127.0.0.1:{inbox.port}/hook?key=s3cret",
        )
    assert status == 5
    assert "smtp: not delivered: ConnectionRefusedError" in out
    assert "webhook: not delivered: answered 403" in out
    assert err == "nightly: not every channel took the message: smtp, webhook\n"
    assert not {"p4ssw0rd", "s3cret"} & set((out + err).replace("/", " ").split())


def test_a_test_without_channels_or_with_a_wrong_address_is_refused(home: Home) -> None:
    status, _, err = alerts_test(home)
    assert (status, "expected a channel in NIGHTLY_ALERT_SMTP" in err) == (2, True)
    status, _, err = alerts_test(home, NIGHTLY_ALERT_SLACK="hooks.slack.com/services/s3cret")
    assert (status, "NIGHTLY_ALERT_SLACK: expected the address" in err, "s3cret" in err) == (2, True, False)


def test_airflow_gets_the_channels_as_connections_and_the_addresses_in_no_other_way(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTLY_ALERT_SLACK", "https://hooks.slack.com/services/s3cret")
    monkeypatch.setenv("_AIRFLOW__AS_LIBRARY", "1")  # of a command that sends alerts: Airflow would log all
    with hold(home, None, need_airflow=False) as held:
        schedule = airflow.Schedule("none", "UTC", "2026-01-01T00:00:00+00:00")
        found = airflow.settings(home, held.databases(), load(home.secrets), 8080, schedule)
    holding = {name for name, value in found.items() if "s3cret" in value}
    assert holding == {"AIRFLOW_CONN_KERNEL_NIGHTLY_SLACK"}
    assert Path(found["AIRFLOW_HOME"]) == home.airflow
    assert "_AIRFLOW__AS_LIBRARY" not in found
