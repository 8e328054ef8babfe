"""Nights of ``nightly_qda`` from end to end: which tasks run, what is stored, and how the run ends."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlalchemy import text

from tests.integration.dags.conftest import ROOT, Ran
from tests.integration.regression.databases import Database

Night = Callable[..., Ran]
SUCCESS, FAILED, NOT_RUN, SKIPPED = {"success"}, {"failed"}, {"upstream_failed"}, {"skipped"}


def test_a_good_night_is_green_and_stored(run_night: Night, database: Database, tmp_path: Path) -> None:
    ran = run_night(label="first")
    assert ran.state == "success", ran.log[-3000:]
    assert ran.tasks.pop("remeasure") == SKIPPED, "there is nothing to confirm"
    assert all(states == SUCCESS for states in ran.tasks.values())
    assert (ran.verdict["verdict"], ran.verdict["exit"]) == ("ok", 0)
    assert ran.verdict["agreement"] == {"agreed": 2000, "total": 2000}
    told = {name: check["verdict"] for name, check in ran.verdict["checks"].items()}
    assert (told.pop("agreement"), told.pop("energy"), told.pop("time")) == ("ok", "unavailable", "unavailable")
    assert told.keys() >= {"energy_history", "time_history", "environment"}
    assert set(told.values()) == {"unavailable", "inconclusive"}, "nothing to look back on"
    assert ran.verdict["confirmation"]["rounds"] == 0
    with database.reader.connect() as connection:
        night = connection.execute(text("SELECT * FROM nightly")).one()
    assert (night.verdict, night.agreed, night.total, night.rounds_valid, night.label) == ("ok", 2000, 2000, 1, "first")
    assert [path.name for path in (tmp_path / "records").glob("*.json")] == [f"{ran.verdict['run_id']}.json"]
    assert list((tmp_path / "records" / "pending").glob("*")) == []
    assert "AIRFLOW_CONN" not in ran.log


def test_a_finished_night_that_is_run_again_keeps_the_one_result_it_has(
    run_night: Night, database: Database, tmp_path: Path
) -> None:
    same_run = {"NIGHTLY_TEST_LOGICAL_DATE": "2026-11-30T02:00:00+00:00"}
    records = tmp_path / "records"
    first = run_night(environment=same_run)
    assert first.state == "success", first.log[-3000:]
    stored = _stored(database)
    again = run_night("fail:provision", environment=same_run)
    assert again.dag_run_id == first.dag_run_id
    assert (again.tasks["load"], again.state) == (FAILED, "failed"), "a result that was thrown away must not look green"
    assert "bad_input (exit 2): run_already_judged" in again.log
    assert (_stored(database), again.verdict) == (stored, first.verdict)
    run_id = first.verdict["run_id"]
    (kept,) = records.glob("*.json")
    assert (kept.name, sha256(kept.read_bytes()).hexdigest()) == (f"{run_id}.json", stored[0].record_sha256)
    (refused,) = (records / "refused").iterdir()
    record = json.loads(refused.read_text())
    assert (record["outcome"], record["validations"]) == ("infrastructure_failure", []), "took parts of the earlier try"
    assert len(list((tmp_path / "runs").rglob("earlier-1/validation-*.json"))) == 2
    assert refused.name == f"{run_id}-{sha256(refused.read_bytes()).hexdigest()[:12]}.json"
    assert list((records / "pending").glob("*")) == []


def _stored(database: Database) -> list[Any]:
    with database.reader.connect() as connection:
        runs = list(connection.execute(text("SELECT * FROM run WHERE trigger <> 'import'")))
    assert len(runs) == 1
    return runs


def test_a_disagreement_is_a_regression_that_names_draw_and_index(run_night: Night) -> None:
    ran = run_night("disagree:3")
    assert ran.state == "failed"
    assert (ran.tasks["validate"], ran.tasks["measure"]) == (SUCCESS, SUCCESS)
    assert (ran.tasks["agreement"], ran.tasks["energy"], ran.tasks["verdict"]) == (FAILED, SUCCESS, FAILED)
    assert (ran.verdict["verdict"], ran.verdict["exit"]) == ("regression", 1)
    reason = ran.verdict["checks"]["agreement"]["reason"]
    assert reason == "draw 3: 999 of 1000 agree, baseline 1000; index 17: expected 4, found 9"
    assert f"agreement regressed: {reason}" in ran.log


def test_a_flipped_byte_stops_the_night_before_anything_runs(
    run_night: Night, database: Database, tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "gpu_tasks" / "payload" / "original", tmp_path / "payloads" / "broken")
    draw = tmp_path / "payloads" / "broken" / "draw-03.npz"
    content = bytearray(draw.read_bytes())
    content[1000] ^= 1
    draw.write_bytes(content)
    ran = run_night(environment={"NIGHTLY_PAYLOADS": str(tmp_path / "payloads")}, payload="broken")
    assert ran.state == "failed"
    assert (ran.tasks["verify_payload"], ran.tasks["validate"], ran.tasks["measure"]) == (FAILED, NOT_RUN, NOT_RUN)
    assert (ran.tasks["summarise"], ran.tasks["load"], ran.tasks["report"]) == (SUCCESS, SUCCESS, SUCCESS)
    assert (ran.verdict["verdict"], ran.verdict["exit"]) == ("verification_mismatch", 4)
    assert ran.verdict["agreement"] == {"agreed": None, "total": None}
    assert ran.verdict["checks"]["agreement"]["verdict"] == "invalid"
    with database.reader.connect() as connection:
        assert "draw-03.npz" in connection.execute(text("SELECT reason_message FROM nightly")).scalar_one()


def test_a_killed_program_is_an_infrastructure_failure_and_the_rest_is_stored(
    run_night: Night, database: Database
) -> None:
    """airflow 60858: a task whose program was killed is no success."""
    ran = run_night("die:3")
    assert ran.state == "failed"
    assert (ran.tasks["validate"], ran.tasks["measure"]) == ({"success", "failed"}, SUCCESS)
    assert (ran.verdict["verdict"], ran.verdict["exit"]) == ("infrastructure_failure", 5)
    check = ran.verdict["checks"]["agreement"]
    assert check["verdict"] == "invalid"
    assert check["reason"] == "draw 3 could not be run: validate ended with signal 9: no record"
    with database.reader.connect() as connection:
        stored = connection.execute(
            text("SELECT draw, agreed, reason_code FROM validation WHERE run_id IN (SELECT run_id FROM nightly)")
        )
        assert sorted(stored) == [(0, 1000, None), (3, None, "program_died")]


def test_a_device_that_cannot_be_provisioned_is_stored_as_such(run_night: Night) -> None:
    ran = run_night("fail:provision")
    assert ran.state == "failed"
    assert (ran.tasks["provision"], ran.tasks["validate"], ran.tasks["measure"]) == (FAILED, NOT_RUN, NOT_RUN)
    assert (ran.tasks["load"], ran.tasks["report"], ran.tasks["verdict"]) == (SUCCESS, SUCCESS, FAILED)
    assert (ran.verdict["verdict"], ran.verdict["exit"]) == ("infrastructure_failure", 5)
    assert {ran.verdict["checks"][name]["verdict"] for name in ("agreement", "energy", "time")} == {"invalid"}


def test_an_unknown_parameter_is_refused_and_the_run_stored_as_bad_input(run_night: Night, database: Database) -> None:
    ran = run_night(round=2)
    assert ran.state == "failed"
    assert (ran.tasks["request"], ran.tasks["provision"], ran.tasks["summarise"]) == (FAILED, NOT_RUN, NOT_RUN)
    assert (ran.tasks["load"], ran.tasks["report"]) == (SUCCESS, SUCCESS)
    assert (ran.verdict["verdict"], ran.verdict["exit"]) == ("bad_input", 2)
    with database.reader.connect() as connection:
        stored = connection.execute(text("SELECT reason_code, reason_message FROM nightly")).one()
    assert stored.reason_code == "unknown_param"
    assert stored.reason_message.startswith("round: expected one of device, variant, payload, draws")


def test_a_lost_database_keeps_the_record_for_later(run_night: Night, database: Database, tmp_path: Path) -> None:
    nowhere = '{"conn_type": "postgres", "host": "127.0.0.1", "port": 1, "schema": "x", "login": "x", "password": "x"}'
    ran = run_night(environment={"AIRFLOW_CONN_KERNEL_NIGHTLY_RESULTS": nowhere})
    assert ran.state == "failed"
    assert (ran.verdict["verdict"], ran.verdict["exit"]) == ("infrastructure_failure", 5)
    waiting = [path.name for path in (tmp_path / "records" / "pending").iterdir() if path.suffix == ".json"]
    assert waiting == [f"{ran.verdict['run_id']}.json"]
    assert list((tmp_path / "records").glob("*.json")) == []
