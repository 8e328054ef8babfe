"""The check of a candidate on stored runs: what it stores and returns, and the line of a red one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from airflow.sdk.exceptions import AirflowFailException
from sqlalchemy import text

from gpu_tasks.records import Outcome, PredictionMismatch, Reason
from regression.operators import ComparisonOperator, checks
from regression.results.outcome import run_verdict, settle_verdict
from tests.integration.regression.databases import Database
from tests.integration.regression.example_comparisons import (
    DAG,
    blocks,
    candidate_run,
    comparison,
    timed,
    wrong_run,
)
from tests.integration.regression.example_nights import store
from tests.integration.regression.example_records import validation

CHECKS = ("compare_predictions", "compare_time", "compare_energy")
MISMATCH = Reason("prediction_mismatch", "draw 0: 1 of 1000 predictions disagree")
WRONG = Reason("candidate_wrong", f"correctness comes before speed: {MISMATCH.message}")


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


@pytest.mark.parametrize(
    ("ms", "verdict", "word"),
    [(0.000328, "regressed", "worse"), (-0.000328, "improved", "better"), (0.0, "ok", "same")],
)
def test_a_board_without_a_counter_has_a_verdict_on_time(
    database: Database, ms: float, verdict: str, word: str
) -> None:
    store(database, candidate_run(compared=timed(ms)))
    with suppress(AirflowFailException):
        run("tried__1")
    found = stored(database)
    assert found["compare_time"] == (verdict, word, pytest.approx(100 * ms / 0.0164, abs=1e-6))
    assert found["compare_energy"] == ("unavailable", "unavailable", None)


def test_a_wrong_candidate_is_red_for_its_predictions_alone(database: Database) -> None:
    store(database, wrong_run())
    with pytest.raises(AirflowFailException) as raised:
        run("wrong__1")
    assert str(raised.value).startswith("compare_predictions regressed: on the emulator, draw 3: ")
    assert "scores 0.25 apart: not rounding" in str(raised.value)
    words = {check: row[1] for check, row in stored(database).items()}
    assert words == {"compare_predictions": "worse", "compare_time": "inconclusive", "compare_energy": "inconclusive"}


@pytest.mark.parametrize(
    ("own", "pinned", "word", "verdict"),
    [
        ([4], [4], "same", ("inconclusive", 0)),
        ([4], [4, 9], "better", ("inconclusive", 0)),
        ([4], [], "worse", ("regression", 1)),
        ([4, 9], [4], "worse", ("regression", 1)),
    ],
)
def test_a_run_ends_as_its_predictions_beside_the_pinned_kernel_are_and_not_as_beside_the_frozen(
    database: Database, own: list[int], pinned: list[int], word: str, verdict: tuple[str, int]
) -> None:
    """A candidate that is as wrong as the pinned kernel was called the same, and ended as a regression."""
    sides = [[validation(0, [PredictionMismatch(index, 2, 5) for index in wrong])] for wrong in (own, pinned)]
    compared = comparison(
        [],
        outcome=Outcome.REGRESSION,
        reason=MISMATCH,
        emulated=[],
        pinned_validations=sides[1],
        not_measured=WRONG,
    )
    failed = {"outcome": Outcome.REGRESSION, "reason": MISMATCH, "rounds": []}
    store(database, candidate_run(compared=compared, request={"draws": [0]}, validations=sides[0], **failed))
    with suppress(AirflowFailException):
        run("tried__1")
    assert stored(database)["compare_predictions"][1] == word
    with database.writer.begin() as connection:
        settled = settle_verdict(connection, DAG, "tried__1", CHECKS)
        assert run_verdict(connection, DAG, "tried__1") == settled
    assert (settled.verdict, settled.exit_code) == verdict


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
