"""No run that went wrong is the measure of the next one: not of its bytes, its memory, or its figures."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, Row

from gpu_tasks.records import Outcome, PredictionMismatch, Reason, ReferenceState, RunRecord, ValidationRecord
from regression.detectors import CheckVerdict, Verdict, judge_agreement
from regression.results.accounts import memory_findings
from regression.results.backtests import THRESHOLD, replayed, stored_history
from regression.results.baselines import retire_baseline
from regression.results.checks import Finding, store_check
from regression.results.history import agreement_baseline, agreement_run
from regression.results.states import repeatability_findings
from regression.results.withdrawals import withdraw_run
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import SIMULATED_GPU
from tests.integration.regression.example_learner import PEAK, memory, qualification, state_validation
from tests.integration.regression.example_records import digest, validation
from tests.integration.regression.learner_nights import Findings, judged, learner_night
from tests.integration.regression.many_nights import FIRST, MJ, accept, histories, night, noisy, store

BIAS = "final_parameter_sha256.head.bias"
MOVED = ReferenceState("state_grid_sha256", digest("grid", 1), digest("moved"))
LOST = Reason("device_lost", "the GPU fell off the bus")
NOTHING = dict.fromkeys(
    ("total", "agreed", "device_correct", "reference_correct", "predictions_int32_sha256", "reference_state")
)


def broken(**changes: Any) -> ValidationRecord:
    """The second draw, which left other bytes, and came out as a regression."""
    regression = {"outcome": Outcome.REGRESSION, "reason": Reason("went_wrong", "it went wrong")}
    return state_validation(1, (BIAS,), **regression, **changes)


def wrong_class(**changes: Any) -> ValidationRecord:
    return broken(agreed=999, mismatches=[PredictionMismatch(17, 2, 5)], **changes)


WENT_WRONG: dict[str, dict[str, Any]] = {
    "a wrong prediction": {"validations": [state_validation(0), wrong_class()]},
    "a replay that differs": {"validations": [state_validation(0), broken(replays_equal_eager=[True, False, True])]},
    "a replay that leaves other bytes": {
        "validations": [state_validation(0), broken(replay_states_equal=[True, False, True])]
    },
    "a reference that ends elsewhere": {"validations": [state_validation(0), broken(reference_state=MOVED)]},
    "a draw that was lost": {
        "validations": [
            state_validation(0, (BIAS,)),
            state_validation(1, outcome=Outcome.INFRASTRUCTURE_FAILURE, reason=LOST, **NOTHING, state_hashes=None),
        ]
    },
    "a draw that is missing": {"validations": [state_validation(0, (BIAS,))]},
    "a failed qualification": {
        "validations": [state_validation(0), state_validation(1, (BIAS,))],
        "qualification": qualification("velocity weights.1"),
    },
    "a second process that differs": {
        "validations": [state_validation(0), state_validation(1, (BIAS,))],
        "memory": memory(unmatched=[BIAS]),
    },
}


def gone_wrong(day: int, **changes: Any) -> RunRecord:
    """A night of two draws; a draw that has no record was asked for all the same."""
    record = learner_night(day, **changes)
    request, summary = replace(record.request, draws=[0, 1]), replace(record.summary, draws_expected=2)
    return replace(record, request=request, summary=summary)


def verdict(database: Database, record: RunRecord, findings: Findings) -> CheckVerdict:
    (found,) = judged(database, record, findings).values()
    return found.verdict


def agreement(connection: Connection, run: Row[Any]) -> list[Finding]:
    baseline, stored = agreement_baseline(connection, run)
    return [Finding(judge_agreement(agreement_run(connection, run), baseline), stored and stored.baseline_id)]


def judge_and_keep(database: Database, record: RunRecord) -> CheckVerdict:
    """Store a run and what the check of agreement finds on it."""
    (found,) = judged(database, record, agreement).values()
    with database.writer.begin() as connection:
        store_check(connection, record.request.run_id, found.verdict, found.baseline_id, 0)
    return found.verdict


@pytest.mark.parametrize("device", [{}, {"device": SIMULATED_GPU}], ids=["board", "simulated"])
@pytest.mark.parametrize("what", WENT_WRONG)
def test_the_night_after_a_broken_one_is_held_against_the_latest_good_one(
    database: Database, what: str, device: dict[str, Any]
) -> None:
    first = learner_night(0, **device)
    store(database, first, learner_night(1, **device))
    accept(database, first)
    judge_and_keep(database, gone_wrong(2, **WENT_WRONG[what], **device))
    found = verdict(database, learner_night(3, **device), repeatability_findings)
    assert (found.verdict, found.reason_code) == (Verdict.OK, "same_state"), found.reason
    assert {one["run"][-3:] for one in found.details["findings"]} == {"001"}


@pytest.mark.parametrize("what", WENT_WRONG)
def test_what_broke_for_good_is_red_every_night(database: Database, what: str) -> None:
    """The second broken night is not fine because the first one was as broken."""
    unmatched = [BIAS] if "memory" in WENT_WRONG[what] else []
    first, second = (
        gone_wrong(day, **{**WENT_WRONG[what], "memory": memory(PEAK + 8192, 0, unmatched)}) for day in (1, 2)
    )
    store(database, learner_night(0), first)
    found = verdict(database, second, memory_findings)
    assert (found.verdict, found.reason_code) == (Verdict.REGRESSED, "memory_higher"), found.reason


def test_with_broken_runs_alone_there_is_no_earlier_good_one(database: Database) -> None:
    store(database, gone_wrong(0, **WENT_WRONG["a wrong prediction"]))
    found = verdict(database, learner_night(1), repeatability_findings)
    assert (found.verdict, found.reason_code) == (Verdict.INCONCLUSIVE, "no_earlier_run")
    assert "no earlier good run of this device" in found.reason
    found = verdict(database, gone_wrong(2, **WENT_WRONG["a wrong prediction"]), memory_findings)
    assert found.details["run_before"] == "Test GPU scheduled__001"


def test_bytes_that_only_changed_are_the_new_state_of_things(database: Database) -> None:
    other = {"validations": [state_validation(0), state_validation(1, (BIAS,))]}
    store(database, learner_night(0))
    assert verdict(database, learner_night(1, **other), repeatability_findings).verdict is Verdict.REGRESSED
    assert verdict(database, learner_night(2, **other), repeatability_findings).verdict is Verdict.OK


def test_predictions_that_were_accepted_as_they_are_do_not_count_as_broken(database: Database) -> None:
    """A changed workload may be accepted with its differences; nights like it are measured by each other."""
    as_accepted = [state_validation(0), replace(wrong_class(), replay_states_equal=[True, True, True])]
    first = gone_wrong(0, validations=as_accepted)
    store(database, first)
    accept(database, first)
    found = verdict(database, gone_wrong(1, validations=as_accepted), repeatability_findings)
    assert (found.verdict, found.reason_code) == (Verdict.OK, "same_state"), "held against the baseline itself"
    assert judge_and_keep(database, gone_wrong(2, validations=as_accepted)).verdict is Verdict.OK
    found = verdict(database, gone_wrong(3, validations=as_accepted), repeatability_findings)
    assert {one["run"][-3:] for one in found.details["findings"]} == {"002"}


@pytest.mark.parametrize("nights_like_it", [0, 2])
@pytest.mark.parametrize(
    ("what", "stands"),
    [
        ("is current", True),
        ("replaced", True),
        ("retired", False),
        ("replaced, and then the other was retired", True),
        ("retired, and then another was accepted", False),
        ("retired, and accepted again", True),
        ("replaced, accepted again, and retired", False),
        ("energy withdrawn", True),
        ("energy withdrawn, accepted again without, and retired", False),
    ],
)
def test_an_accepted_run_that_was_taken_back_is_no_measure_and_neither_are_nights_that_were_only_as_it_was(
    database: Database, what: str, stands: bool, nights_like_it: int
) -> None:
    as_mistaken = [state_validation(0), replace(wrong_class(), replay_states_equal=[True] * 3)]
    first, mistaken = learner_night(0), gone_wrong(1, validations=as_mistaken)
    store(database, first, mistaken)
    accept(database, mistaken, for_energy=True)
    for day in range(2, 2 + nights_like_it):
        assert judge_and_keep(database, gone_wrong(day, validations=as_mistaken)).verdict is Verdict.OK
    if "energy" in what:
        of_run = {"withdrawn_by": "ann", "reason": "its sensor"}
        withdraw_run(database.writer, mistaken.request.run_id, scope="energy", **of_run)
    for step in what.split(", ")[0 if "energy" not in what else 1 :]:
        if "accepted again" in step:
            accept(database, mistaken, for_energy=False)
        elif step == "replaced" or "another was accepted" in step:
            accept(database, first)
        elif "retired" in step:
            run = first if "the other" in step else mistaken
            retire_baseline(database.writer, run.request.run_id, retired_by="ann", reason="by mistake")
    found = verdict(database, learner_night(9), repeatability_findings)
    latest = 1 + nights_like_it if stands else 0
    assert {one["run"][-3:] for one in found.details["findings"]} == {f"{latest:03d}"}
    assert found.reason_code == ("state_changed" if stands else "same_state")


# Figures


def wrong_night(day: int, mj: float, **changes: Any) -> RunRecord:
    record = night(day, mj=mj, **changes)
    validations = [
        validation(one.draw, (PredictionMismatch(17, 2, 5),)) for one in record.validations if one.draw is not None
    ]
    agreed = sum(one.agreed or 0 for one in validations)
    return replace(record, validations=validations, summary=replace(record.summary, agreed=agreed))


def test_figures_of_nights_that_predicted_wrong_are_no_history(database: Database) -> None:
    quiet = list(noisy(30))
    store(database, *quiet[:20], *(wrong_night(day, MJ * 1.3) for day in range(20, 29)), night(29))
    found = histories(database, "scheduled__029")["energy_history"].verdict
    assert (found.verdict, found.reason_code) == (Verdict.OK, "no_shift")
    assert found.details["dropped"] == {"not_valid": 9}
    assert found.reason.endswith("(left out: 9 not valid)")


def test_a_night_that_predicted_wrong_is_still_judged_itself(database: Database) -> None:
    store(database, *noisy(20), wrong_night(20, MJ * 1.3))
    found = histories(database, "scheduled__020")["energy_history"].verdict
    assert (found.verdict, found.reason_code) == (Verdict.REGRESSED, "shift_higher")


def test_a_backtest_judges_a_night_that_predicted_wrong_and_measures_no_other_by_it(database: Database) -> None:
    wrong = [wrong_night(day, MJ * 1.3) for day in range(20, 30)]
    store(database, *noisy(20), *wrong, *(night(day, mj=MJ * 1.3) for day in range(30, 32)))
    with database.reader.connect() as connection:
        history = stored_history(connection, checks=["energy_history"])
    ((alert, _),) = replayed(history, THRESHOLD).alerts
    live = histories(database, "scheduled__020")["energy_history"].verdict
    assert (alert.opened, alert.direction, alert.first.reason) == (FIRST + timedelta(days=20), "higher", live.reason)
    assert alert.nights == 12
    last = histories(database, "scheduled__031")["energy_history"].verdict
    assert (last.verdict, last.details["dropped"]) == (Verdict.REGRESSED, {"not_valid": 10})


def test_figures_of_a_wrong_run_that_was_accepted_by_mistake_are_no_history(database: Database) -> None:
    mistaken = wrong_night(20, MJ * 1.3)
    store(database, *noisy(20), mistaken, night(21))
    accept(database, mistaken, for_energy=False)
    assert histories(database, "scheduled__021")["time_history"].verdict.details["dropped"] == {}
    retire_baseline(database.writer, mistaken.request.run_id, retired_by="ann", reason="by mistake")
    assert histories(database, "scheduled__021")["energy_history"].verdict.details["dropped"] == {"not_valid": 1}


def test_a_withdrawn_run_is_no_measure_of_memory_or_bytes(database: Database) -> None:
    other = learner_night(
        1, validations=[state_validation(0), state_validation(1, (BIAS,))], memory=memory(PEAK + 8192)
    )
    store(database, learner_night(0), other)
    withdraw_run(database.writer, other.request.run_id, scope="all", withdrawn_by="test", reason="for the test")
    assert verdict(database, learner_night(2), memory_findings).details["run_before"] == "Test GPU scheduled__000"
    assert verdict(database, learner_night(3), repeatability_findings).reason_code == "same_state"
