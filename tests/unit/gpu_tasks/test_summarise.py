"""A run put together from its parts: which outcome, for which reason, with what missing."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from gpu_tasks.programs.console import in_short
from gpu_tasks.programs.parts import read_parts
from gpu_tasks.programs.summarise import check_request, run_record
from gpu_tasks.records import (
    BadInput,
    Outcome,
    PredictionMismatch,
    Reason,
    RunRecord,
    ValidationRecord,
    read_record,
    write_record,
)
from gpu_tasks.sources import ROOT
from tests.support.run_parts import write_parts

RUN = read_record(ROOT / "gpu_tasks/baselines/qda-original-a100.json", RunRecord)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The parts of the baseline run, as its tasks would have left them."""
    return write_parts(RUN, tmp_path)


def change(folder: Path, name: str, cls: type[Any], **fields: Any) -> None:
    path = folder / f"{name}.json"
    write_record(dataclasses.replace(read_record(path, cls), **fields), path)


def fail(folder: Path, name: str, outcome: Outcome, code: str = "broken") -> None:
    cls = type(next(p.record for p in read_parts(RUN.request, folder) if p.name == name))
    change(folder, name, cls, outcome=outcome, reason=Reason(code, f"{code} indeed"))


def remove(folder: Path, *prefixes: str) -> None:
    for path in folder.iterdir():
        if path.name.startswith(prefixes):
            path.unlink()


def summarised(folder: Path) -> RunRecord:
    return run_record(RUN.request, read_parts(RUN.request, folder))


def test_a_whole_run(folder: Path) -> None:
    found = summarised(folder)
    assert (found.outcome, found.reason) == (Outcome.OK, None)
    assert found.summary == RUN.summary
    assert found.validations == RUN.validations
    assert found.rounds == RUN.rounds
    assert found.kernel == RUN.kernel
    assert (found.started_at, found.completed_at) == (RUN.started_at, RUN.completed_at)
    assert found.energy_trust == "unverified"


def test_nothing_ran(folder: Path) -> None:
    remove(folder, "")
    found = summarised(folder)
    assert found.outcome is Outcome.INFRASTRUCTURE_FAILURE
    assert found.reason is not None
    assert found.reason.code == "parts_missing"
    assert found.reason.message.startswith("did not run: provision, verify-sources, verify-payload, validation-00 to ")
    assert found.completed_at is None
    assert found.energy_trust == "unavailable"
    assert found.summary.draws_validated == 0


def test_a_missing_part_is_an_infrastructure_failure(folder: Path) -> None:
    remove(folder, "validation-04", "round-02")
    found = summarised(folder)
    assert found.outcome is Outcome.INFRASTRUCTURE_FAILURE
    assert found.reason == Reason("parts_missing", "did not run: validation-04, round-02")
    assert found.summary.draws_validated == 10


def test_a_mismatch_explains_what_did_not_run(folder: Path) -> None:
    fail(folder, "verify-payload", Outcome.VERIFICATION_MISMATCH, "payload_mismatch")
    remove(folder, "validation", "round")
    found = summarised(folder)
    assert found.outcome is Outcome.VERIFICATION_MISMATCH
    assert found.reason is not None
    assert found.reason.code == "payload_mismatch"
    expected = (
        "verify-payload: payload_mismatch indeed; did not run: validation-00 to validation-10, round-00 to round-06"
    )
    assert found.reason.message == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], ""),
        (["round-01", "round-02"], "round-01, round-02"),
        (["round-09", "round-10", "round-11"], "round-09 to round-11"),
        (["validation-01", "round-02", "round-04", "round-05"], "validation-01, round-02, round-04, round-05"),
        (
            ["verify-sources", "round-98", "round-99", "round-100", "confirmation"],
            "verify-sources, round-98 to round-100, confirmation",
        ),
    ],
)
def test_numbers_that_follow_one_another_are_told_in_short(names: list[str], expected: str) -> None:
    assert in_short(names) == expected


def test_a_later_failure_explains_nothing(folder: Path) -> None:
    """A regression in a draw does not explain that another draw is missing, but outranks it."""
    fail(folder, "validation-03", Outcome.REGRESSION, "prediction_mismatch")
    remove(folder, "validation-04")
    found = summarised(folder)
    assert found.outcome is Outcome.REGRESSION
    assert found.reason == Reason(
        "prediction_mismatch", "validation-03: prediction_mismatch indeed; did not run: validation-04"
    )
    fail(folder, "validation-03", Outcome.INVALID_MEASUREMENT)
    assert summarised(folder).outcome is Outcome.INFRASTRUCTURE_FAILURE


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        (Outcome.VERIFICATION_MISMATCH, Outcome.BAD_INPUT),
        (Outcome.BAD_INPUT, Outcome.REGRESSION),
        (Outcome.REGRESSION, Outcome.INFRASTRUCTURE_FAILURE),
        (Outcome.INFRASTRUCTURE_FAILURE, Outcome.INVALID_MEASUREMENT),
    ],
)
def test_the_worst_part_counts(folder: Path, worse: Outcome, better: Outcome) -> None:
    fail(folder, "validation-01", better, "milder")
    fail(folder, "round-05", worse, "first")
    fail(folder, "round-06", worse, "second")
    found = summarised(folder)
    assert found.outcome is worse
    assert found.reason == Reason("first", "round-05: first indeed")


def test_a_part_of_another_run_is_refused(folder: Path) -> None:
    (folder / "validation-04.json").write_bytes((folder / "validation-05.json").read_bytes())
    found = summarised(folder)
    assert found.outcome is Outcome.BAD_INPUT
    assert found.reason is not None
    assert "validation-04.json: $.draw: expected 4, found 5" in found.reason.message
    assert [v.draw for v in found.validations] == [0, 1, 2, 3, 5, 6, 7, 8, 9, 10]


def test_a_damaged_part_is_named(folder: Path) -> None:
    (folder / "round-03.json").write_text("{", encoding="utf-8")
    found = summarised(folder)
    assert found.outcome is Outcome.BAD_INPUT
    assert found.reason is not None
    assert "round-03.json: expected JSON" in found.reason.message
    assert found.summary.rounds_valid == 6


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"rounds": -5}, r"\$\.rounds: expected 0 to 100, found -5$"),
        ({"rounds": 101}, r"\$\.rounds: expected 0 to 100, found 101$"),
        ({"rounds": 10**90}, r"\$\.rounds: expected 0 to 100, found 10{79}\.\.\.$"),
        ({"draws": []}, r"\$\.draws: expected 1 to 100 of them, found none$"),
        ({"draws": [1, 1]}, r"\$\.draws: expected distinct numbers from 0 to 99, found \[1, 1\]$"),
        ({"draws": [0, 100]}, r"\$\.draws: expected distinct numbers from 0 to 99, found \[0, 100\]$"),
        ({"draws": [-1]}, r"\$\.draws: expected distinct numbers from 0 to 99, found \[-1\]$"),
        ({"repeats": 0}, r"\$\.repeats: expected 1 to 1000000000, found 0$"),
        ({"repeats": 10**9 + 1}, r"\$\.repeats: expected 1 to 1000000000, found"),
        ({"seed": -1}, r"\$\.seed: expected 0 to 4294967295, found -1$"),
        ({"seed": 2**32}, r"\$\.seed: expected 0 to 4294967295, found 4294967296$"),
        ({"workload": "zz"}, "zz"),
        ({"accepted_at": "2026-11-30T02:00:00"}, "UTC offset"),
        ({"accepted_at": "9999-12-31T23:59:59-14:00"}, "UTC can express"),
    ],
)
def test_a_request_that_no_run_can_have_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        check_request(dataclasses.replace(RUN.request, **fields), Path("request.json"))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"agreed": 10**30}, "agreed: expected 0 to 1000"),
        ({"agreed": 999}, "mismatches: expected one for each disagreement"),
        ({"workload": "other"}, "workload: expected 'qda'"),
        ({"device_uuid": "GPU-another"}, "device_uuid: expected 'GPU-98d97ad6"),
        ({"replays_equal_eager": [True, False, True]}, "outcome: expected equal replays"),
        (
            {"agreed": 999, "mismatches": [PredictionMismatch(1000, 1, 2)], "outcome": Outcome.REGRESSION},
            "mismatches: expected indices of queries",
        ),
    ],
)
def test_a_part_that_contradicts_itself_or_the_run_is_bad_input(
    folder: Path, fields: dict[str, Any], said: str
) -> None:
    change(folder, "validation-04", ValidationRecord, **fields)
    found = summarised(folder)
    assert found.outcome is Outcome.BAD_INPUT
    assert found.reason is not None
    assert said in found.reason.message
    assert [v.draw for v in found.validations] == [0, 1, 2, 3, 5, 6, 7, 8, 9, 10]
