"""Confirmation rounds in the database: which rounds they are, why they were made, and what two looks said."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from sqlalchemy import text

from gpu_tasks.records import BadInput, ConfirmationRecord, FirstLook, Outcome, Reason, RunRecord
from regression.detectors import CheckVerdict, Verdict
from regression.results.baselines import accept_baseline
from regression.results.checks import Finding, store_findings
from regression.results.energies import energy_findings
from regression.results.history import find_run
from regression.results.loading import load_run
from regression.results.outcome import settle_verdict
from regression.results.record_checks import check_run
from tests.integration.regression.databases import Database
from tests.integration.regression.example_records import NOW, measured, run_record, sha256_of

WHY = Reason("out_of_spread", "energy: above the spread")
LOOK = FirstLook("energy", "regressed", "energy_above_spread", "adjusted", "mJ", 0.66, 0.59, 0.61, None, True)


def plan(rounds: list[int]) -> ConfirmationRecord:
    return ConfirmationRecord("confirmation", NOW, Outcome.OK, WHY, "qda", rounds, [LOOK])


def confirmed(name: str = "manual__1", planned: tuple[int, ...] = (7, 8, 9), **changes: Any) -> RunRecord:
    """A run of seven rounds and the confirmation rounds that were planned."""
    record = run_record(name, rounds=[measured(number, 0.6 + number / 100) for number in range(7 + len(planned))])
    return dataclasses.replace(
        record,
        request=dataclasses.replace(record.request, confirm_rounds=3),
        summary=dataclasses.replace(record.summary, rounds_expected=7 + len(planned)),
        confirmation=plan(list(planned)),
        **changes,
    )


def rows(database: Database, statement: str) -> list[Any]:
    with database.reader.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def test_rounds_say_which_they_are_and_the_run_why(database: Database) -> None:
    load_run(database.writer, confirmed(), "0" * 64)
    assert rows(database, "SELECT round, step FROM round ORDER BY round") == [
        *((number, 0) for number in range(7)),
        *((number, 1) for number in range(7, 10)),
    ]
    assert rows(database, "SELECT round, step FROM round_trend WHERE step = 1 ORDER BY round") == [
        (7, 1), (8, 1), (9, 1)
    ]  # fmt: skip
    wanted = "rounds_valid, rounds_expected, confirmation_rounds, confirmation_reason"
    assert rows(database, f"SELECT {wanted} FROM nightly") == [(10, 10, 3, WHY.message)]
    looks = "confirmation_reason_code, confirmation_looks -> 0 ->> 'check', confirmation_looks -> 0 -> 'value'"
    assert rows(database, f"SELECT {looks} FROM run_detail") == [("out_of_spread", "energy", 0.66)]


@pytest.mark.parametrize(
    ("record", "expected"), [(confirmed(planned=()), (0, "out_of_spread", 1)), (run_record(), (None, None, None))]
)
def test_nothing_to_confirm_is_told_from_nobody_having_looked(
    database: Database, record: RunRecord, expected: tuple[Any, ...]
) -> None:
    load_run(database.writer, record, "0" * 64)
    looks = "confirmation_rounds, confirmation_reason_code, jsonb_array_length(confirmation_looks)"
    assert rows(database, f"SELECT {looks} FROM run") == [expected]
    assert rows(database, "SELECT DISTINCT step FROM round") == [(0,)]


def finding(verdict: Verdict, step: int) -> Finding:
    return Finding(CheckVerdict("energy", verdict, "adjusted", "mJ", "code", f"step {step}", 0.6), None, step)


def test_the_last_look_counts_and_the_first_one_stays(database: Database) -> None:
    record = confirmed()
    load_run(database.writer, record, "0" * 64)
    request = record.request
    with database.writer.begin() as connection:
        findings = [finding(Verdict.REGRESSED, 0), finding(Verdict.OK, 1)]
        store_findings(connection, request.run_id, findings)
        verdict = settle_verdict(connection, request.dag_id, request.dag_run_id, ["energy"])
    assert (verdict.verdict, verdict.exit_code, verdict.confirmation_rounds) == ("ok", 0, 3)
    line = verdict.checks["energy"]
    assert (line.verdict, line.first and line.first.verdict) == ("ok", "regressed")
    assert verdict.as_json()["checks"]["energy"] == {
        "verdict": "ok",
        "reason": "step 1",
        "first_look": {"verdict": "regressed", "reason": "step 0"},
    }
    told = "checks -> 'energy' ->> 'verdict', first_checks -> 'energy' ->> 'verdict'"
    assert rows(database, f"SELECT {told} FROM run_detail") == [("ok", "regressed")]


def test_a_check_without_a_second_look_has_no_first_one(database: Database) -> None:
    record = confirmed()
    load_run(database.writer, record, "0" * 64)
    request = record.request
    with database.writer.begin() as connection:
        store_findings(connection, request.run_id, [finding(Verdict.REGRESSED, 0)])
        verdict = settle_verdict(connection, request.dag_id, request.dag_run_id, ["energy"])
    assert (verdict.verdict, verdict.checks["energy"].first) == ("regression", None)
    assert rows(database, "SELECT first_checks FROM run_detail") == [(None,)]


def measured_energies(name: str, first: list[float], more: list[float]) -> RunRecord:
    """A run of seven first rounds, which were found out of the spread, and as many confirmation rounds as given."""
    record = run_record(name, rounds=[measured(number, mj) for number, mj in enumerate([*first, *more])])
    expected = 7 + len(more)
    return dataclasses.replace(
        record,
        request=dataclasses.replace(record.request, confirm_rounds=len(more)),
        summary=dataclasses.replace(record.summary, rounds_expected=expected),
        confirmation=plan(list(range(7, expected))),
    )


HIGH, USUAL = [0.63, 0.635, 0.64, 0.64, 0.641, 0.645, 0.65], [0.59, 0.595, 0.6, 0.6, 0.601, 0.605, 0.61]
WAY_UP = [x + 0.001 for x in HIGH]


@pytest.mark.parametrize(
    ("more", "verdicts", "begins"),
    [
        ([], ["regressed"], "adjusted energy 0.64 mJ a replay (median of 7 of 7 rounds) is above the"),
        (
            WAY_UP,
            ["regressed", "regressed"],
            "first 7 rounds: above; with 7 confirmation rounds: above; adjusted energy 0.641 mJ a replay (median of 14",
        ),
        (
            [0.5, 0.55, 0.6, 0.615, 0.62, 0.9, 1.0],
            ["regressed", "inconclusive"],
            "first 7 rounds: above; with 7 confirmation rounds: above, inconclusive; adjusted energy",
        ),
        (
            [*USUAL, *USUAL],
            ["regressed", "ok"],
            "first 7 rounds: above; with 14 confirmation rounds: within; adjusted energy 0.605 mJ",
        ),
    ],
)
def test_the_first_rounds_are_judged_alone_and_then_all_of_them(
    database: Database, more: list[float], verdicts: list[str], begins: str
) -> None:
    load_run(database.writer, run_record("base"), "1" * 64)
    accept_baseline(database.writer, run_record("base").request.run_id, accepted_by="test", reason="for the test")
    record = measured_energies("tonight", HIGH, more)
    load_run(database.writer, record, "2" * 64)
    with database.writer.begin() as connection:
        run = find_run(connection, "nightly_qda", "tonight")
        found = energy_findings(connection, run)
    assert [(finding.step, finding.verdict.verdict.value) for finding in found] == list(enumerate(verdicts))
    assert found[-1].verdict.reason.startswith(begins), found[-1].verdict.reason
    assert (found[0].verdict.value, found[0].verdict.details["rounds_expected"]) == (0.64, 7)
    assert found[0].verdict.details["rounds_used"] == list(range(7))
    assert found[-1].verdict.details["rounds_used"] == list(range(7 + len(more)))
    assert found[-1].verdict.details["rounds_expected"] == 7 + len(more)
    assert {finding.baseline_id for finding in found} == {1}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"confirmation": plan([7, 8])}, "$.confirmation.rounds"),
        ({"confirmation": plan([6, 7, 8])}, "$.confirmation.rounds"),
        ({"confirmation": plan([])}, "$.rounds[7].round"),
        ({"confirmation": dataclasses.replace(plan([7, 8, 9]), reason=None)}, "$.confirmation.reason"),
        ({"confirmation": dataclasses.replace(plan([7, 8, 9]), workload="learner")}, "$.confirmation.workload"),
        ({"confirmation": dataclasses.replace(plan([7, 8, 9]), created_at="today")}, "$.confirmation.created_at"),
        ({"confirmation": None}, "$.summary.rounds_expected"),
    ],
)
def test_a_record_that_contradicts_its_plan_is_refused(changes: dict[str, Any], field: str) -> None:
    check_run(confirmed(), "run.json")
    with pytest.raises(BadInput) as caught:
        check_run(dataclasses.replace(confirmed(), **changes), "run.json")
    assert caught.value.message.startswith(f"run.json: {field}: ")


def test_the_same_record_again_changes_nothing(database: Database) -> None:
    record = confirmed()
    for _ in range(2):
        load_run(database.writer, record, sha256_of(record))
    assert rows(database, "SELECT count(*), sum(step) FROM round") == [(10, 3)]
