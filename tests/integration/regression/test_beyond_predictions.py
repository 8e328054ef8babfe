"""A run is not fine for the check of its predictions alone: what else of it ended badly counts without a check, too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu_tasks.records import MemoryRecord, Outcome, PredictionMismatch, Reason, RunRecord, ValidationRecord
from regression.detectors import CheckVerdict, Verdict
from regression.detectors.compared_predictions import CHECK as COMPARED_PREDICTIONS
from regression.results.checks import store_check
from regression.results.outcome import settle_verdict
from tests.integration.regression.databases import Database
from tests.integration.regression.example_learner import (
    DAG,
    OF_LEARNER,
    STATES,
    learner_run,
    memory,
    not_asked,
    qualification,
    state_validation,
    states,
)
from tests.integration.regression.example_records import digest, validation
from tests.integration.regression.many_nights import store

LOST = Reason("device_lost", "the GPU fell off the bus")
MISMATCH = Reason("prediction_mismatch", "1 of 1000 predictions disagree with the frozen ones")


def wrong(**changes: object) -> ValidationRecord:
    """Draw 0, of which an accepted baseline has the same one prediction wrong."""
    record = validation(
        0,
        (PredictionMismatch(17, 4, 9),),
        **OF_LEARNER,
        state_hashes=states(),
        replay_states_equal=[True, True, True],
        reference_state=state_validation(0).reference_state,
    )
    return replace(record, **changes)  # type: ignore[arg-type]


def wrong_memory(agreed: int = 999, **changes: object) -> MemoryRecord:
    return memory(outcome=Outcome.REGRESSION, reason=MISMATCH, agreed=agreed, **changes)


def run_of(first: ValidationRecord | None = None, **parts: object) -> RunRecord:
    """A run with the outcome of its worst part."""
    record = learner_run(validations=[first or state_validation(0), state_validation(1)], **parts)
    ended = [part.outcome for part in (*record.validations, record.qualification, record.memory) if part is not None]
    outcome = Outcome.worst(ended)
    return replace(record, outcome=outcome, reason=None if outcome is Outcome.OK else MISMATCH)


def verdict(database: Database, record: RunRecord, check: str = "agreement") -> str:
    """The verdict of a run whose only check is fine."""
    store(database, record)
    with database.writer.begin() as connection:
        found = CheckVerdict(check, Verdict.OK, "m", "predictions", "c", "as its baseline")
        store_check(connection, record.request.run_id, found, None, 0)
        return settle_verdict(connection, DAG, record.request.dag_run_id, [check]).verdict


OTHER_REFERENCE = replace(state_validation(0).reference_state, found_sha256=digest("elsewhere"))  # type: ignore[type-var]
NOT_FINE = {
    "qualification failed": run_of(qualification=qualification("forward")),
    "memory does not repeat": run_of(memory=memory(unmatched=STATES[:1])),
    "memory predicts otherwise than the validation": run_of(memory=wrong_memory()),
    "memory predicts as much otherwise, and other things": run_of(
        wrong(), memory=wrong_memory(state_hashes=states(changed=STATES[1:2]))
    ),
    "qualification failed beside a shared disagreement": run_of(wrong(), qualification=qualification("forward")),
    "memory does not repeat beside a shared disagreement": run_of(wrong(), memory=wrong_memory(hashes_matched=[])),
    "replay leaves other bytes": run_of(
        state_validation(0, outcome=Outcome.REGRESSION, reason=LOST, replay_states_equal=[True, False, True])
    ),
    "replay leaves other bytes beside a shared disagreement": run_of(wrong(replay_states_equal=[True, False, True])),
    "reference ends elsewhere beside a shared disagreement": run_of(wrong(reference_state=OTHER_REFERENCE)),
}


@pytest.mark.parametrize("name", NOT_FINE)
@pytest.mark.parametrize("check", ["agreement", COMPARED_PREDICTIONS])
def test_a_check_of_predictions_makes_nothing_else_good(database: Database, name: str, check: str) -> None:
    assert NOT_FINE[name].outcome is Outcome.REGRESSION
    assert verdict(database, NOT_FINE[name], check) == "regression"


def test_a_part_that_was_lost_is_not_hidden_by_a_disagreement_that_is_accepted(database: Database) -> None:
    record = run_of(wrong(), qualification=not_asked())
    assert record.outcome is Outcome.REGRESSION
    assert verdict(database, record) == "infrastructure_failure"


@pytest.mark.parametrize(
    "record",
    [run_of(), run_of(wrong()), run_of(wrong(), memory=wrong_memory())],
    ids=["nothing wrong", "a draw", "a draw and the memory of its task"],
)
def test_a_disagreement_that_a_baseline_shares_is_fine(database: Database, record: RunRecord) -> None:
    assert verdict(database, record) == "ok"
