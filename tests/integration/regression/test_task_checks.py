"""Qualification, memory and repeatability of stored runs: what each is held against, and what counts as alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from sqlalchemy import text

from gpu_tasks.records import Outcome, Reason, ReferenceState, RunRecord
from regression.detectors import CheckVerdict, Verdict
from regression.operators import MemoryDriftOperator, QualificationOperator, RepeatabilityOperator, checks
from regression.operators.checks import CheckOperator
from regression.results.accounts import memory_findings
from regression.results.outcome import run_outcome
from regression.results.qualifications import qualification_findings
from regression.results.states import repeatability_findings
from regression.results.withdrawals import withdraw_run
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import SIMULATED_GPU
from tests.integration.regression.example_learner import (
    DAG,
    PEAK,
    WORKSPACE,
    allocator,
    cpu_memory,
    inventory,
    memory,
    not_asked,
    qualification,
    state_validation,
    states,
)
from tests.integration.regression.example_records import CPU, OTHER_GPU, digest
from tests.integration.regression.learner_nights import SOURCES, Findings, judged, learner_night
from tests.integration.regression.many_nights import accept, store

BIAS = "final_parameter_sha256.head.bias"
OTHER_WORKSPACE = (replace(WORKSPACE, value=":4096:8", origin="environment"),)
OF_LEARNER, OF_FRAME = SOURCES


def verdict(database: Database, record: RunRecord, findings: Findings) -> CheckVerdict:
    (found,) = judged(database, record, findings).values()
    return found.verdict


def code(database: Database, record: RunRecord, findings: Findings) -> tuple[Verdict, str]:
    found = verdict(database, record, findings)
    return found.verdict, found.reason_code


def base(database: Database, record: RunRecord | None = None) -> int:
    record = record or learner_night(0, "base")
    store(database, record)
    return accept(database, record)


def changed(day: int, *names: str, **changes: Any) -> RunRecord:
    """A night whose second draw, and whose second process, left other bytes under ``names``."""
    validations = [state_validation(0), state_validation(1, names or (BIAS,))]
    return learner_night(day, **{"validations": validations, **changes})


# Qualification


def test_a_run_is_qualified_as_its_baseline_was(database: Database) -> None:
    baseline_id = base(database)
    (found,) = judged(database, learner_night(1), qualification_findings).values()
    assert (found.verdict.reason_code, found.verdict.value, found.baseline_id) == ("qualified", 212, baseline_id)
    assert found.verdict.reason == "212 of 212 checks hold on cuda:0, as many as in baseline Test GPU base"


def test_a_failed_check_is_named_with_what_else_changed(database: Database) -> None:
    base(database)
    failed = learner_night(1, qualification=qualification("velocity weights.1"), environment={"platform": "Linux 7"})
    found = verdict(database, failed, qualification_findings)
    assert (found.verdict, found.reason_code, found.value) == (Verdict.REGRESSED, "not_qualified", 211)
    assert found.reason == (
        "1 of 212 checks do not hold: training depth 2: velocity weights.1; "
        "also changed: environment platform Linux x86_64 -> Linux 7"
    )


@pytest.mark.parametrize(
    ("record", "expected"),
    [(None, "no_qualification_record"), (not_asked(), "device_lost")],
)
def test_a_qualification_that_was_not_made_is_invalid(database: Database, record: Any, expected: str) -> None:
    assert code(database, learner_night(0, qualification=record), qualification_findings) == (Verdict.INVALID, expected)


def test_a_case_that_is_gone_is_missed(database: Database) -> None:
    base(database)
    one = replace(qualification(), checks=106, cases=qualification().cases[:1])
    found = verdict(database, learner_night(1, qualification=one), qualification_findings)
    assert (found.verdict, found.reason_code) == (Verdict.INVALID, "checks_missing")


def test_an_imported_record_counts_in_its_own_way(database: Database) -> None:
    base(database, learner_night(0, "imported", trigger="import"))
    other = replace(qualification(), checks=106, cases=[replace(qualification().cases[0], name="other")])
    found = verdict(database, learner_night(1, qualification=other), qualification_findings)
    assert (found.verdict, found.details["baseline"]) == (Verdict.OK, None)


# Memory


def test_memory_is_held_against_the_baseline_and_the_run_before(database: Database) -> None:
    baseline_id = base(database)
    store(database, learner_night(1))
    (found,) = judged(database, learner_night(2), memory_findings).values()
    assert (found.verdict.verdict, found.verdict.reason_code) == (Verdict.OK, "same_memory")
    assert found.baseline_id == baseline_id
    assert (found.verdict.details["baseline"], found.verdict.details["run_before"]) == (
        "Test GPU base",
        "Test GPU scheduled__001",
    )


def test_more_memory_is_red_until_it_is_accepted(database: Database) -> None:
    base(database)
    more = memory(PEAK + 8192)
    for day in (1, 2):
        found = verdict(database, learner_night(day, memory=more), memory_findings)
        assert (found.verdict, found.metric, found.value) == (Verdict.REGRESSED, "peak_allocated_memory", PEAK + 8192)
    base(database, learner_night(3, memory=more))
    assert code(database, learner_night(4, memory=more), memory_findings) == (Verdict.OK, "same_memory")


def test_named_storage_says_which_tensors(database: Database) -> None:
    base(database)
    tensors = inventory(extra=64)
    grown = replace(
        tensors, named_tensors=[replace(tensors.named_tensors[0], logical_bytes=324_064), *tensors.named_tensors[1:]]
    )
    found = verdict(database, learner_night(1, memory=memory(inventory=grown)), memory_findings)
    assert (found.verdict, found.metric) == (Verdict.REGRESSED, "named_storage")
    assert "named storage 332,064 bytes, +64 bytes against baseline Test GPU base" in found.reason
    assert "tensors: raw +64" in found.reason


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"device": OTHER_GPU}, "baseline_other_device"),
        ({"environment": {"driver": "580.1"}}, "baseline_other_environment"),
        ({"settings": OTHER_WORKSPACE}, "baseline_other_settings"),
    ],
)
def test_an_allocator_is_compared_with_what_was_made_alike(
    database: Database, change: dict[str, Any], expected: str
) -> None:
    base(database)
    record = learner_night(1, memory=memory(2 * PEAK, memory=allocator(2 * PEAK, 4 * PEAK)), **change)
    assert code(database, record, memory_findings) == (Verdict.INCONCLUSIVE, expected)
    found = verdict(database, replace_name(record, 2), memory_findings)
    assert found.verdict is Verdict.OK, found.reason  # as the run before, which was made alike


def replace_name(record: RunRecord, day: int) -> RunRecord:
    """The same night again, on another day."""
    again = learner_night(day)
    request = replace(record.request, dag_run_id=again.request.dag_run_id, run_id=again.request.run_id)
    times = {name: getattr(again, name) for name in ("started_at", "completed_at", "created_at")}
    return replace(record, request=request, **times)


def test_a_cpu_compares_its_tensors_with_those_of_any_device(database: Database) -> None:
    base(database)
    found = verdict(database, learner_night(1, device=CPU, memory=cpu_memory()), memory_findings)
    assert (found.verdict, found.metric, found.details["unavailable"]) == (Verdict.OK, "named_storage", "no_allocator")
    more = cpu_memory(inventory=inventory(None, extra=8))
    assert code(database, learner_night(2, device=CPU, memory=more), memory_findings)[0] is Verdict.REGRESSED


def test_a_board_whose_allocator_counts_no_more_is_invalid(database: Database) -> None:
    base(database)
    assert code(database, learner_night(1, memory=cpu_memory()), memory_findings) == (
        Verdict.INVALID,
        "memory_vanished",
    )


def test_memory_that_nobody_looked_at_is_invalid(database: Database) -> None:
    base(database)
    found = verdict(database, learner_night(1, memory=None), memory_findings)
    assert (found.verdict, found.reason_code) == (Verdict.INVALID, "no_memory_record")
    lost = {"outcome": Outcome.INFRASTRUCTURE_FAILURE, "reason": Reason("device_lost", "gone")}
    assert code(database, learner_night(2, memory=memory(**lost)), memory_findings) == (Verdict.INVALID, "device_lost")


def test_withdrawn_and_injected_runs_are_not_the_run_before(database: Database) -> None:
    more = {"memory": memory(PEAK + 8192), "device": SIMULATED_GPU}
    withdrawn = learner_night(1, **more)
    store(database, learner_night(0, "injected", inject="energy+10%", seed=7, **more), withdrawn)
    assert code(database, learner_night(2, device=SIMULATED_GPU), memory_findings)[0] is Verdict.IMPROVED
    run_id, why = withdrawn.request.run_id, "for the test"
    withdraw_run(database.writer, run_id, scope="all", withdrawn_by="test", reason=why)
    withdraw_run(database.writer, learner_night(2).request.run_id, scope="all", withdrawn_by="test", reason=why)
    assert code(database, learner_night(3, **more), memory_findings) == (Verdict.INCONCLUSIVE, "no_baseline")
    again = learner_night(4, inject="energy+10%", seed=8, **more)
    withdraw_run(database.writer, learner_night(3).request.run_id, scope="all", withdrawn_by="test", reason=why)
    assert code(database, again, memory_findings) == (Verdict.OK, "same_memory")  # as the injected one


# Repeatability


def test_the_first_night_is_told_as_such_and_the_second_compared(database: Database) -> None:
    assert code(database, learner_night(0), repeatability_findings) == (Verdict.INCONCLUSIVE, "no_earlier_run")
    found = verdict(database, learner_night(1), repeatability_findings)
    assert (found.verdict, found.reason) == (
        Verdict.OK,
        "the same 6 hashes on 2 draws as in run Test GPU scheduled__000",
    )


def test_other_bytes_name_draw_hash_and_what_else_changed(database: Database) -> None:
    store(database, learner_night(0))
    record = changed(1, sources={**SOURCES, OF_FRAME: "3" * 64})
    found = verdict(database, record, repeatability_findings)
    assert (found.verdict, found.reason_code, found.value) == (Verdict.REGRESSED, "state_changed", 1)
    assert found.reason == (
        f"draw 1: 1 of 3 hashes are others ({BIAS}) than in run Test GPU scheduled__000; "
        f"also changed: source {OF_FRAME} 222222222222 -> 333333333333"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"environment": {"packages": {"torch": "2.12.0"}}},
        {"settings": OTHER_WORKSPACE},
        {"sources": {**SOURCES, OF_LEARNER: "3" * 64}},
    ],
    ids=["torch", "workspace", "learner"],
)
def test_another_environment_is_told_and_not_red(database: Database, change: dict[str, Any]) -> None:
    store(database, learner_night(0))
    assert code(database, changed(1, **change), repeatability_findings) == (
        Verdict.INCONCLUSIVE,
        "state_changed_elsewhere",
    )
    assert code(database, changed(2, **change), repeatability_findings) == (Verdict.OK, "same_state")
    assert code(database, changed(3), repeatability_findings) == (Verdict.REGRESSED, "state_changed")


def test_each_draw_is_held_against_its_own_latest_run(database: Database) -> None:
    store(database, learner_night(0), learner_night(1, validations=[state_validation(0)]))
    found = verdict(database, changed(2), repeatability_findings)
    assert (found.verdict, found.reason.split(" than ")[1]) == (Verdict.REGRESSED, "in run Test GPU scheduled__000")


def test_other_devices_are_not_compared(database: Database) -> None:
    store(database, learner_night(0, device=OTHER_GPU))
    assert code(database, changed(1), repeatability_findings) == (Verdict.INCONCLUSIVE, "no_earlier_run")


def test_a_simulated_device_computes_on_any_machine(database: Database) -> None:
    store(database, learner_night(0, device=SIMULATED_GPU))
    found = verdict(database, changed(1, device=SIMULATED_GPU), repeatability_findings)
    assert (found.verdict, found.reason_code) == (Verdict.INCONCLUSIVE, "state_changed_elsewhere")
    assert found.reason.endswith("which machine computed is not known")


def test_a_reference_that_ends_elsewhere_is_red_on_the_first_night(database: Database) -> None:
    moved = ReferenceState("state_grid_sha256", digest("grid"), digest("moved"))
    reason = {"outcome": Outcome.REGRESSION, "reason": Reason("reference_state_differs", "it ends elsewhere")}
    record = learner_night(0, validations=[state_validation(0, reference_state=moved, **reason)])
    found = verdict(database, record, repeatability_findings)
    assert (found.verdict, found.reason_code) == (Verdict.REGRESSED, "reference_state_changed")
    assert f"expected {digest('grid')[:12]}, found {digest('moved')[:12]}" in found.reason


def test_replays_and_processes_that_differ_are_red(database: Database) -> None:
    reason = {"outcome": Outcome.REGRESSION, "reason": Reason("replay_state_differs", "other bytes")}
    replay = learner_night(0, validations=[state_validation(0, replay_states_equal=[True, False, True], **reason)])
    assert code(database, replay, repeatability_findings)[1] == "replay_state_differs"
    again = learner_night(1, memory=memory(unmatched=[BIAS]))
    assert code(database, again, repeatability_findings)[1] == "state_not_repeated"
    other = learner_night(2, memory=memory(state_hashes=states(0, [BIAS])))
    assert code(database, other, repeatability_findings)[1] == "processes_differ"


def test_a_draw_that_was_lost_is_invalid(database: Database) -> None:
    lost = {"outcome": Outcome.INFRASTRUCTURE_FAILURE, "reason": Reason("device_lost", "gone")}
    counts = dict.fromkeys(("total", "agreed", "device_correct", "reference_correct", "predictions_int32_sha256"))
    states_of = {"state_hashes": None, "replay_states_equal": [], "replays_equal_eager": [], "reference_state": None}
    record = learner_night(0, validations=[state_validation(0, **lost, **counts, **states_of)])
    assert code(database, record, repeatability_findings) == (Verdict.INVALID, "device_lost")


# The operators, and the word of a run


OPERATORS: tuple[type[CheckOperator], ...] = (QualificationOperator, MemoryDriftOperator, RepeatabilityOperator)


@pytest.fixture
def connection_of_the_test(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "results_engine", lambda conn_id: database.writer)


def run(operator: type[CheckOperator], name: str) -> dict[str, dict[str, str]]:
    task = operator(task_id="check", run_dag_id=DAG, run_dag_run_id=name)
    return task.execute({})  # type: ignore[typeddict-item]


@pytest.mark.usefixtures("connection_of_the_test")
def test_the_operators_store_what_they_find_and_fail_when_red(database: Database) -> None:
    base(database)
    store(database, learner_night(1))
    found = {check: told["reason_code"] for one in OPERATORS for check, told in run(one, "scheduled__001").items()}
    assert found == {"qualification": "qualified", "memory": "same_memory", "repeatability": "same_state"}
    red = changed(2, qualification=qualification("x"), memory=memory(PEAK + 8192))
    store(database, red)
    for operator, told in zip(OPERATORS, ("not_qualified", "memory_higher", "state_changed"), strict=True):
        with pytest.raises(AirflowFailException, match=rf"\[{told}; learner on Test GPU, run scheduled__002\]"):
            run(operator, "scheduled__002")
    with database.reader.connect() as connection:
        rows = connection.execute(
            text("SELECT check_name, verdict, unit FROM check_result ORDER BY check_name, run_id")
        )
        stored = [tuple(row) for row in rows]
    assert sorted(stored) == sorted(
        (check, word, unit)
        for check, unit in (("qualification", "checks"), ("memory", "bytes"), ("repeatability", "hashes"))
        for word in ("ok", "regressed")
    )


def test_repeatability_looks_back_and_memory_does_not() -> None:
    fine, expected = {"agreement": "ok", "memory": "ok", "qualification": "ok"}, ["repeatability"]
    assert run_outcome(Outcome.OK, fine | {"repeatability": "inconclusive"}, expected) == ("ok", Outcome.OK)
    assert run_outcome(Outcome.OK, fine | {"repeatability": "regressed"}, expected)[0] == "regression"
    assert run_outcome(Outcome.OK, fine | {"repeatability": "invalid"}, expected)[0] == "invalid_measurement"
    assert run_outcome(Outcome.OK, {"repeatability": "ok"}, expected)[0] == "inconclusive"
    assert run_outcome(Outcome.OK, fine | {"memory": "inconclusive"}, [])[0] == "inconclusive"
    assert run_outcome(Outcome.REGRESSION, fine | {"qualification": "regressed"}, [])[0] == "regression"
