"""Whole nights by ``dag.test`` with real receivers: what arrives, and that the verdict does not wait for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from local.alert_channels import connections
from tests.integration.dags.conftest import Ran
from tests.integration.regression.databases import Database
from tests.integration.regression.example_nights import asked
from tests.support.receivers import free_port, http_receiver, mail_receiver

Night = Callable[..., Ran]


def test_a_night_that_disagrees_is_told_on_every_channel_and_a_fine_one_on_none(
    run_night: Night, database: Database, tmp_path: Path
) -> None:
    with http_receiver() as inbox, mail_receiver() as post:
        channels = connections(
            {
                "NIGHTLY_ALERT_SMTP": f"smtp://127.0.0.1:{post.port}/?from=n@x.org&to=a@x.org&tls=none",
                "NIGHTLY_ALERT_SLACK": f"http://127.0.0.1:{inbox.port}/services/s3cret",
                "NIGHTLY_ALERT_WEBHOOK": f"http://127.0.0.1:{inbox.port}/hook?key=s3cret",
            }
        )
        fine = run_night(environment=channels)
        assert (fine.state, fine.tasks["alert"]) == ("success", {"success"}), fine.log[-3000:]
        assert (inbox.requests, post.mails) == ([], [])
        ran = run_night("disagree:3", environment=channels)
    assert (ran.tasks["alert"], ran.tasks["verdict"]) == ({"success"}, {"failed"})
    told = "index 17: expected 4, found 9"
    assert told in post.mails[0][1]["Subject"]
    assert [told in json.dumps(body) for body in inbox.bodies] == [True, True]
    assert f"./nightly logs {ran.dag_run_id}" in inbox.bodies[1]["text"]
    assert asked(database, "SELECT metric, direction, state FROM alert") == [("agreement", "lower", "open")]
    assert asked(database, "SELECT channel FROM alert_event WHERE event = 'notified' ORDER BY alert_event_id") == [
        ("smtp",),
        ("slack",),
        ("webhook",),
    ]
    assert len(list((tmp_path / "records" / "alerts").iterdir())) == 1
    assert "s3cret" not in fine.log + ran.log


def test_a_night_whose_channel_is_away_ends_as_its_verdict_says(run_night: Night, database: Database) -> None:
    away = connections({"NIGHTLY_ALERT_WEBHOOK": f"http://127.0.0.1:{free_port()}/hook?key=s3cret"})
    ran = run_night("disagree:3", environment=away)
    assert ran.tasks["alert"] == {"success"}
    assert (ran.verdict["verdict"], ran.verdict["exit"]) == ("regression", 1)
    told = "SELECT text FROM alert_event WHERE event = 'notification_failed' ORDER BY alert_event_id"
    failed = asked(database, told)
    assert [text.partition(":")[0] for (text,) in failed] == [f"attempt {number} of 3" for number in (1, 2, 3)]
    assert "s3cret" not in ran.log + str(failed)
