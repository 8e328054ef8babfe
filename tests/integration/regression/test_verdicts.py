"""Baselines, checks on stored runs, and the verdict of a run, on a real PostgreSQL."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from gpu_tasks.records import (
    BadInput,
    InfrastructureFailure,
    Outcome,
    PredictionMismatch,
    RunRecord,
    run_id_for,
    write_record,
)
from regression.detectors import CheckVerdict, Verdict, judge_agreement
from regression.nights.folder import Night
from regression.nights.tasks import run_record_of
from regression.results import history
from regression.results.baselines import accept_baseline, ensure_first_baseline
from regression.results.checks import Finding, last_findings, store_check, store_findings
from regression.results.energies import energy_findings
from regression.results.loading import load_run
from regression.results.outcome import run_outcome, run_verdict, settle_verdict
from tests.integration.regression.databases import Database
from tests.integration.regression.example_records import (
    CPU,
    GPU,
    OTHER_GPU,
    digest,
    lost_validation,
    payload,
    run_record,
    sha256_of,
    validation,
)

FIRST = Path(__file__).resolve().parents[3] / "gpu_tasks" / "baselines" / "qda-original-a100.json"
WRONG = (PredictionMismatch(17, 4, 9),)
ONE_WRONG = [validation(draw, WRONG if draw == 3 else ()) for draw in range(11)]
ONE_LOST = [*(validation(draw) for draw in range(10)), lost_validation(10)]


def store(database: Database, record: RunRecord) -> str:
    return load_run(database.writer, record, sha256_of(record)).run_id


def accept(database: Database, record: RunRecord) -> int:
    return accept_baseline(database.writer, store(database, record), accepted_by="test", reason="for the test")


def judge(database: Database, record: RunRecord) -> dict[str, CheckVerdict]:
    """Store a run and its checks as the operators do."""
    store(database, record)
    with database.writer.begin() as connection:
        run = history.find_run(connection, "nightly_qda", record.request.dag_run_id)
        agreement, agreement_of = history.agreement_baseline(connection, run)
        verdict = judge_agreement(history.agreement_run(connection, run), agreement)
        found = [
            Finding(verdict, agreement_of.baseline_id if agreement_of else None),
            *energy_findings(connection, run),
        ]
        store_findings(connection, run.run_id, found)
        return {finding.verdict.check: finding.verdict for finding in last_findings(found)}


def settle(database: Database, name: str, expected: tuple[str, ...] = ("agreement", "energy")) -> dict[str, object]:
    with database.writer.begin() as connection:
        settled = settle_verdict(connection, "nightly_qda", name, expected).as_json()
    with database.reader.connect() as connection:
        assert run_verdict(connection, "nightly_qda", name).as_json() == settled
    return settled


def test_a_run_like_its_baseline_is_ok_and_the_json_is_the_contract(database: Database) -> None:
    accept(database, run_record("base"))
    judge(database, run_record("tonight"))
    assert settle(database, "tonight") == {
        "run_id": run_id_for("nightly_qda", "tonight"),
        "dag_run_id": "tonight",
        "workload": "qda",
        "device": "Test GPU",
        "verdict": "ok",
        "checks": {
            "agreement": {
                "verdict": "ok",
                "reason": "11000 of 11000 agree on 11 draws, as in baseline Test GPU base",
            },
            "energy": {
                "verdict": "ok",
                "reason": "adjusted energy 0.6 mJ a replay (median of 7 of 7 rounds) is within the round spread "
                "0.59 to 0.61 mJ of baseline Test GPU base; a change of 0.0105 mJ (1.8 %) would have been found about "
                "every second time",
            },
        },
        "agreement": {"agreed": 11000, "total": 11000},
        "kernel": {"variant": "original", "ptx_sha256": digest("ptx")},
        "energy": {"trust": "verified", "figures": [], "gates_not_passed": []},
        "confirmation": {"rounds": None, "reason": None},
        "exit": 0,
    }


@pytest.mark.parametrize(
    ("changes", "checks", "verdict", "code"),
    [
        ({"validations": ONE_WRONG}, "regressed ok", "regression", 1),
        ({"energies": [0.7] * 7}, "ok regressed", "regression", 1),
        ({"energies": [0.5] * 7}, "ok regressed", "regression", 1),
        ({"validations": ONE_LOST}, "invalid ok", "infrastructure_failure", 5),
        ({"device": OTHER_GPU}, "ok inconclusive", "inconclusive", 0),
        ({"energies": [0.609] * 7}, "ok inconclusive", "inconclusive", 0),
        ({"device": CPU, "energies": [None] * 7}, "ok unavailable", "ok", 0),
        ({"payload": payload("fresh")}, "inconclusive inconclusive", "inconclusive", 0),
        ({"rounds": []}, "ok invalid", "invalid_measurement", 3),
    ],
)
def test_verdicts_of_stored_runs(
    database: Database, changes: dict[str, object], checks: str, verdict: str, code: int
) -> None:
    accept(database, run_record("base"))
    found = judge(database, run_record("tonight", **changes))
    assert f"{found['agreement'].verdict.value} {found['energy'].verdict.value}" == checks
    settled = settle(database, "tonight")
    assert (settled["verdict"], settled["exit"]) == (verdict, code)


def test_a_disagreement_that_the_accepted_baseline_shares_is_not_a_regression(database: Database) -> None:
    accept(database, run_record("base", validations=ONE_WRONG))
    judge(database, run_record("tonight", validations=ONE_WRONG))
    assert settle(database, "tonight")["verdict"] == "ok"


def test_a_check_that_left_nothing_is_an_infrastructure_failure(database: Database) -> None:
    store(database, run_record("tonight"))
    assert settle(database, "tonight")["exit"] == 5


def test_runs_that_are_missing_or_were_never_judged_are_infrastructure_failures(database: Database) -> None:
    store(database, run_record("stored"))
    with database.reader.connect() as connection:
        for name in ("stored", "missing"):
            verdict = run_verdict(connection, "nightly_qda", name)
            assert (verdict.verdict, verdict.exit_code) == ("infrastructure_failure", 5)
            assert verdict.run_id == run_id_for("nightly_qda", name)


def test_a_repeated_check_replaces_its_step_and_later_steps_decide(database: Database) -> None:
    run_id = store(database, run_record("tonight"))
    with database.writer.begin() as connection:
        for step, verdict in ((0, Verdict.OK), (0, Verdict.REGRESSED), (1, Verdict.OK)):
            store_check(connection, run_id, CheckVerdict("energy", verdict, "m", "mJ", "c", "r"), None, step)
        stored = connection.execute(text("SELECT step, verdict FROM check_result ORDER BY step")).all()
    assert stored == [(0, "regressed"), (1, "ok")]
    told = {"verdict": "ok", "reason": "r", "first_look": {"verdict": "regressed", "reason": "r"}}
    assert settle(database, "tonight", ())["checks"] == {"energy": told}


def test_worst_of_outcome_and_checks() -> None:
    both = ("agreement", "energy")
    assert run_outcome(Outcome.VERIFICATION_MISMATCH, dict.fromkeys(both, "invalid"), both)[1].exit_code == 4
    for word in ("ok", "improved", "unavailable"):
        for checks in ({"agreement": "inconclusive", "energy": word}, {"agreement": word, "energy": "inconclusive"}):
            assert run_outcome(Outcome.OK, checks, both) == ("inconclusive", Outcome.OK)
    assert run_outcome(Outcome.OK, {"agreement": "ok", "energy": "unavailable"}, both) == ("ok", Outcome.OK)
    assert run_outcome(Outcome.OK, {"agreement": "improved", "energy": "ok"}, both) == ("ok", Outcome.OK)
    assert run_outcome(Outcome.OK, dict.fromkeys(both, "unavailable"), both) == ("inconclusive", Outcome.OK)
    assert run_outcome(Outcome.OK, {"agreement": "inconclusive", "energy": "regressed"}, both)[1].exit_code == 1
    assert run_outcome(Outcome.REGRESSION, {"agreement": "inconclusive", "energy": "ok"}, both)[1].exit_code == 1


def test_the_first_baseline_is_imported_once_for_predictions_and_time_but_not_energy(database: Database) -> None:
    run_id = ensure_first_baseline(database.writer, FIRST)
    assert ensure_first_baseline(database.writer, FIRST) == run_id
    with database.reader.connect() as connection:
        current = connection.execute(text("SELECT * FROM baseline_current")).one()
        assert connection.execute(text("SELECT count(*) FROM nightly")).scalar_one() == 0
    assert (current.for_agreement, current.for_time, current.for_energy) == (True, True, False)
    assert (current.agreed, current.total, current.energy_trust) == (11000, 11000, "unverified")
    with database.writer.begin() as connection:
        connection.execute(text("UPDATE baseline SET retired_at = now()"))
    ensure_first_baseline(database.writer, FIRST)
    with database.reader.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM baseline_current")).scalar_one() == 0


def test_first_baselines_at_once_make_one(database: Database) -> None:
    threads = [threading.Thread(target=ensure_first_baseline, args=(database.writer, FIRST)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    with database.reader.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM baseline")).scalar_one() == 1


def test_accepting_another_run_retires_the_one_before_and_keeps_it(database: Database) -> None:
    first, second = accept(database, run_record("a")), accept(database, run_record("b"))
    with database.reader.connect() as connection:
        assert connection.execute(text("SELECT baseline_id FROM baseline_current")).scalars().all() == [second]
        retired = connection.execute(text("SELECT baseline_id FROM baseline WHERE retired_at IS NOT NULL"))
        assert retired.scalars().all() == [first]
    with pytest.raises(IntegrityError), database.admin.begin() as connection:
        connection.execute(text("UPDATE baseline SET retired_at = NULL"))


def test_what_cannot_be_a_baseline_is_refused(database: Database) -> None:
    with pytest.raises(BadInput, match="no such run"):
        accept_baseline(database.writer, run_id_for("x", "y"), accepted_by="t", reason="r")
    lost = run_record("lost", validations=[lost_validation(0)])
    with pytest.raises(BadInput, match="outcome infrastructure_failure"):
        accept(database, lost)
    with pytest.raises(BadInput, match="device_id"):
        accept(database, replace(run_record("bare"), provision=None))


def test_a_simulated_device_is_never_the_baseline_of_a_real_one(database: Database) -> None:
    simulated = replace(GPU, kind="simulated")
    accept(database, run_record("base", device=simulated))
    assert judge(database, run_record("real"))["agreement"].reason_code == "no_baseline"
    assert judge(database, run_record("again", device=simulated))["agreement"].verdict is Verdict.OK


def test_energy_that_was_not_verified_is_no_baseline_unless_accepted_by_name(database: Database) -> None:
    run_id = store(database, run_record("base", energy_trust="unverified"))
    accept_baseline(database.writer, run_id, accepted_by="test", reason="first")
    assert judge(database, run_record("a"))["energy"].reason_code == "baseline_energy_unverified"
    accept_baseline(database.writer, run_id, accepted_by="test", reason="sensor checked by hand", for_energy=True)
    assert judge(database, run_record("b"))["energy"].verdict is Verdict.OK


def test_a_run_of_which_only_the_request_is_left_is_stored_and_red(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTLY_RUNS", str(tmp_path))
    night = Night("nightly_qda", "bare")
    with pytest.raises(InfrastructureFailure, match="expected a request, found nothing"):
        run_record_of(night)
    write_record(run_record("bare").request, night.request_file)
    found = judge(database, run_record_of(night))
    assert [(check.verdict.value, check.reason_code) for check in found.values()] == [("invalid", "no_run_record")] * 2
    settled = settle(database, "bare")
    assert (settled["verdict"], settled["exit"]) == ("infrastructure_failure", 5)
