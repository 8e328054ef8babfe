"""Deliveries: told once on every channel, tried again later and later, every attempt an event, and never in the way."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from local.alert_channels import connections
from regression.alerts import delivering
from regression.alerts.answers import acknowledge, mute, resolve
from regression.alerts.channels import Channel, DeliveryFailed, configured
from regression.alerts.delivering import LONGEST_WAIT, PAUSES_S, Delivery, deliver, next_try
from regression.alerts.raising import raise_alerts
from regression.alerts.texts import Message
from regression.results.alert_files import files
from tests.integration.regression.alert_nights import events, missing, moment, night
from tests.integration.regression.databases import Database, one
from tests.integration.regression.example_nights import asked
from tests.support.receivers import Inbox, Post, free_port, http_receiver, mail_receiver

ATTEMPTS = len(PAUSES_S) + 1


class Fake(Channel):
    """Takes a message unless it is told to fail."""

    def __init__(self, name: str = "slack", failing: bool = False) -> None:
        self.name = name
        self.failing = failing
        self.sent: list[tuple[Message, Mapping[str, Any]]] = []

    def send(self, message: Message, document: Mapping[str, Any]) -> str:
        if self.failing:
            raise DeliveryFailed("not_accepted", "answered 500")
        self.sent.append((message, document))
        return "answered 200"

    def _send(self, message: Message, document: Mapping[str, Any]) -> str:
        raise NotImplementedError


def delivered(database: Database, now: datetime, *channels: Channel, records: Path | None = None) -> list[Delivery]:
    waits: list[float] = []
    done = deliver(database.writer, channels, records=records, clock=lambda: now, pause=waits.append)
    assert waits == list(PAUSES_S) * sum(not found.taken for found in done)
    return done


def test_an_alert_is_told_once_on_every_channel(database: Database) -> None:
    slack, mail = Fake(), Fake("smtp")
    for day in (1, 2, 3):
        night(database, day)
        done = delivered(database, moment(day), slack, mail)
        assert [(found.channel, found.taken) for found in done] == ([("slack", True), ("smtp", True)] * (day == 1))
    ((message, document),) = slack.sent
    stored = one(database, "SELECT text, message FROM alert")
    assert (message.subject, message.body) == (f"[nightly] {stored['text']}", stored["message"])
    assert document == {
        "kind": "kernel-nightly-alert",
        "alert_id": 1,
        "workload": "qda",
        "device": "Test GPU",
        "metric": "energy",
        "direction": "higher",
        "outcome": "regression",
        "occurrences": 1,
        "value": 0.66,
        "baseline_value": 0.6,
        "unit": "mJ",
        "dag_id": "nightly_qda",
        "dag_run_id": "scheduled__01",
        "run_id": document["run_id"],
        "opened_at": "2026-12-01T02:10:00.000000Z",
        "last_seen_at": "2026-12-01T02:10:00.000000Z",
    }
    told = asked(database, "SELECT channel, author, text FROM alert_event WHERE event = 'notified' ORDER BY channel")
    assert told == [("slack", "kernel-nightly", "answered 200"), ("smtp", "kernel-nightly", "answered 200")]


def test_what_nobody_has_to_be_told_of_is_not_delivered(database: Database) -> None:
    """dotnet/performance 4312."""
    said: dict[str, Any] = {"author": "ann", "reason": "known", "now": moment(1.1)}
    for answer in (acknowledge, resolve):
        raise_alerts(database.writer, [missing(1)], moment(1))
        answer(database.writer, 1, **said)
        assert delivered(database, moment(2), Fake()) == []
    night(database, 3)
    mute(database.writer, 2, author="ann", reason="known", until=moment(5), now=moment(3))
    assert delivered(database, moment(6), Fake()) == []
    with database.admin.begin() as connection:
        connection.execute(text("UPDATE alert SET tell_since = NULL"))
    assert delivered(database, moment(6), Fake()) == []


def test_what_is_back_is_told_again(database: Database) -> None:
    slack = Fake()
    night(database, 1)
    delivered(database, moment(1), slack)
    resolve(database.writer, 1, author="ann", reason="fan", now=moment(1.5))
    night(database, 2)
    delivered(database, moment(2), slack)
    mute(database.writer, 1, author="ann", reason="fan", until=moment(2.5), now=moment(2.1))
    night(database, 3)
    delivered(database, moment(3), slack)
    assert [message.body.splitlines()[0] for message, _ in slack.sent] == [
        "qda on Test GPU:",
        "This was resolved, and is back.",
        "The mute of this alert is over, and it is still there.",
    ]


def test_a_channel_that_fails_is_tried_three_times_then_later_and_keeps_nothing_from_the_others(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    broken, fine = Fake("webhook", failing=True), Fake("slack")
    night(database, 1)
    done = delivered(database, moment(1), broken, fine)
    assert [(found.channel, found.taken) for found in done] == [("webhook", False), ("slack", True)]
    assert events(database) == ["opened", *["notification_failed"] * ATTEMPTS, "notified"]
    failed = "SELECT text FROM alert_event WHERE event = 'notification_failed' ORDER BY alert_event_id"
    words = asked(database, failed)
    assert [word for (word,) in words] == [f"attempt {number} of 3: answered 500" for number in (1, 2, 3)]
    assert "alert 1 on webhook: attempt 3 of 3: answered 500" in caplog.text
    assert delivered(database, moment(1) + timedelta(minutes=59), broken, fine) == []
    broken.failing = False
    done = delivered(database, moment(2), broken, fine)
    assert [(found.channel, found.taken) for found in done] == [("webhook", True)]


def test_a_channel_that_fails_is_not_asked_for_every_alert(database: Database) -> None:
    broken = Fake(failing=True)
    night(database, 1)
    raise_alerts(database.writer, [missing(1)], moment(1.1))
    assert [found.alert_id for found in delivered(database, moment(2), broken)] == [1]
    assert [found.alert_id for found in delivered(database, moment(2.01), broken)] == [2]  # the first one waits


def test_waits_grow_and_end() -> None:
    assert next_try([]) is None
    waits = []
    for rounds in range(1, 8):
        failures = [moment(1)] * (ATTEMPTS * rounds - 1) + [moment(2)]
        again = next_try(failures)
        assert again is not None
        waits.append(again - moment(2))
    assert waits == [min(timedelta(hours=2**n), LONGEST_WAIT) for n in range(7)]
    assert timedelta(hours=24) > LONGEST_WAIT
    assert next_try([moment(1)] * (ATTEMPTS * 10**6)) == moment(1) + LONGEST_WAIT


def test_failures_before_it_was_told_anew_do_not_count(database: Database) -> None:
    broken = Fake(failing=True)
    night(database, 1)
    delivered(database, moment(1), broken)
    resolve(database.writer, 1, author="ann", reason="fan", now=moment(1) + timedelta(minutes=1))
    raise_alerts(database.writer, [], moment(1))
    night(database, 2)
    assert len(delivered(database, moment(2), broken)) == 1


def test_two_deliveries_at_once_send_one_message(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """airflow 56942: what is tried again does not tell again."""
    monkeypatch.setattr(delivering, "WAIT_FOR_OTHERS", "20s")
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Fake):
        def send(self, message: Message, document: Mapping[str, Any]) -> str:
            begun.set()
            assert go_on.wait(20)
            return super().send(message, document)

    slow, second = Slow(), Fake()
    night(database, 1)
    threads = [threading.Thread(target=delivered, args=(database, moment(1), slow))]
    threads[0].start()
    assert begun.wait(20)
    threads.append(threading.Thread(target=delivered, args=(database, moment(1), second)))
    threads[1].start()
    while not one(database, "SELECT count(*) AS n FROM pg_locks WHERE NOT granted")["n"]:
        pass
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert (len(slow.sent), len(second.sent)) == (1, 0)


def test_who_waits_too_long_leaves_it_to_the_other(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivering, "WAIT_FOR_OTHERS", "10ms")
    night(database, 1)
    slack = Fake()
    with database.writer.begin() as holder:
        holder.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('alert deliveries', 0))"))
        assert delivered(database, moment(1), slack) == []
    assert len(delivered(database, moment(1), slack)) == 1


def test_deliveries_are_on_file(database: Database, tmp_path: Path) -> None:
    night(database, 1, records=tmp_path)
    delivered(database, moment(1), Fake(), records=tmp_path)
    (path,) = files(tmp_path)
    assert '"event": "notified"' in path.read_text()


@pytest.fixture
def receivers(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Inbox, Post]]:
    """All three channels set up as the launcher does, with real receivers."""
    with http_receiver() as inbox, mail_receiver() as post:
        http = f"http://127.0.0.1:{inbox.port}"
        addresses = {
            "NIGHTLY_ALERT_SMTP": f"smtp://127.0.0.1:{post.port}/?from=n@x.org&to=a@x.org&tls=none",
            "NIGHTLY_ALERT_SLACK": f"{http}/services/T0p/s3cret",
            "NIGHTLY_ALERT_WEBHOOK": f"{http}/hook?key=s3cret",
        }
        for name, value in connections(addresses).items():
            monkeypatch.setenv(name, value)
        yield inbox, post


def test_the_text_of_an_alert_arrives_on_all_three_channels(database: Database, receivers: tuple[Inbox, Post]) -> None:
    inbox, post = receivers
    night(database, 1)
    done = delivered(database, moment(1), *configured(environment_only=True))
    assert [(found.channel, found.taken) for found in done] == [("smtp", True), ("slack", True), ("webhook", True)]
    stored = one(database, "SELECT text, message FROM alert")
    (_, mail), (slack, webhook) = post.mails[0], inbox.bodies
    assert mail["Subject"] == webhook["subject"] == f"[nightly] {stored['text']}"
    assert webhook["text"] == stored["message"]
    assert stored["message"] in slack["text"].replace("&gt;", ">")
    assert stored["message"].splitlines()[0] in post.text_of()


def test_no_secret_is_in_the_events_of_a_failure(
    database: Database, receivers: tuple[Inbox, Post], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    inbox, _ = receivers
    inbox.status, inbox.said = 500, "what is {path}?"
    away = connections({"NIGHTLY_ALERT_SMTP": f"smtp://me:s3cret@127.0.0.1:{free_port()}/?from=a@x.org&to=b@x.org"})
    for name, value in away.items():
        monkeypatch.setenv(name, value)
    night(database, 1)
    done = delivered(database, moment(1), *configured(environment_only=True), records=tmp_path)
    assert [found.taken for found in done] == [False] * 3
    stored = " ".join(word for (word,) in asked(database, "SELECT text FROM alert_event"))
    assert "Connection refused" in stored
    assert "answered 500 what is" in stored
    assert "s3cret" not in stored + files(tmp_path)[0].read_text()
