"""Every text that people are sent or shown, word for word: the files in golden/."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regression.alerts import texts
from regression.alerts.of_run import signals_of
from regression.alerts.plain import one_line
from regression.alerts.signal import Signal
from tests.unit.regression.alert_examples import (
    AGREEMENT,
    BEGAN,
    DRIVER,
    ENERGY,
    ENERGY_HISTORY,
    FAULTY_ENERGY,
    FAULTY_HISTORIES,
    KERNEL,
    MEMORY,
    NEW_CLASS,
    QUALIFICATION,
    REPEATABILITY,
    TIME,
    check,
    environment,
    run,
)

GOLDEN = Path(__file__).with_name("golden")
AIRFLOW = "http://127.0.0.1:8080"
BROKEN = {
    "verdict": "infrastructure_failure",
    "reason_code": "device_lost",
    "reason": "the GPU fell off the bus (Xid 79)",
}
MISMATCH = {
    "verdict": "verification_mismatch",
    "reason_code": "source_mismatch",
    "reason": "kernels/qda.ptx: expected sha256 aaaa, found bbbb",
}
LEARNER: dict[str, Any] = {"workload": "learner", "dag_id": "nightly_learner", "has_kernel": False}
RUNS = {
    "agreement": run(AGREEMENT),
    "energy": run(ENERGY, ENERGY_HISTORY, check("agreement"), check("time"), environment(DRIVER, KERNEL)),
    "faulty-sensor": run(
        FAULTY_ENERGY,
        *FAULTY_HISTORIES,
        check("agreement"),
        check("time"),
        environment(),
        verdict="invalid_measurement",
    ),
    "history-only": run(check("energy"), replace(ENERGY_HISTORY, baseline=None), environment(DRIVER)),
    "time": run(TIME, trigger="manual", label="try", inject="time+3%", dag_run_id="manual__1"),
    "memory": run(MEMORY, *map(check, ("agreement", "qualification", "energy", "time")), environment(), **LEARNER),
    "qualification": run(QUALIFICATION, check("agreement"), **LEARNER),
    "repeatability": run(REPEATABILITY, check("agreement"), check("memory"), environment(DRIVER), **LEARNER),
    "driver": run(*map(check, ("agreement", "energy", "time")), environment(DRIVER), verdict="ok"),
    "new-segment": run(environment(NEW_CLASS, DRIVER), verdict="inconclusive"),
    "broken-night": run(check("agreement", "invalid", plain_reason="draw 4 was not run"), **BROKEN),
    "mismatch": run(check("agreement", "invalid", plain_reason=MISMATCH["reason"]), device=None, **MISMATCH),
}
MISSING = Signal(
    "qda",
    "night",
    "missing",
    "infrastructure_failure",
    "no result of the night of 2026-11-30 02:00 UTC by 05:00 UTC",
    night=BEGAN,
)
OPENED = BEGAN + timedelta(minutes=5)


def first(name: str) -> Signal:
    return signals_of(RUNS[name], AIRFLOW)[0]


def agrees(name: str, found: str) -> None:
    """Compare with the golden file; NIGHTLY_WRITE_GOLDEN=1 writes it, to be read before it is committed."""
    path = GOLDEN / f"alert-{name}.txt"
    if os.environ.get("NIGHTLY_WRITE_GOLDEN"):
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8")


def shown(message: texts.Message) -> str:
    return f"Subject: {message.subject}\n\n{message.body}"


@pytest.mark.parametrize("name", RUNS)
def test_messages_of_runs(name: str) -> None:
    agrees(name, shown(texts.message(first(name), "opened", 12, OPENED, 1)))


@pytest.mark.parametrize("event", ["reopened", "seen_again"])
def test_messages_of_what_is_back(event: str) -> None:
    agrees(event, shown(texts.message(first("energy"), event, 12, OPENED, 3)))


def test_messages_that_are_of_no_run() -> None:
    agrees("missing-night", shown(texts.message(MISSING, "opened", 7, OPENED, 1)))
    link = texts.run_link(AIRFLOW, "nightly_qda", "scheduled__1")
    agrees("database-away", shown(texts.database_away("nightly_qda", "scheduled__1", BEGAN, link)))
    agrees("test", shown(texts.test_message(BEGAN)))


def test_what_the_commands_show() -> None:
    message = texts.message(first("energy"), "opened", 12, OPENED, 1)
    alert = {
        "alert_id": 12,
        "state": "muted",
        "text": texts.subject(first("energy"), "opened"),
        "message": message.body,
        "opened_at": OPENED,
        "last_seen_at": OPENED + timedelta(days=1),
        "occurrences": 2,
        "acknowledged_by": "ann",
        "acknowledged_at": OPENED + timedelta(hours=6),
        "acknowledged_reason": "fan is being replaced",
        "muted_until": OPENED + timedelta(days=7),
        "value": 0.633,
        "unit": "mJ",
    }
    resolved = alert | {"alert_id": 3, "state": "resolved", "text": "qda: the night is missing", "message": None}
    resolved |= dict.fromkeys(("acknowledged_by", "acknowledged_at", "value", "unit"))
    events = [
        event(0, "opened", first("energy").headline, dag_run_id="scheduled__2026-11-30T02:00:00+00:00"),
        event(0.1, "notification_failed", "attempt 1 of 3: TimeoutError: timed out", channel="smtp"),
        event(0.2, "notified", "answered 200 ok", channel="slack"),
        event(6, "muted", "fan is being replaced (until 2026-12-07 02:05 UTC)", author="ann"),
    ]
    agrees("list", texts.alert_table([alert, resolved]) + "\n")
    agrees("show", texts.alert_page(alert, events) + "\n")
    night = event(0, "opened", MISSING.headline, night=BEGAN)
    agrees("show-resolved", texts.alert_page(resolved, [night]) + "\n")


def event(hours: float, what: str, words: str, author: str = "kernel-nightly", **of: object) -> dict[str, object]:
    values = {"at": OPENED + timedelta(hours=hours), "event": what, "author": author, "text": words}
    return values | dict.fromkeys(("channel", "dag_run_id", "night")) | of


def test_every_golden_file_is_of_a_text() -> None:
    others = {"reopened", "seen_again", "missing-night", "database-away", "test", "list", "show", "show-resolved"}
    assert {path.stem.removeprefix("alert-") for path in GOLDEN.glob("alert-*.txt")} == RUNS.keys() | others


def test_a_subject_is_one_short_line_whatever_the_reason_says() -> None:
    long = replace(MISSING, headline="a \t" + "very " * 100 + "long one")
    subject = texts.subject(long, "opened")
    assert len(subject) == texts.MAX_SUBJECT
    assert subject.startswith("qda: a very very")
    assert subject.endswith("…")


@given(st.text(min_size=1).filter(lambda words: one_line(words) != ""))
@example("a\r\nBcc: everybody@example.org")
@example("\x1b[2Jcleared\u2028next\u202edesrever \U0001f600 \ud800")
def test_words_of_others_are_one_line_that_shows(words: str) -> None:
    named = {"device": words, "label": words, "inject": words, "trigger": "manual"}
    runs = (
        run(replace(ENERGY, plain_reason=words, verdict="invalid"), environment(replace(DRIVER, after=words)), **named),
        run(**BROKEN | {"reason": words, "device": words, "inject": words}),
    )
    for signal in (signal for each in runs for signal in signals_of(each, AIRFLOW)):
        message = texts.message(signal, "opened", 12, OPENED, 1)
        assert len(message.subject.splitlines()) == 1 and message.subject.isprintable()
        plain = texts.message(replace(signal, headline="x"), "opened", 12, OPENED, 1)
        assert len(message.body.splitlines()) == len(plain.body.splitlines()) == message.body.count("\n")
        assert all(line.isprintable() for line in message.body.split("\n"))


def test_what_people_said_of_an_alert_stays_on_its_line() -> None:
    said = "fan\n2026-12-24 02:05 UTC  resolved, bob: \x1b[31mfine"
    alert = {"alert_id": 1, "state": "acknowledged", "text": "energy", "message": None, "value": None, "unit": None}
    alert |= {"acknowledged_by": "ann", "acknowledged_at": OPENED, "acknowledged_reason": said}
    page = texts.alert_page(alert, [event(0, "acknowledged", said, author="ann")])
    assert [line for line in page.split("\n") if line.startswith("2026-12-24")] == []
    assert "\x1b" not in page
    assert texts.alert_line(alert | {"text": said}).isprintable()


def test_a_line_has_an_end() -> None:
    longest = texts.message(replace(MISSING, facts=(("reason", "x" * 10_000),)), "opened", 7, OPENED, 1)
    assert max(map(len, longest.body.split("\n"))) < texts.MAX_LINE + 20


def test_the_documentation_shows_texts_as_they_are() -> None:
    document = (Path(__file__).resolve().parents[3] / "docs" / "alerts.md").read_text(encoding="utf-8")
    shown = [block for block in document.split("```")[1::2] if block.startswith("\nSubject: ")]
    assert len(shown) == 5
    golden = {path.read_text(encoding="utf-8") for path in GOLDEN.glob("alert-*.txt")}
    assert [block for block in shown if block.removeprefix("\n") not in golden] == []
