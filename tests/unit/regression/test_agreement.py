"""Exact agreement: every way to differ, every way to be missing, and properties over random runs."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from regression.detectors import (
    AgreementBaseline,
    AgreementRun,
    BaselineDraw,
    DrawResult,
    Problem,
    Verdict,
    judge_agreement,
)

LOST = Problem("infrastructure_failure", "device_lost", "the GPU fell off the bus")
GOOD = DrawResult(3, 1000, 1000, (), "a" * 64, (True, True, True))
BASELINE = AgreementBaseline("A100 record", "m", {d: BaselineDraw(1000, 1000, frozenset(), "a" * 64) for d in range(4)})


def run_of(
    *results: DrawResult, expected: tuple[int, ...] | None = None, problem: Problem | None = None
) -> AgreementRun:
    return AgreementRun("m", expected if expected is not None else tuple(r.draw for r in results), results, problem)


def test_the_same_predictions_are_ok_and_say_against_what() -> None:
    found = judge_agreement(run_of(GOOD), BASELINE)
    assert (found.verdict, found.value, found.baseline_value) == (Verdict.OK, 1000, 1000)
    assert (
        found.reason
        == "1000 of 1000 agree on 1 draw, as in baseline A100 record (3 of the baseline's 4 draws were not asked for)"
    )


def test_one_lost_agreement_in_a_thousand_is_a_regression_that_names_it() -> None:
    found = judge_agreement(
        run_of(replace(GOOD, agreed=999, mismatches=((17, 4, 9),), predictions_sha256="b" * 64)), BASELINE
    )
    assert (found.verdict, found.reason_code, found.direction) == (Verdict.REGRESSED, "agreement_dropped", "lower")
    assert found.reason == "draw 3: 999 of 1000 agree, baseline 1000; index 17: expected 4, found 9"


def test_a_drop_in_one_draw_is_not_made_up_for_by_another() -> None:
    baseline = AgreementBaseline("b", "m", {2: BaselineDraw(1000, 999, frozenset({5}), None), 3: BASELINE.draws[3]})
    better = replace(GOOD, draw=2)
    worse = replace(GOOD, agreed=999, mismatches=((1, 2, 3),))
    assert judge_agreement(run_of(better, worse), baseline).reason_code == "agreement_dropped"


def test_other_predictions_at_equal_agreement_are_a_regression_of_their_own() -> None:
    known = AgreementBaseline("b", "m", {3: BaselineDraw(1000, 999, frozenset({5}), "a" * 64)})
    moved = replace(GOOD, agreed=999, mismatches=((6, 1, 2),))
    assert judge_agreement(run_of(moved), known).reason_code == "new_mismatches"
    same_index = replace(GOOD, agreed=999, mismatches=((5, 1, 2),), predictions_sha256="b" * 64)
    assert judge_agreement(run_of(same_index), known).reason_code == "predictions_changed"
    assert (
        judge_agreement(run_of(replace(GOOD, predictions_sha256=None)), BASELINE).reason_code
        == "prediction_hash_missing"
    )


def test_a_disagreement_that_the_baseline_shares_is_ok_and_its_loss_an_improvement() -> None:
    known = AgreementBaseline("b", "m", {3: BaselineDraw(1000, 999, frozenset({5}), "c" * 64)})
    shared = replace(GOOD, agreed=999, mismatches=((5, 1, 2),), predictions_sha256="c" * 64)
    assert judge_agreement(run_of(shared), known).verdict is Verdict.OK
    found = judge_agreement(run_of(GOOD), known)
    assert (found.verdict, found.direction) == (Verdict.IMPROVED, "higher")


def test_a_replay_that_differs_is_a_regression_even_when_everything_agrees() -> None:
    found = judge_agreement(run_of(replace(GOOD, replays_equal_eager=(True, False, True))), BASELINE)
    assert (found.reason_code, found.reason) == ("replay_differs", "draw 3: replay 1 differs from the eager run")


def test_no_replay_at_all_is_never_ok() -> None:
    assert judge_agreement(run_of(replace(GOOD, replays_equal_eager=())), BASELINE).verdict is Verdict.INVALID


def test_a_missing_draw_is_a_regression_unless_something_explains_it() -> None:
    unexplained = judge_agreement(run_of(GOOD, expected=(2, 3)), BASELINE)
    assert (unexplained.verdict, unexplained.reason_code) == (Verdict.REGRESSED, "draw_missing")
    assert judge_agreement(run_of(GOOD, expected=(2, 3), problem=LOST), BASELINE).verdict is Verdict.INVALID


def test_a_lost_device_is_invalid_and_never_a_regression() -> None:
    found = judge_agreement(run_of(GOOD, DrawResult(2, None, None, problem=LOST)), BASELINE)
    assert (found.verdict, found.reason_code) == (Verdict.INVALID, "device_lost")
    late = replace(GOOD, replays_equal_eager=(True,), problem=LOST)
    assert judge_agreement(run_of(late), BASELINE).verdict is Verdict.INVALID


def test_seen_disagreement_wins_over_a_lost_device() -> None:
    bad = replace(GOOD, agreed=999, mismatches=((17, 4, 9),))
    assert judge_agreement(run_of(DrawResult(2, None, None, problem=LOST), bad), BASELINE).verdict is Verdict.REGRESSED


def test_nothing_is_never_ok() -> None:
    assert judge_agreement(run_of(), BASELINE).reason_code == "no_validations"
    assert judge_agreement(run_of(expected=(1,), problem=LOST), BASELINE).reason_code == "device_lost"
    assert judge_agreement(run_of(GOOD, expected=()), BASELINE).verdict is Verdict.INVALID


def test_without_a_fitting_baseline_the_frozen_predictions_are_the_measure() -> None:
    bad = replace(GOOD, agreed=999, mismatches=((17, 4, 9),))
    for baseline, code in (
        (None, "no_baseline"),
        (replace(BASELINE, payload_manifest_sha256="x"), "baseline_other_payload"),
    ):
        assert judge_agreement(run_of(GOOD), baseline).reason_code == code
        assert judge_agreement(run_of(GOOD), baseline).verdict is Verdict.INCONCLUSIVE
        assert judge_agreement(run_of(bad), baseline).reason_code == "disagrees_with_frozen"


def test_a_draw_that_the_baseline_lacks_is_inconclusive() -> None:
    assert judge_agreement(run_of(replace(GOOD, draw=9)), BASELINE).reason_code == "no_baseline_for_draw"


def test_impossible_counts_are_invalid() -> None:
    for total, agreed in ((1000, 1001), (1000, -1), (0, 0)):
        assert judge_agreement(run_of(replace(GOOD, total=total, agreed=agreed)), BASELINE).verdict is Verdict.INVALID
    assert judge_agreement(run_of(replace(GOOD, total=900, agreed=900)), BASELINE).reason_code == "total_changed"


@st.composite
def runs(draw: st.DrawFn) -> AgreementRun:
    results = []
    for number in draw(st.sets(st.integers(0, 3), max_size=4)):
        total = draw(st.sampled_from([1000, None]))
        agreed = total and draw(st.sampled_from([999, 1000]))
        mismatches = ((7, 1, 2),) if agreed == 999 else ()
        problem = LOST if total is None else draw(st.sampled_from([None, LOST]))
        results.append(
            DrawResult(
                number, total, agreed, mismatches, "a" * 64, draw(st.sampled_from([(), (True,), (False,)])), problem
            )
        )
    return run_of(*results, expected=tuple(range(4)), problem=draw(st.sampled_from([None, LOST])))


@given(runs())
def test_ok_means_that_everything_asked_for_was_seen_to_agree(run: AgreementRun) -> None:
    found = judge_agreement(run, BASELINE)
    complete = len(run.results) == 4 and all(
        r.agreed == 1000 and r.problem is None and r.replays_equal_eager == (True,) for r in run.results
    )
    assert (found.verdict is Verdict.OK) == complete
    disagrees = any(r.agreed == 999 or False in r.replays_equal_eager for r in run.results)
    if disagrees:
        assert found.verdict is Verdict.REGRESSED
    assert found.reason and "\n" not in found.reason
