"""Qualification: a check that does not hold, one that was not made, and one that is gone."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regression.detectors import Problem, Verdict
from regression.detectors.qualification import Case, QualificationBaseline, QualificationRun, judge_qualification

CORE, TRAINING = Case("core float64, depth 1", True, 1), Case("training, depth 2", True, 106)
GOOD = QualificationRun(True, 107, (CORE, TRAINING), "cpu", 9.5e-7, {"atol": 2e-5, "rtol": 3e-3})
BASELINE = QualificationBaseline("Test CPU night", {CORE.name: 1, TRAINING.name: 106})
FAILING = replace(TRAINING, passed=False, failures=("epoch 0, batch 0: velocity weights.1",))
FAILED = replace(GOOD, passed=False, cases=(CORE, FAILING))
LOST = Problem("infrastructure_failure", "torch_missing", "torch: expected in an environment that runs it, found none")


def test_all_checks_hold() -> None:
    found = judge_qualification(GOOD, BASELINE)
    assert (found.verdict, found.reason_code, found.value, found.baseline_value) == (Verdict.OK, "qualified", 107, 107)
    assert found.reason == "107 of 107 checks hold on cpu, as many as in baseline Test CPU night"
    assert judge_qualification(GOOD, None).reason == "107 of 107 checks hold on cpu"
    json.dumps(found.details, allow_nan=False)


def test_a_check_that_does_not_hold_is_a_regression_that_names_it() -> None:
    found = judge_qualification(FAILED, BASELINE)
    assert (found.verdict, found.reason_code, found.direction) == (Verdict.REGRESSED, "not_qualified", "lower")
    assert (found.value, found.baseline_value) == (106, 107)
    assert found.reason == "1 of 107 checks do not hold: training, depth 2: epoch 0, batch 0: velocity weights.1"


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (replace(GOOD, passed=False), "not all checks hold, and no record says which"),
        (
            replace(GOOD, cases=(CORE, replace(TRAINING, passed=False))),
            "1 of 107 checks do not hold: training, depth 2: does not hold",
        ),
    ],
)
def test_one_that_is_not_named_is_one_all_the_same(run: QualificationRun, text: str) -> None:
    found = judge_qualification(run, None)
    assert (found.verdict, found.reason) == (Verdict.REGRESSED, text)


@pytest.mark.parametrize(
    ("run", "problem", "verdict", "code"),
    [
        (None, None, Verdict.INVALID, "no_qualification_record"),
        (None, LOST, Verdict.INVALID, "torch_missing"),
        (QualificationRun(None, None, (), problem=LOST), None, Verdict.INVALID, "torch_missing"),
        (QualificationRun(None, None, ()), None, Verdict.INVALID, "no_checks"),
        (replace(GOOD, checks=0, cases=()), None, Verdict.INVALID, "no_checks"),
        (replace(GOOD, checks=108), None, Verdict.INVALID, "impossible_counts"),
        (
            replace(GOOD, checks=106, cases=(replace(CORE, checks=0), TRAINING)),
            None,
            Verdict.INVALID,
            "impossible_counts",
        ),
        (
            QualificationRun(None, None, (), problem=Problem("bad_input", "no_qualification", "--workload: none here")),
            None,
            Verdict.UNAVAILABLE,
            "no_qualification",
        ),
    ],
)
def test_what_was_not_checked_is_never_fine(
    run: QualificationRun | None, problem: Problem | None, verdict: Verdict, code: str
) -> None:
    found = judge_qualification(run, None, problem)
    assert (found.verdict, found.reason_code) == (verdict, code)


def test_less_than_the_baseline_checked_is_not_qualified() -> None:
    fewer = replace(GOOD, checks=106, cases=(CORE, replace(TRAINING, checks=105)))
    found = judge_qualification(fewer, BASELINE)
    assert (found.verdict, found.reason_code) == (Verdict.INVALID, "checks_missing")
    assert found.reason.endswith("than in baseline Test CPU night: training, depth 2: 105 checks, 106 there")
    gone = judge_qualification(replace(GOOD, checks=106, cases=(TRAINING,)), BASELINE)
    assert gone.reason.endswith("core float64, depth 1 was not checked")
    more = judge_qualification(
        replace(GOOD, checks=108, cases=(CORE, TRAINING, replace(CORE, name="core new"))), BASELINE
    )
    assert (more.verdict, more.reason) == (Verdict.OK, "108 of 108 checks hold on cpu")


def test_a_failed_check_is_told_before_a_missing_one() -> None:
    both = replace(FAILED, checks=106, cases=(FAILING,))
    assert judge_qualification(both, BASELINE).reason_code == "not_qualified"


CASES = st.lists(
    st.builds(
        lambda name, checks, failed: Case(name, not failed, checks, tuple(f"check {n}" for n in range(failed))),
        st.sampled_from([f"case {n}" for n in range(4)]),
        st.integers(0, 5),
        st.integers(0, 2),
    ),
    max_size=4,
    unique_by=lambda case: case.name,
)


@given(CASES, CASES, st.sampled_from([None, True, False]), st.booleans())
def test_ok_means_that_everything_the_baseline_checked_holds(
    cases: list[Case], accepted: list[Case], passed: bool | None, counted: bool
) -> None:
    checks = sum(case.checks for case in cases) if counted else None
    baseline = QualificationBaseline("b", {case.name: case.checks for case in accepted})
    found = judge_qualification(QualificationRun(passed, checks, tuple(cases)), baseline)
    fine = bool(passed and checks) and all(case.passed and case.checks for case in cases)
    made = {case.name: case.checks for case in cases}
    complete = all(made.get(case.name, -1) >= case.checks for case in accepted)
    assert (found.verdict is Verdict.OK) == (fine and complete)
    json.dumps(found.details, allow_nan=False)
