"""Predictions of candidate and pinned kernel: one newly wrong query is worse, whatever else became right."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_tasks.payload.draws import Payload
from gpu_tasks.workloads.qda.classifier import scores, train
from gpu_tasks.workloads.registry import get_workload
from regression.detectors import CheckVerdict, DrawResult, Problem, Verdict
from regression.detectors.compared_predictions import (
    ROUNDING_GAP,
    ComparedPredictions,
    Differing,
    gap_text,
    judge_predictions,
)

TOTAL = 1000
RACE = Problem("bad_input", "race", "kernel train, PTX line 706: read with no barrier since a write at line 640")
LOST = Problem("infrastructure_failure", "device_lost", "CUDA_ERROR_UNKNOWN")


def draw(number: int = 0, wrong: dict[int, int] | None = None, **changes: object) -> DrawResult:
    """A draw whose queries are all of class 1, but for those predicted ``wrong``."""
    wrong = wrong or {}
    result = DrawResult(
        *(number, TOTAL, TOTAL - len(wrong), tuple((index, 1, chosen) for index, chosen in sorted(wrong.items()))),
        predictions_sha256=repr(sorted(wrong.items())),
        replays_equal_eager=(True, True, True),
    )
    return replace(result, **changes)  # type: ignore[arg-type]


def not_run(problem: Problem | None, number: int = 0) -> DrawResult:
    return DrawResult(number, None, None, problem=problem)


def compared(candidate: DrawResult, pinned: DrawResult | None = None, **changes: object) -> CheckVerdict:
    found = ComparedPredictions((0,), (candidate,), (pinned or draw(),))
    return judge_predictions(replace(found, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("candidate", "pinned", "verdict", "code"),
    [
        ({}, {}, Verdict.OK, "same_predictions"),
        ({3: 2}, {3: 2}, Verdict.OK, "same_predictions"),
        ({3: 2}, {}, Verdict.REGRESSED, "newly_wrong"),
        ({}, {3: 2}, Verdict.IMPROVED, "newly_right"),
        ({3: 2}, {4: 2, 5: 2}, Verdict.REGRESSED, "newly_wrong"),
        ({3: 2}, {3: 4}, Verdict.INCONCLUSIVE, "otherwise_wrong"),
        ({3: 2}, {3: 4, 5: 2}, Verdict.IMPROVED, "newly_right"),
    ],
)
def test_what_is_wrong_in_one_and_right_in_the_other(
    candidate: dict[int, int], pinned: dict[int, int], verdict: Verdict, code: str
) -> None:
    found = compared(draw(wrong=candidate), draw(wrong=pinned))
    assert (found.verdict, found.reason_code) == (verdict, code)
    assert (found.value, found.baseline_value) == (TOTAL - len(candidate), TOTAL - len(pinned))
    json.dumps(found.details, allow_nan=False)


wrong = st.dictionaries(st.integers(0, 30), st.integers(2, 4), max_size=4)


@given(wrong, wrong)
def test_it_is_as_if_each_query_were_looked_at(candidate: dict[int, int], pinned: dict[int, int]) -> None:
    found = compared(draw(wrong=candidate), draw(wrong=pinned)).verdict
    pairs = [(candidate.get(index, 1), pinned.get(index, 1)) for index in range(TOTAL)]
    if any(own != 1 and other == 1 for own, other in pairs):
        assert found is Verdict.REGRESSED
    elif any(own == 1 and other != 1 for own, other in pairs):
        assert found is Verdict.IMPROVED
    else:
        assert found is (Verdict.OK if all(own == other for own, other in pairs) else Verdict.INCONCLUSIVE)


def test_a_replay_that_differs_is_worse_though_all_predictions_are_right() -> None:
    found = compared(draw(replays_equal_eager=(True, False, True)))
    assert (found.verdict, found.reason_code) == (Verdict.REGRESSED, "replay_differs")
    assert "replay 1" in found.reason
    better = compared(draw(replays_equal_eager=(True, False, True)), draw(wrong={1: 2}))
    assert better.verdict is Verdict.REGRESSED


def test_what_the_emulator_finds_is_worse_and_says_the_line() -> None:
    refused = ComparedPredictions((0, 1), (), (), emulated=(not_run(RACE), draw(1)))
    found = judge_predictions(refused)
    assert (found.verdict, found.reason_code) == (Verdict.REGRESSED, "race")
    assert found.reason == f"on the emulator, draw 0: {RACE.message}"
    assert [one["code"] for one in found.details["findings"]] == ["race"]  # not also that nothing ran on the device
    assert compared(draw(), emulated=(not_run(RACE),)).verdict is Verdict.REGRESSED


def test_what_only_the_emulator_predicts_otherwise_is_worse() -> None:
    found = compared(draw(), emulated=(draw(wrong={7: 3}),))
    assert (found.verdict, found.reason_code) == (Verdict.REGRESSED, "newly_wrong")
    assert compared(draw(wrong={7: 3}), draw(wrong={7: 3}), emulated=(draw(wrong={7: 3}),)).verdict is Verdict.OK


def test_a_finding_on_the_device_itself_is_the_candidates() -> None:
    """The emulated device: there is nothing before it. Inputs are frozen, so what is bad is the kernel."""
    assert compared(not_run(RACE)).verdict is Verdict.REGRESSED
    singular = Problem("bad_input", "singular_class", "class 3")
    assert compared(not_run(singular)).reason_code == "singular_class"


@pytest.mark.parametrize(
    ("candidate", "pinned", "verdict", "code"),
    [
        (not_run(LOST), None, Verdict.INVALID, "device_lost"),
        (not_run(None), None, Verdict.REGRESSED, "draw_missing"),
        (draw(), not_run(LOST), Verdict.INVALID, "pinned_not_run"),
        (draw(replays_equal_eager=()), None, Verdict.INVALID, "no_replays"),
        (draw(), draw(total=999, agreed=999), Verdict.INVALID, "total_changed"),
        (draw(agreed=998), None, Verdict.INVALID, "impossible_counts"),
        (draw(), draw(agreed=998), Verdict.INVALID, "impossible_counts"),
        (draw(predictions_sha256="other"), None, Verdict.REGRESSED, "predictions_changed"),
        (draw(problem=LOST), None, Verdict.INVALID, "device_lost"),
        (draw(wrong={1: 2}, problem=LOST), None, Verdict.REGRESSED, "newly_wrong"),
    ],
)
def test_what_cannot_be_used_is_neither_fine_nor_worse(
    candidate: DrawResult, pinned: DrawResult | None, verdict: Verdict, code: str
) -> None:
    found = compared(candidate, pinned)
    assert (found.verdict, found.reason_code) == (verdict, code)


def test_a_draw_without_any_result_is_never_fine() -> None:
    both = replace(ComparedPredictions((0, 1), (draw(0),), (draw(0), draw(1))))
    assert (judge_predictions(both).verdict, judge_predictions(both).reason_code) == (Verdict.INVALID, "draw_missing")
    lost = judge_predictions(replace(both, problem=LOST))
    assert (lost.verdict, lost.reason_code) == (Verdict.INVALID, "device_lost")
    assert judge_predictions(replace(both, candidate=(draw(0), draw(1)), pinned=(draw(0),))).verdict is Verdict.INVALID
    assert judge_predictions(ComparedPredictions((), (), ())).verdict is Verdict.INVALID
    assert judge_predictions(ComparedPredictions((), (), (), problem=LOST)).reason_code == "device_lost"
    alone = judge_predictions(ComparedPredictions((0,), (draw(),), problem=LOST))
    assert (alone.verdict, alone.reason_code) == (Verdict.INVALID, "device_lost")


def test_alone_it_is_held_against_the_frozen_predictions() -> None:
    found = judge_predictions(ComparedPredictions((0,), (draw(),)))
    assert (found.verdict, found.baseline_value) == (Verdict.OK, None)
    assert found.reason == "1000 of 1000 predictions on 1 draw are the frozen ones"
    found = judge_predictions(ComparedPredictions((0,), (draw(wrong={3: 2}),)))
    assert found.verdict is Verdict.REGRESSED
    assert "not as frozen" in found.reason


def differing(*gaps: float | None) -> tuple[Differing, ...]:
    return tuple(Differing(0, index, 2, 1, 1, None, None, gap) for index, gap in enumerate(gaps))


@pytest.mark.parametrize(
    ("gaps", "text"),
    [
        ((7e-4,), "scores 0.0007 apart: rounding may have chosen either"),
        ((7e-4, -2e-5), "scores 2e-05 to 0.0007 apart: rounding may have chosen either"),
        ((2.5, 0.3), "scores 0.3 to 2.5 apart: not rounding"),
        ((7e-4, 3.0), "scores 0.0007 to 3 apart, 1 of 2 within 0.001: not rounding alone"),
        ((1e-3,), "scores 0.001 apart: rounding may have chosen either"),
        ((1.1e-3, None), "scores 0.0011 apart: not rounding"),
        ((None, math.nan), ""),
        ((), ""),
    ],
)
def test_the_gap_says_whether_it_may_be_rounding(gaps: tuple[float | None, ...], text: str) -> None:
    assert gap_text(differing(*gaps)) == text


def test_the_reason_says_what_the_gap_says() -> None:
    found = compared(draw(wrong={3: 2}), differing=differing(2.5), differing_total=1)
    assert found.reason == (
        "draw 0: 1 of 1000 predictions wrong that the pinned kernel has right; scores 2.5 apart: not rounding"
    )
    both_wrong = Differing(0, 3, 2, 2, 1, None, None, 5.0)  # the same class in both: no difference between the two
    assert gap_text([both_wrong]) == ""


def test_three_of_the_original_queries_could_be_told_apart_by_rounding() -> None:
    """What the bound rests on: the nearest two best scores of the frozen draws."""
    gaps = []
    for number in range(11):
        drawn = Payload("original", get_workload("qda")).load(number)
        best = np.sort(scores(train(drawn.x, drawn.labels), drawn.q), axis=1)
        gaps.append(best[:, -1] - best[:, -2])
    found = np.concatenate(gaps)
    assert found.min() == pytest.approx(6.7e-4, rel=0.01)
    assert [int((found <= bound).sum()) for bound in (ROUNDING_GAP, 0.01, 0.1)] == [3, 43, 347]
