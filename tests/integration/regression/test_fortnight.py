"""A fortnight on the simulated device: what happens in it is told once each, with the right words, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.alert_channels import connections
from regression.operators.connection import results_engine
from regression.results.baselines import ensure_first_baselines
from tests.integration.regression.databases import Database
from tests.integration.regression.example_nights import asked
from tests.integration.regression.fortnight import Fortnight
from tests.support.receivers import Post, mail_receiver

ROOT = Path(__file__).resolve().parents[3]
MISSING, NEW_DRIVER, SLOWER, DEARER, LYING_SENSOR, LAST = 5, 7, 9, 11, 13, 14
DEADLINE_HOURS = 3
ON = re.escape("qda on NVIDIA A100-SXM4-40GB (simulated): rehearsal: ")
TOLD = {
    MISSING: (
        r"qda: the night of 2027-01-08 02:00 UTC is missing: no run began, a result was due by 2027-01-08 05:00 UTC",
    ),
    NEW_DRIVER: (ON + r"what the figures are measured with has changed: driver 580.105.08 -> 581.7",),
    SLOWER: (
        ON + r"cuda time per replay [23]\.\d % higher \(0\.0175\d+ ms, baseline 0\.0170\d+ ms\)",
        r"changed too +driver 580.105.08 -&gt; 581.7",
    ),
    DEARER: (
        ON + r"adjusted energy per replay [456]\.\d % higher \(0\.60\d+ mJ, baseline 0\.577\d+ mJ\)",
        r"changed too +driver 580.105.08 -&gt; 581.7",
    ),
    LYING_SENSOR: (ON + r"adjusted energy per replay cannot be judged: failed gates: reference_load\b.*", "found 0.0"),
}
"""Night to the subject of its only mail, and what its text holds."""


@pytest.fixture
def post(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Post]:
    """The inbox of the people that are told, of an installation with the shipped baselines."""
    ensure_first_baselines(database.writer, ROOT / "gpu_tasks" / "baselines")
    url = database.writer.url
    server = {"conn_type": "postgres", "host": url.host, "port": url.port, "schema": url.database}
    server |= {"login": url.username, "password": url.password}
    with mail_receiver() as post:
        address = f"smtp://127.0.0.1:{post.port}/?from=nightly@example.org&to=team@example.org&tls=none"
        variables = connections({"NIGHTLY_ALERT_SMTP": address}) | {
            "AIRFLOW_CONN_KERNEL_NIGHTLY_RESULTS": json.dumps(server),
            "NIGHTLY_ROOT": str(ROOT),
            "NIGHTLY_RUNS": str(tmp_path / "runs"),
            "NIGHTLY_RECORDS": str(tmp_path / "records"),
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        results_engine.cache_clear()
        yield post
        results_engine.cache_clear()


def effects(night: int) -> str:
    begun = {NEW_DRIVER: "driver=581.7", SLOWER: "time+3%", DEARER: "energy+5%"}
    there = [effect for first, effect in begun.items() if night >= first]
    return ",".join(there + ["faulty_sensor"] * (night == LYING_SENSOR))


def test_a_fortnight(post: Post, database: Database) -> None:
    nights, verdicts, told = Fortnight(), {}, {}
    for number in range(1, LAST + 1):
        before = len(post.mails)
        if number != MISSING:
            verdicts[number] = nights.night(number, effects(number), seed=number)
        for hours in (1, 2, 4, 5, 20):
            content = nights.watchdog(number, hours)
            assert content is (number != MISSING or hours < DEADLINE_HOURS), (number, hours)
        told[number] = [mail for _, mail in post.mails[before:]]
    assert {number for number, mails in told.items() if mails} == {MISSING, NEW_DRIVER, SLOWER, DEARER, LYING_SENSOR}
    for number, (subject, *lines) in TOLD.items():
        (mail,) = told[number]
        assert re.fullmatch(subject, str(mail["Subject"]).removeprefix("[nightly] ")), mail["Subject"]
        body = mail.get_body(("html",)).get_content()
        for line in lines:
            assert re.search(line, body), (line, body)
    exits = {number: verdict["exit"] for number, verdict in verdicts.items()}
    assert exits == {number: int(number >= SLOWER) for number in verdicts}
    assert verdicts[LYING_SENSOR]["checks"]["energy"]["verdict"] == "invalid"
    stored = asked(database, "SELECT metric, direction, state, occurrences FROM alert ORDER BY alert_id")
    assert [tuple(row) for row in stored] == [
        ("night", "missing", "resolved", 1),
        ("environment", "changed", "open", 8),
        ("time", "higher", "open", 6),
        ("energy", "higher", "open", 3),
        ("energy", "missing", "open", 1),
    ]
