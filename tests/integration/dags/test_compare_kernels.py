"""``compare_kernels`` from end to end: a candidate beside the pinned kernel, what is stored of it, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from gpu_tasks.candidates.bundle import write_bundle
from gpu_tasks.devices.manifest import COMMITTED, load_kernels, read_manifest
from tests.integration.dags.conftest import ROOT, Ran
from tests.integration.regression.databases import Database

SUCCESS, FAILED, NOT_RUN, SKIPPED = {"success"}, {"failed"}, {"upstream_failed"}, {"skipped"}
Compare = Callable[..., Ran]
SMALL: dict[str, Any] = {"draws": [0], "rounds": 1}


@pytest.fixture
def compare(run_night: Callable[..., Ran]) -> Compare:
    return partial(run_night, dag="compare_kernels")


def words(ran: Ran) -> dict[str, str]:
    """Verdict of each check."""
    return {name.removeprefix("compare_"): check["verdict"] for name, check in ran.verdict["checks"].items()}


def run_row(database: Database) -> Any:
    with database.reader.connect() as connection:
        return connection.execute(text("SELECT * FROM run WHERE trigger <> 'import'")).one()


def test_a_right_candidate_is_stored_as_one_and_is_no_night(
    compare: Compare, database: Database, tmp_path: Path
) -> None:
    ran = compare(candidate="record", device="emulated", note="{{ run_id }}", **SMALL)
    assert ran.state == "success", ran.log[-3000:]
    assert all(states == SUCCESS for states in ran.tasks.values()), ran.tasks
    assert (ran.verdict["verdict"], ran.verdict["exit"], ran.verdict["kernel"]["variant"]) == ("ok", 0, "record")
    assert words(ran) == {"predictions": "ok", "time": "unavailable", "energy": "unavailable"}
    assert "candidate: record, " in ran.log and "pinned:    class_blocks, " in ran.log
    row = run_row(database)
    assert (row.candidate, row.pinned_variant, row.note) == (True, "class_blocks", "{{ run_id }}")
    assert row.candidate_origin["origin"] == "variant"
    with database.reader.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM nightly")).scalar_one() == 0
        assert connection.execute(text("SELECT count(*) FROM alert")).scalar_one() == 0
        assert connection.execute(text("SELECT predictions_word FROM candidate_runs")).scalar_one() == "same"
    assert json.loads((tmp_path / "runs" / "locks" / "turn.json").read_text())["runs"] == []


def test_an_effect_of_the_candidate_shows_beside_the_same_kernel(compare: Compare, database: Database) -> None:
    shown = {"device": "simulated", "inject": "energy+10%", "seed": 1, "kernel_changed": False}
    ran = compare(candidate="class_blocks", **shown, **SMALL)
    assert (ran.tasks["compare"], ran.tasks["measure"], ran.tasks["comparison"]) == (SUCCESS, SUCCESS, FAILED)
    assert (ran.state, ran.verdict["exit"]) == ("failed", 1), ran.log[-3000:]
    assert (words(ran)["predictions"], words(ran)["energy"]) == ("ok", "regressed")
    assert run_row(database).candidate is True
    with database.reader.connect() as connection:
        blocks = connection.execute(text("SELECT count(*), count(candidate_mj) FROM comparison_block")).one()
    assert blocks[0] == blocks[1] > 0


def test_the_pinned_kernel_itself_is_refused_before_anything_runs(compare: Compare, database: Database) -> None:
    ran = compare(candidate="class_blocks", device="emulated", **SMALL)
    assert (ran.tasks["candidate"], ran.tasks["provision"], ran.tasks["compare"]) == (FAILED, NOT_RUN, NOT_RUN)
    assert (ran.tasks["release"], ran.tasks["load"], ran.tasks["report"]) == (SUCCESS, SUCCESS, SUCCESS)
    assert (ran.verdict["verdict"], ran.verdict["exit"]) == ("bad_input", 2)
    row = run_row(database)
    assert (row.reason_code, row.candidate) == ("candidate_is_pinned", True)
    assert "kernel_changed=false" in row.reason_message


def without_a_barrier(candidates: Path, folder: Path) -> str:
    """A bundle of the default kernels in which threads read what others may not have written yet."""
    lines = (ROOT / "kernels" / "ptx" / "class_blocks_train.ptx").read_text().splitlines(keepends=True)
    barriers = [number for number, line in enumerate(lines) if "bar.sync" in line]
    del lines[barriers[1]]
    changed = folder / "train.ptx"
    changed.write_text("".join(lines))
    return write_bundle(candidates, read_manifest(COMMITTED), load_kernels(COMMITTED, "class_blocks", (changed,)))


def test_a_race_is_a_regression_and_nothing_is_measured(compare: Compare, database: Database, tmp_path: Path) -> None:
    bundle = without_a_barrier(tmp_path / "candidates", tmp_path)
    ran = compare(candidate=bundle, device="simulated", seed=1, **SMALL)
    assert ran.tasks["compare"] == SUCCESS, ran.log[-3000:]
    assert (ran.tasks["rounds"], ran.tasks["measure"], ran.tasks["telemetry_after"]) == (SKIPPED, SKIPPED, SKIPPED)
    assert (ran.state, ran.verdict["verdict"], ran.verdict["exit"]) == ("failed", "regression", 1)
    assert words(ran) == {"predictions": "regressed", "time": "inconclusive", "energy": "inconclusive"}
    reason = ran.verdict["checks"]["compare_predictions"]["reason"]
    assert "kernel train, PTX line 705" in reason and "with no barrier since a write at line 640" in reason
    with database.reader.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM nightly")).scalar_one() == 0


def test_params_that_nobody_knows_are_bad_input_of_a_candidate_and_no_night_either(
    compare: Compare, database: Database
) -> None:
    ran = compare(candidate="record", confirm_rounds=3, **SMALL)
    assert (ran.tasks["request"], ran.tasks["candidate"], ran.tasks["release"]) == (FAILED, NOT_RUN, SUCCESS)
    assert (ran.verdict["verdict"], ran.verdict["exit"]) == ("bad_input", 2)
    assert run_row(database).candidate is True


def test_a_comparison_that_dies_is_an_infrastructure_failure_and_frees_the_gpu(
    compare: Compare, database: Database, tmp_path: Path
) -> None:
    gone = {"dag_id": "nightly_qda", "dag_run_id": "deleted", "since": "2026-11-30T02:00:00Z"}
    queue = tmp_path / "runs" / "locks" / "turn.json"
    queue.parent.mkdir(parents=True)
    queue.write_text(json.dumps({"kind": "turn", "runs": [gone]}))
    ran = compare("fail:compare", candidate="record", device="emulated", **SMALL)
    assert "run deleted of nightly_qda is over and leaves the queue" in ran.log
    assert (ran.tasks["compare"], ran.tasks["rounds"], ran.tasks["measure"]) == (FAILED, NOT_RUN, NOT_RUN)
    assert (ran.tasks["release"], ran.tasks["load"]) == (SUCCESS, SUCCESS)
    assert (ran.verdict["verdict"], ran.verdict["exit"]) == ("infrastructure_failure", 5)
    assert run_row(database).candidate is True
    assert json.loads(queue.read_text())["runs"] == []


def test_a_night_of_a_changed_kernel_is_none_and_wakes_nobody(
    run_night: Callable[..., Ran], database: Database
) -> None:
    ran = run_night("disagree:3", kernel_changed=True)
    assert (ran.verdict["verdict"], ran.verdict["exit"]) == ("regression", 1)
    assert run_row(database).candidate is True
    with database.reader.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM nightly")).scalar_one() == 0
        assert connection.execute(text("SELECT count(*) FROM alert")).scalar_one() == 0
