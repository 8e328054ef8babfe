"""Nights with energy: the simulated device from request to verdict, and what a disturbed measurement does to a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from gpu_tasks.records import read_record_bytes
from tests.integration.dags.conftest import BASELINES, Ran
from tests.integration.regression.databases import Database

Night = Callable[..., Ran]
SUCCESS, FAILED = {"success"}, {"failed"}
SHIPPED = json.loads(read_record_bytes(BASELINES / "qda-simulated-a100-healthy.json.gz"))
SIMULATED = {"device": "simulated", "rounds": 3, "draws": [0], "seed": 1}
"""With a seed: else it would be that of the run's name, and the noise another each time."""


def request_of(runs: Path, ran: Ran) -> dict[str, Any]:
    (path,) = (runs / "nightly_qda" / ran.dag_run_id).glob("request.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_a_simulated_night_stores_all_three_figures_and_more_energy_is_a_regression(
    run_night: Night, database: Database, tmp_path: Path
) -> None:
    base = run_night(**SIMULATED | {"seed": SHIPPED["request"]["seed"]})
    assert base.state == "success", base.log[-3000:]
    assert base.tasks.pop("remeasure") == {"skipped"}, "there is nothing to confirm"
    assert all(states == SUCCESS for states in base.tasks.values())
    assert (base.verdict["verdict"], base.verdict["checks"]["energy"]["verdict"]) == ("ok", "ok")
    with database.reader.connect() as connection:
        stored = connection.execute(
            text("SELECT figure, count(*), min(combined_mj) > 0, bool_and(low_mj < high_mj) FROM round_energy "
                 "WHERE run_id = :run_id AND subject = 'candidate' GROUP BY figure ORDER BY figure"),
            {"run_id": base.verdict["run_id"]},
        )  # fmt: skip
        assert [tuple(row) for row in stored] == [(name, 3, True, True) for name in ("aligned", "audited", "classic")]
        night = connection.execute(text("SELECT * FROM nightly")).one()
    assert (night.protocol, night.energy_trust, night.failed_gates, night.inject) == ("audited", "verified", [], None)
    assert night.aligned_mj_median == pytest.approx(night.adjusted_mj_median, rel=0.05)
    more = run_night(**SIMULATED, inject="energy+10%")
    assert (more.verdict["verdict"], more.verdict["exit"]) == ("regression", 1)
    assert (more.tasks["energy"], more.tasks["agreement"], more.tasks["verdict"]) == (FAILED, SUCCESS, FAILED)
    assert more.verdict["checks"]["energy"]["verdict"] == "regressed"
    assert "above the round spread" in more.verdict["checks"]["energy"]["reason"]
    assert more.tasks["remeasure"] == SUCCESS
    assert more.verdict["checks"]["energy"]["reason"].startswith(
        "first 3 rounds: above; with 3 confirmation rounds: above; adjusted energy"
    )
    with database.reader.connect() as connection:
        steps = connection.execute(
            text("SELECT step, verdict, value > baseline_high FROM check_result WHERE run_id = :run_id "
                 "AND check_name = 'energy' ORDER BY step"), {"run_id": more.verdict["run_id"]},
        )  # fmt: skip
        assert [tuple(row) for row in steps] == [(0, "regressed", True), (1, "regressed", True)]
        night = connection.execute(text("SELECT * FROM nightly WHERE verdict = 'regression'")).one()
    assert (night.confirmation_rounds, night.rounds_valid, night.rounds_expected) == (3, 6, 6)
    assert night.confirmation_reason.startswith("energy: adjusted energy")
    request = request_of(tmp_path / "runs", more)
    assert (request["inject"], request["protocol"], type(request["seed"])) == ("energy+10%", None, int)
    assert request["reference_bands"] == {}, "the shipped baseline alone teaches none"
    with database.reader.connect() as connection:
        told = connection.execute(text("SELECT inject FROM nightly WHERE verdict = 'regression'")).scalar_one()
        assert told == "energy+10%"


def test_a_sensor_that_lies_ends_in_exit_3_with_the_gate_although_every_round_agrees(run_night: Night) -> None:
    ran = run_night(**SIMULATED, inject="faulty_sensor")
    assert (ran.verdict["verdict"], ran.verdict["exit"]) == ("invalid_measurement", 3)
    assert (ran.tasks["telemetry_before"], ran.tasks["telemetry_after"]) == (FAILED, FAILED)
    assert (ran.tasks["measure"], ran.tasks["summarise"], ran.tasks["load"]) == (SUCCESS, SUCCESS, SUCCESS)
    check = ran.verdict["checks"]["energy"]
    assert check["verdict"] == "invalid"
    assert check["reason"].startswith("no usable energy, telemetry gate failed: reference_load (before): ")
    assert ran.verdict["energy"]["trust"] == "failed"


def test_rounds_that_are_all_throttled_are_red_and_so_is_the_run(run_night: Night, database: Database) -> None:
    ran = run_night(**SIMULATED, inject="throttle")
    assert (ran.tasks["measure"], ran.tasks["summarise"]) == (FAILED, SUCCESS)
    assert (ran.verdict["verdict"], ran.verdict["exit"]) == ("invalid_measurement", 3)
    assert ran.verdict["checks"]["energy"]["verdict"] == "invalid"
    with database.reader.connect() as connection:
        reasons = connection.execute(
            text("SELECT count(*), count(r.reason_code) FROM round r JOIN nightly USING (run_id) WHERE NOT r.valid")
        ).one()
    assert tuple(reasons) == (3, 3)


def test_one_disturbed_round_is_red_and_the_run_follows_its_record(
    run_night: Night, database: Database, tmp_path: Path
) -> None:
    ran = run_night("disturb:1", rounds=4)
    assert ran.tasks["measure"] == SUCCESS | FAILED
    (path,) = (tmp_path / "records").glob("*.json")
    assert json.loads(path.read_text())["outcome"] == "ok"
    assert (ran.state, ran.verdict["verdict"], ran.verdict["exit"]) == ("success", "ok", 0)
    with database.reader.connect() as connection:
        found = connection.execute(
            text(
                "SELECT n.rounds_valid, r.round, r.reason_code "
                "FROM round r JOIN nightly n USING (run_id) WHERE NOT r.valid"
            )
        )
        assert [tuple(row) for row in found] == [(3, 1, "throttled")]


def test_telemetry_that_ends_badly_keeps_no_round_and_no_summary_from_being_made(
    run_night: Night, database: Database
) -> None:
    ran = run_night("fail:telemetry")
    assert (ran.tasks["telemetry_before"], ran.tasks["telemetry_after"]) == (FAILED, FAILED)
    assert (ran.tasks["measure"], ran.tasks["summarise"], ran.tasks["report"]) == (SUCCESS, SUCCESS, SUCCESS)
    assert (ran.verdict["verdict"], ran.verdict["exit"]) == ("infrastructure_failure", 5)
    with database.reader.connect() as connection:
        night = connection.execute(text("SELECT rounds_valid, reason_code, reason_message FROM nightly")).one()
    assert tuple(night)[:2] == (1, "program_died") and "telemetry-before" in night.reason_message
