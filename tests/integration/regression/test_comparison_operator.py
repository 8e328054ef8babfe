"""The check of a candidate on stored runs: what it stores and returns, and the line of a red one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from airflow.sdk.exceptions import AirflowFailException
from sqlalchemy import text

from gpu_tasks.records import Reason
from regression.operators import ComparisonOperator, checks
from tests.integration.regression.databases import Database
from tests.integration.regression.example_comparisons import (
    DAG,
    blocks,
    candidate_run,
    comparison,
    wrong_run,
)
from tests.integration.regression.example_nights import store


@pytest.fixture(autouse=True)
def connection_of_the_test(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "results_engine", lambda conn_id: database.writer)


def run(name: str) -> dict[str, dict[str, str]]:
    task = ComparisonOperator(task_id="comparison", run_dag_id=DAG, run_dag_run_id=name)
    return task.execute({})  # type: ignore[typeddict-item]


def stored(database: Database) -> dict[str, tuple[str, str, float | None]]:
    query = "SELECT check_name, verdict, details->>'word', (details->>'effect_percent')::float8, step FROM check_result"
    with database.reader.connect() as connection:
        rows = list(connection.execute(text(query)))
    assert {row.step for row in rows} <= {0}
    return {row[0]: (row[1], row[2], row[3]) for row in rows}


def test_a_better_candidate_is_green_and_every_metric_is_stored(database: Database) -> None:
    store(database, candidate_run())
    found = run("tried__1")
    assert {check: told["reason_code"] for check, told in found.items()} == {
        "compare_predictions": "same_predictions",
        "compare_time": "within_margin",
        "compare_energy": "lower",
    }
    assert stored(database) == {
        "compare_predictions": ("ok", "same", None),
        "compare_time": ("ok", "same", pytest.approx(0, abs=1e-6)),
        "compare_energy": ("improved", "better", pytest.approx(-10)),
    }


def test_a_slower_candidate_is_red_and_says_by_how_much(database: Database) -> None:
    store(database, candidate_run(compared=comparison(blocks(ms=0.000328))))
    with pytest.raises(AirflowFailException) as raised:
        run("tried__1")
    told = str(raised.value)
    assert told.startswith(
        "compare_time regressed: CUDA time 0.016728 ms a replay, pinned 0.0164: +0.000328 ms (+2.00 %)"
    )
    assert "8 blocks" in told
    assert "compare_energy" not in told  # better, and no reason to be red
    assert stored(database)["compare_energy"][1] == "better"


def test_a_wrong_candidate_is_red_for_its_predictions_alone(database: Database) -> None:
    store(database, wrong_run())
    with pytest.raises(AirflowFailException) as raised:
        run("wrong__1")
    assert str(raised.value).startswith("compare_predictions regressed: on the emulator, draw 3: ")
    assert "scores 0.25 apart: not rounding" in str(raised.value)
    words = {check: row[1] for check, row in stored(database).items()}
    assert words == {"compare_predictions": "worse", "compare_time": "inconclusive", "compare_energy": "inconclusive"}


def test_energy_of_a_failed_gate_is_red_and_time_is_judged(database: Database) -> None:
    gate = Reason("gate_failed", "reference_load (before): 0.07 J")
    store(database, candidate_run(compared=comparison(energy_trust="failed", energy_trust_reason=gate)))
    with pytest.raises(AirflowFailException, match=r"compare_energy invalid: .*0\.07 J"):
        run("tried__1")
    assert stored(database)["compare_time"][1] == "same"


def test_a_run_that_compared_nothing_is_never_fine(database: Database) -> None:
    """Its own predictions are right, which says nothing of two kernels."""
    store(database, replace(candidate_run(), comparison=None))
    with pytest.raises(AirflowFailException, match="compare_predictions invalid: the two kernels were not compared"):
        run("tried__1")
    assert {row[0] for row in stored(database).values()} == {"invalid"}
