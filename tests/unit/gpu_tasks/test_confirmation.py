"""Confirmation rounds in the record of a run: planned, measured, missing, and records from before there were any."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from gpu_tasks.convert.own import check_run
from gpu_tasks.programs.parts import read_parts
from gpu_tasks.programs.summarise import check_request, run_record
from gpu_tasks.records import (
    BadInput,
    ConfirmationRecord,
    FirstLook,
    Outcome,
    Reason,
    RunRecord,
    RunRequest,
    from_json,
    read_record,
    to_json,
    utc_now,
    write_record,
)
from gpu_tasks.sources import ROOT
from tests.support.run_parts import write_parts
from tests.unit.gpu_tasks.energy.nights import simulated_night

RUN = read_record(ROOT / "gpu_tasks/baselines/qda-original-a100.json", RunRecord)
FIRST = 4
REQUEST = dataclasses.replace(RUN.request, rounds=FIRST, confirm_rounds=3)
WHY = Reason("out_of_spread", "energy: median of the first 4 rounds above the spread")
LOOK = FirstLook("energy", "regressed", "energy_above_spread", "adjusted", "mJ", 2.0, 1.0, 1.5, None, True)


def plan(rounds: list[int], **changes: object) -> ConfirmationRecord:
    record = ConfirmationRecord("confirmation", utc_now(), Outcome.OK, WHY, "qda", rounds, [LOOK])
    return dataclasses.replace(record, **changes)  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The parts of the seven rounds of a run: four first ones and three more."""
    return write_parts(RUN, tmp_path)


def summarised(folder: Path, request: RunRequest = REQUEST) -> RunRecord:
    return run_record(request, read_parts(request, folder))


def test_rounds_that_were_planned_are_part_of_the_run(folder: Path) -> None:
    write_record(plan([4, 5, 6]), folder / "confirmation.json")
    found = summarised(folder)
    assert (found.outcome, found.reason) == (Outcome.OK, None)
    assert [r.round for r in found.rounds] == [0, 1, 2, 3, 4, 5, 6]
    assert (found.confirmation_rounds, found.rounds_expected, found.summary.rounds_expected) == ([4, 5, 6], 7, 7)
    assert found.summary.cuda_ms_median == RUN.summary.cuda_ms_median
    assert from_json(to_json(found), RunRecord, "run") == found
    check_run(dataclasses.replace(found, energy_trust="unverified"), "run")


def test_rounds_that_were_not_planned_are_no_part_of_it(folder: Path) -> None:
    """Left there by an earlier try of the task, say."""
    write_record(plan([]), folder / "confirmation.json")
    found = summarised(folder)
    assert (found.outcome, found.rounds_expected) == (Outcome.OK, FIRST)
    assert [r.round for r in found.rounds] == [0, 1, 2, 3]


def test_a_planned_round_that_is_missing_is_an_infrastructure_failure(folder: Path) -> None:
    write_record(plan([4, 5, 6]), folder / "confirmation.json")
    (folder / "round-05.json").unlink()
    found = summarised(folder)
    assert found.outcome is Outcome.INFRASTRUCTURE_FAILURE
    assert found.reason == Reason("parts_missing", "did not run: round-05")
    assert (found.summary.rounds_valid, found.summary.rounds_expected) == (6, 7)


@pytest.mark.parametrize("disturbed", [None, "round-02"])
def test_a_plan_that_was_never_made_is_missed_and_no_disturbed_round_explains_it(
    folder: Path, disturbed: str | None
) -> None:
    if disturbed:
        measured = dataclasses.replace(
            RUN.rounds[2], valid=False, outcome=Outcome.INVALID_MEASUREMENT, reason=Reason("throttled", "slow")
        )
        write_record(measured, folder / f"{disturbed}.json")
    found = summarised(folder)
    assert (found.outcome, found.reason) == (
        Outcome.INFRASTRUCTURE_FAILURE,
        Reason("parts_missing", "did not run: confirmation"),
    )


def test_a_mismatch_explains_that_nothing_was_planned(folder: Path) -> None:
    sources = read_record(folder / "verify-sources.json", type(RUN.verify_payload))
    mismatch = Outcome.VERIFICATION_MISMATCH
    wrong = dataclasses.replace(sources, outcome=mismatch, reason=Reason("sources_mismatch", "x"))
    write_record(wrong, folder / "verify-sources.json")
    for path in (*folder.glob("round-*"), *folder.glob("validation-*")):
        path.unlink()
    assert summarised(folder).outcome is mismatch


def test_a_request_from_before_misses_no_plan(folder: Path) -> None:
    found = summarised(folder, RUN.request)
    assert (found.outcome, found.confirmation, found.rounds_expected) == (Outcome.OK, None, 7)


def test_a_record_from_before_is_read() -> None:
    old = json.loads((ROOT / "gpu_tasks/baselines/qda-original-a100.json").read_text())
    assert "confirmation" not in old and "confirm_rounds" not in old["request"]
    assert (RUN.confirmation, RUN.request.confirm_rounds, RUN.confirmation_rounds) == (None, None, [])


@pytest.mark.parametrize(
    ("rounds", "said"),
    [
        ([3, 4, 5], r"\$.rounds: expected none or 4 to 6, found [3, 4, 5]"),
        ([4, 5], "found [4, 5]"),
        ([4, 5, 6, 7], "found [4, 5, 6, 7]"),
        ([4, 4, 5], "found [4, 4, 5]"),
        ([-1], "found [-1]"),
        ([6, 5, 4], "found [6, 5, 4]"),
    ],
)
def test_a_plan_that_is_none_is_refused(folder: Path, rounds: list[int], said: str) -> None:
    write_record(plan(rounds), folder / "confirmation.json")
    found = summarised(folder)
    assert found.outcome is Outcome.BAD_INPUT
    assert found.reason is not None
    assert said.replace("\\", "") in found.reason.message
    assert (found.confirmation, found.rounds_expected) == (None, FIRST)


def test_a_plan_for_a_run_that_asked_for_none_is_refused(folder: Path) -> None:
    write_record(plan([4]), folder / "confirmation.json")
    found = summarised(folder, dataclasses.replace(REQUEST, confirm_rounds=0))
    assert found.outcome is Outcome.BAD_INPUT


def test_a_plan_of_another_workload_is_refused(folder: Path) -> None:
    write_record(plan([4, 5, 6], workload="learner"), folder / "confirmation.json")
    assert summarised(folder).outcome is Outcome.BAD_INPUT


@pytest.mark.parametrize("count", [-1, 101])
def test_a_request_with_too_many_is_refused(count: int) -> None:
    with pytest.raises(BadInput, match=r"\$\.confirm_rounds: expected 0 to 100,"):
        check_request(dataclasses.replace(REQUEST, confirm_rounds=count), Path("request.json"))


def test_a_summary_that_forgets_the_confirmation_rounds_is_found() -> None:
    night = simulated_night()
    more = dataclasses.replace(night, confirmation=plan([99]))
    with pytest.raises(BadInput, match=r"\$\.summary\.rounds_expected"):
        check_run(more, "run.json")
