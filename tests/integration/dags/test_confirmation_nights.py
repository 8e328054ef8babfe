"""Nights whose first rounds leave the spread of the baseline: by chance, with confirmation and without."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import text

from gpu_tasks.records import RunRecord, read_record
from tests.integration.dags.conftest import Ran
from tests.integration.regression.databases import Database

Night = Callable[..., Ran]
SUCCESS, FAILED, NOT_RUN, SKIPPED = {"success"}, {"failed"}, {"upstream_failed"}, {"skipped"}
BY_CHANCE = {"device": "simulated", "draws": [0], "rounds": 3, "seed": 154}
"""An unchanged device whose first three rounds happen to lie below the spread of the shipped baseline."""


def test_what_was_chance_is_not_confirmed_and_the_night_ends_ok(
    run_night: Night, database: Database, tmp_path: Path
) -> None:
    ran = run_night(**BY_CHANCE, confirm_rounds=4)
    assert (ran.state, ran.verdict["verdict"], ran.verdict["exit"]) == ("success", "ok", 0), ran.log[-3000:]
    assert (ran.tasks["measure"], ran.tasks["remeasure"], ran.tasks["energy"]) == (SUCCESS, SUCCESS, SUCCESS)
    check = ran.verdict["checks"]["energy"]
    assert (check["verdict"], check["first_look"]["verdict"]) == ("ok", "regressed")
    assert check["reason"].startswith("first 3 rounds: below; with 4 confirmation rounds: within; adjusted energy")
    assert ran.verdict["confirmation"]["rounds"] == 4
    assert "energy, first rounds" in ran.log and "energy, all rounds" in ran.log
    with database.reader.connect() as connection:
        steps = connection.execute(text("SELECT step, verdict FROM check_result WHERE check_name = 'energy'"))
        assert sorted(tuple(row) for row in steps) == [(0, "regressed"), (1, "ok")]
        rounds = connection.execute(text("SELECT r.step, count(*) FROM round r JOIN nightly USING (run_id) GROUP BY 1"))
        assert sorted(tuple(row) for row in rounds) == [(0, 3), (1, 4)]
    record = read_record(tmp_path / "records" / f"{ran.verdict['run_id']}.json", RunRecord)
    assert (record.confirmation_rounds, len(record.rounds), record.energy_trust) == ([3, 4, 5, 6], 7, "verified")
    assert record.confirmation and [look.out_of_spread for look in record.confirmation.looks] == [True, False]


def test_without_confirmation_rounds_the_first_ones_have_the_last_word(
    run_night: Night, database: Database, tmp_path: Path
) -> None:
    ran = run_night(**BY_CHANCE, confirm_rounds=0)
    assert (ran.verdict["verdict"], ran.verdict["exit"]) == ("regression", 1)
    assert (ran.tasks["remeasure"], ran.tasks["energy"]) == (SKIPPED, FAILED)
    check = ran.verdict["checks"]["energy"]
    assert "first_look" not in check and check["reason"].startswith("adjusted energy")
    with database.reader.connect() as connection:
        steps = connection.execute(text("SELECT step, verdict FROM check_result WHERE check_name = 'energy'"))
        assert [tuple(row) for row in steps] == [(0, "regressed")]
        night = connection.execute(text("SELECT confirmation_rounds, confirmation_reason FROM nightly")).one()
    assert tuple(night) == (0, "confirm_rounds is 0: the first rounds have the last word")


def test_a_confirmation_round_that_is_lost_is_missed(run_night: Night, database: Database) -> None:
    ran = run_night("lose:4", **BY_CHANCE, confirm_rounds=4)
    assert ran.tasks["remeasure"] == SUCCESS | FAILED
    assert (ran.tasks["telemetry_after"], ran.tasks["summarise"]) == (SUCCESS, SUCCESS)
    assert (ran.verdict["verdict"], ran.verdict["exit"]) == ("infrastructure_failure", 5)
    with database.reader.connect() as connection:
        night = connection.execute(text("SELECT rounds_valid, rounds_expected, reason_message FROM nightly")).one()
    assert tuple(night)[:2] == (6, 7) and "round-04" in night.reason_message


def test_a_mismatch_plans_nothing(run_night: Night, tmp_path: Path) -> None:
    """Nothing is measured, so that no look is missed; and the load at the end is not made either."""
    ran = run_night("fail:verify", **BY_CHANCE)
    later = ("measure", "confirm", "remeasure", "telemetry_after")
    assert [ran.tasks[name] for name in later] == [NOT_RUN] * 4
    assert (ran.tasks["summarise"], ran.tasks["load"], ran.tasks["report"]) == (SUCCESS, SUCCESS, SUCCESS)
    assert not list((tmp_path / "runs").rglob("confirmation.json"))
    (path,) = (tmp_path / "records").glob("*.json")
    assert json.loads(path.read_text())["confirmation"] is None
