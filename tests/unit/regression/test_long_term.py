"""Shift and drift as one verdict: the worse of the two, and the figures that are held against their history."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from regression.detectors.drift import DriftSettings, slow_drift
from regression.detectors.history import HistorySettings, shared_threshold
from regression.detectors.long_term import (
    ADJUSTED,
    CUDA,
    GROSS,
    IDLE,
    METRICS,
    judge_both,
    judge_long_term,
    looked_at,
)
from regression.detectors.series import HIGHER, Metric, Series, of_values, usable_nights
from regression.detectors.verdict import Verdict

TIME = Metric("cuda_time_per_replay", "ms")
NOISE = np.random.default_rng(11).normal(size=400)


def series(values: np.ndarray | list[float | None], metric: Metric = TIME) -> Series:
    return of_values(metric, 20_000 + np.arange(len(values)), [None if v is None else float(v) for v in values])


def test_the_check_has_the_name_it_is_given_and_says_who_told_what() -> None:
    found = judge_long_term("time_history", series(100 + NOISE[:200]))
    assert (found.check, found.verdict, found.reason_code) == ("time_history", Verdict.OK, "no_shift")
    assert (found.details["detector"], found.details["other"]["reason_code"]) == ("history", "no_drift")
    json.dumps(found.details, allow_nan=False)


def test_a_step_is_told_by_the_shift_which_knows_since_when() -> None:
    made = 100 + NOISE[:200]
    made[-5:] += 5
    found = judge_long_term("c", series(made))
    assert (found.verdict, found.details["detector"], found.details["nights_since"]) == (
        Verdict.REGRESSED,
        "history",
        5,
    )


def test_a_creep_that_no_shift_is_told_of_is_told_by_the_drift() -> None:
    """asv 932: 4 % and 4 % again, under a gate of 5 %."""
    made = 100 + NOISE
    made[60:] *= 1.04
    made[320:] *= 1.04
    found = judge_long_term("c", series(made, replace(TIME, relative_floor=0.05)))
    assert (found.check, found.verdict, found.direction) == ("c", Verdict.REGRESSED, HIGHER)
    assert (found.details["detector"], found.details["other"]["verdict"]) == ("drift", "ok")


def test_worse_outweighs_better_and_a_small_certain_change_an_unseen_one() -> None:
    """asv 752: what is significant is shown, though it is below the floor."""
    made = 100 + NOISE
    made[:60] -= 8
    made[-4:] -= 6
    up = judge_long_term("c", series(made))
    assert up.details["detector"] == "drift"
    assert (up.verdict, up.details["other"]["verdict"]) == (Verdict.REGRESSED, "improved")
    made = 100 + NOISE
    made[60:] += 3
    small = judge_long_term("c", series(made, replace(TIME, relative_floor=0.05)))
    assert (small.details["detector"], small.reason_code) == ("drift", "below_floor")


@pytest.mark.parametrize(
    ("nights", "code"), [(12, "short_history"), (13, "no_shift"), (15, "no_shift"), (16, "no_shift")]
)
def test_a_history_that_is_long_enough_for_one_of_the_two_is_judged(nights: int, code: str) -> None:
    found = judge_long_term("c", series(100 + NOISE[:nights]))
    assert found.reason_code == code
    assert found.details["detector"] == "history"


def test_no_figure_tonight_is_invalid_whatever_came_before() -> None:
    assert judge_long_term("c", series([*(100 + NOISE[:60]), None])).verdict is Verdict.INVALID


def test_settings_reach_both() -> None:
    made = 100 + NOISE[:200]
    made[-2:] += 2.5
    assert judge_long_term("c", series(made)).verdict is Verdict.OK
    assert judge_long_term("c", series(made), HistorySettings(threshold=2.0)).verdict is Verdict.REGRESSED
    made = 100 + NOISE[:200]
    made[-9:] += 0.25 * np.arange(9)
    assert judge_long_term("c", series(made)).verdict is Verdict.OK
    deaf, keen = HistorySettings(threshold=8.0), DriftSettings(threshold=1.5)
    assert judge_long_term("c", series(made), deaf, keen).verdict is Verdict.REGRESSED


def test_the_floor_of_a_meter_is_its_step_over_the_replays() -> None:
    assert CUDA.over(1000).absolute_floor == pytest.approx(2 * 0.0005 / 1000)
    assert ADJUSTED.over(50_000).absolute_floor == pytest.approx(2 / 50_000)
    assert CUDA.over(None) == CUDA.metric
    assert IDLE.over(1000) == IDLE.metric
    assert IDLE.metric.absolute_floor == 1.0


def test_every_figure_has_a_check_and_a_side_that_is_worse() -> None:
    """github-action-benchmark 366; adjusted energy may be negative and is no failed measurement."""
    assert [m.check for m in METRICS] == [
        "energy_history",
        "gross_energy_history",
        "idle_power_history",
        "time_history",
        "wall_time_history",
    ]
    assert {m.metric.worse for m in METRICS} == {HIGHER}
    assert [m.check for m in METRICS if not m.metric.positive] == ["energy_history"]


# Two figures of one energy


def trials(aligned: np.ndarray | list[float | None], own: np.ndarray) -> tuple[Series, Series]:
    plain, sharper = (one.metric for one in looked_at(ADJUSTED, "trial"))
    return series(own, plain), series(aligned, sharper)


def test_a_protocol_that_scatters_is_judged_by_two_figures_and_any_other_by_one() -> None:
    own, sharper = looked_at(ADJUSTED, "trial")
    assert (own.figure, sharper.figure, sharper.check) == (None, "aligned", "energy_history")
    assert (own.metric.looks, sharper.metric.looks) == (2, 2)
    assert own.metric.name != sharper.metric.name
    assert looked_at(ADJUSTED, "audited") == (ADJUSTED,)
    assert looked_at(GROSS, "trial") == (GROSS,)


SCATTER = np.random.default_rng(5).normal(size=80)


def test_what_the_own_figure_overlooks_is_told_by_the_sharper_one() -> None:
    board = 1133 * (1 + 0.002 * NOISE[:80])
    own = board - 64 + 40 * SCATTER
    assert judge_both("c", *trials(board, own), "trial").verdict is Verdict.OK
    more = np.append(np.ones(78), [1.03, 1.03])
    found = judge_both("c", *trials(board * more, own * more), "trial")
    assert (found.check, found.verdict, found.reason_code) == ("c", Verdict.REGRESSED, "shift_higher")
    assert (found.metric, found.unit, found.details["figure"]) == ("adjusted_energy_per_replay", "mJ", "aligned")
    assert found.reason.startswith("aligned energy 11")
    assert found.reason.endswith(f"; trial alone: ok, {own[-1] * 1.03:.4g} mJ")
    json.dumps(found.details, allow_nan=False)


def test_what_only_the_own_figure_shows_is_told_too() -> None:
    board, own = 1133 * (1 + 0.002 * NOISE[:80]), 1069 * (1 + 0.01 * SCATTER)
    own[-3:] *= 1.2
    found = judge_both("c", *trials(board, own), "trial")
    assert (found.verdict, found.details["figure"], found.details["other_figure"]["verdict"]) == (
        Verdict.REGRESSED,
        "trial",
        "ok",
    )


@pytest.mark.parametrize(
    ("aligned", "beside"),
    [
        ([None] * 80, ""),
        ([*[None] * 75, *[1133.0] * 5], "; aligned not judged yet: short_history"),
        ([*[None] * 40, 1133.0, *[None] * 39], "; aligned not judged yet: no_figure"),
        ([*[None] * 67, *[1133.0] * 12, None], "; aligned not judged yet: no_figure"),
    ],
)
def test_without_a_history_of_the_sharper_figure_the_own_one_is_judged_as_if_it_were_alone(
    aligned: list[float | None], beside: str
) -> None:
    own = 1069 * (1 + 0.01 * SCATTER)
    own[-1] *= 1.05
    found = judge_both("c", *trials(aligned, own), "trial")
    alone = judge_long_term("c", series(own, ADJUSTED.metric))
    assert found.reason == alone.reason + beside
    assert (found.verdict, found.details["threshold"]) == (Verdict.REGRESSED, alone.details["threshold"])


def test_a_sharper_figure_that_is_gone_tonight_is_never_fine() -> None:
    board = [*(1133 * (1 + 0.002 * NOISE[:79])), None]
    found = judge_both("c", *trials(board, 1069 * (1 + 0.01 * SCATTER)), "trial")
    assert (found.verdict, found.reason_code) == (Verdict.INVALID, "no_figure")


def test_a_figure_that_is_gone_does_not_hide_that_the_other_one_regressed() -> None:
    board = [*[None] * 66, *(1133 * (1 + 0.002 * NOISE[:13])), None]
    own = 1069 * (1 + 0.01 * SCATTER)
    own[-1] *= 1.3
    found = judge_both("c", *trials(board, own), "trial")
    assert (found.verdict, found.reason_code, found.details["figure"]) == (Verdict.REGRESSED, "shift_higher", "trial")
    assert (found.details["other_figure"]["verdict"], found.reason[-24:]) == ("invalid", "; aligned alone: invalid")
    own[-1] = np.nan
    both = 1133 * (1 + 0.002 * NOISE[:80])
    both[-1] *= 1.3
    found = judge_both("c", *trials(both, own), "trial")
    assert (found.verdict, found.details["figure"]) == (Verdict.REGRESSED, "aligned")
    both[-1] /= 1.3 * 1.3
    assert judge_both("c", *trials(both, own), "trial").verdict is Verdict.INVALID, "a better one is no reason to sleep"


def test_two_looks_have_the_threshold_that_each_may_be_wrong_half_as_often_at() -> None:
    assert shared_threshold(3.86, 1) == 3.86
    assert shared_threshold(3.86, 2) == pytest.approx(4.026, abs=0.001)
    made = 100 + NOISE[:200]
    thresholds = [judge_long_term("c", series(made, replace(TIME, looks=n))).details["threshold"] for n in (1, 2)]
    assert thresholds[1] - thresholds[0] == pytest.approx(0.166, abs=0.001)
    drifts = [slow_drift(replace(TIME, looks=n), usable_nights(series(made))).details["threshold"] for n in (1, 2)]
    assert drifts[1] - drifts[0] == pytest.approx(0.158, abs=0.001)
