"""History shift: named scenarios of other trackers, both directions, floors, short and constant histories."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regression.detectors.history import HistorySettings, Shift, judge_history, worse_of
from regression.detectors.series import HIGHER, LOWER, Figure, Metric, Series, of_values
from regression.detectors.verdict import Verdict

TIME = Metric("wall_time_per_replay", "ms", relative_floor=0.01)
RATE = replace(TIME, name="power", unit="W", worse=LOWER)
FIRST = 20_000.0
QUIET = np.append(100 + np.random.default_rng(7).normal(size=192), [100.5, 99.5, 100.2, 99.8] * 2)


def series(values: np.ndarray | list[float | None], metric: Metric = TIME) -> Series:
    return of_values(metric, FIRST + np.arange(len(values)), [None if v is None else float(v) for v in values])


def shifted(percent: float, nights: int = 5) -> np.ndarray:
    made = QUIET.copy()
    made[-nights:] += percent
    return made


def test_an_unchanged_history_is_ok_and_says_what_would_have_gone_unseen() -> None:
    found = judge_history(series(QUIET))
    assert (found.verdict, found.reason_code, found.direction) == (Verdict.OK, "no_shift", None)
    assert "no shift, though one of less than " in found.reason
    assert found.baseline_value == pytest.approx(100, abs=0.3)
    assert found.details["reference_nights"] == 180


def test_a_step_is_told_with_size_date_and_usual_figure() -> None:
    found = judge_history(series(shifted(4.0)))
    assert (found.verdict, found.reason_code, found.direction) == (Verdict.REGRESSED, "shift_higher", HIGHER)
    assert found.details["size"] == pytest.approx(4, abs=0.5)
    assert (found.details["since"], found.details["nights_since"]) == ("2025-04-17T00:00:00+00:00", 5)
    assert found.details["statistic"] > found.details["threshold"]
    assert "higher since 2025-04-17 (5 nights), " in found.reason


@pytest.mark.parametrize(
    ("metric", "percent", "verdict"),
    [
        (TIME, 4, Verdict.REGRESSED),
        (TIME, -4, Verdict.IMPROVED),
        (RATE, 4, Verdict.IMPROVED),
        (RATE, -4, Verdict.REGRESSED),
    ],
)
def test_the_direction_belongs_to_the_metric(metric: Metric, percent: float, verdict: Verdict) -> None:
    """github-action-benchmark 366."""
    assert judge_history(series(shifted(percent), metric)).verdict is verdict


@pytest.mark.parametrize(("relative", "absolute"), [(0.08, 0.0), (0.0, 8.0), (0.01, 8.0), (0.08, 0.1)])
def test_both_floors_are_needed_and_a_change_below_one_is_still_shown(relative: float, absolute: float) -> None:
    """asv 752: significant, and shown, though small."""
    found = judge_history(series(shifted(5), replace(TIME, relative_floor=relative, absolute_floor=absolute)))
    assert (found.verdict, found.reason_code, found.direction) == (Verdict.OK, "below_floor", HIGHER)
    assert "higher since 2025-04-17 (5 nights), less than the floor of " in found.reason
    assert found.details["floor"] == pytest.approx(8, abs=0.1)
    floor = replace(TIME, relative_floor=relative / 4, absolute_floor=absolute / 4)
    assert judge_history(series(shifted(5), floor)).verdict is Verdict.REGRESSED


@pytest.mark.parametrize("count", [1, 2, 12])
def test_a_second_point_is_never_a_change(count: int) -> None:
    """orion 263 and 269."""
    found = judge_history(series([1.0] * (count - 1) + [9.0]))
    assert (found.verdict, found.reason_code) == (Verdict.INCONCLUSIVE, "short_history")
    assert f"{count} usable {'night' if count == 1 else 'nights'}, 13 needed" in found.reason


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_no_figure_tonight_is_invalid(value: float | None) -> None:
    """base/benchmark 109, foundry 15720."""
    found = judge_history(series([*QUIET, value]))
    assert (found.verdict, found.reason_code, found.value) == (Verdict.INVALID, "no_figure", None)
    assert judge_history(Series(TIME, ())).verdict is Verdict.INVALID


def test_a_history_of_nan_is_said_and_not_judged() -> None:
    """orion 207."""
    found = judge_history(series([math.nan] * 100 + [5.0]))
    assert (found.verdict, found.reason_code) == (Verdict.INCONCLUSIVE, "short_history")
    assert "left out: 100 not finite" in found.reason


@pytest.mark.parametrize("missing", [None, math.nan, math.inf])
@pytest.mark.parametrize("percent", [0.0, 5.0])
def test_nan_is_dropped_and_the_answer_is_as_if_the_night_had_not_been(missing: float | None, percent: float) -> None:
    """ruptures 122 and 318, Otava: one NaN blinds it."""
    made = shifted(percent)
    for at in (0, 100, 180, 197):
        with_hole, days = [*made[:at], missing, *made[at + 1 :]], FIRST + np.arange(200)
        without = of_values(TIME, np.delete(days, at), np.delete(made, at))
        one, other = judge_history(series(with_hole)), judge_history(without)
        assert one.verdict is other.verdict is (Verdict.REGRESSED if percent else Verdict.OK)
        assert {**one.details, "dropped": {}} == other.details
        assert sum(one.details["dropped"].values()) == 1


def test_all_values_equal_is_stationary() -> None:
    """elasticsearch 97588."""
    for value in (5.0, 1e-9, 1e12):
        assert judge_history(series([value] * 60)).verdict is Verdict.OK


@pytest.mark.parametrize(("after", "verdict"), [(5.2, Verdict.REGRESSED), (4.8, Verdict.IMPROVED), (5.04, Verdict.OK)])
def test_a_constant_series_and_then_a_step_is_told_on_its_first_night(after: float, verdict: Verdict) -> None:
    found = judge_history(series([5.0] * 60 + [after]))
    assert (found.verdict, found.details["nights_since"]) == (verdict, 1)
    later = judge_history(series([5.0] * 60 + [after] * 4))
    assert (later.verdict, later.details["nights_since"]) == (verdict, 4)
    assert judge_history(series([5.0] * 60 + [after, 5.0])).verdict is Verdict.OK


def test_values_that_differ_in_their_last_digits_only_are_equal() -> None:
    made = [0.3, 0.1 + 0.2] * 30
    found = judge_history(series(made, replace(TIME, relative_floor=0.0)))
    assert (found.verdict, found.details["scale"], found.details["statistic"]) == (Verdict.OK, 0.0, None)


def test_quantised_values_with_one_odd_night_neither_crash_nor_alert() -> None:
    made = [5.0] * 40 + [5.1] + [5.0] * 40
    assert judge_history(series(made)).verdict is Verdict.OK
    assert judge_history(series([*made, 5.01])).verdict is Verdict.OK


def test_an_outlier_night_does_not_make_the_normal_nights_after_it_changes() -> None:
    """Horreum 2305."""
    made = np.concatenate([QUIET, 100 + np.random.default_rng(8).normal(0, 0.5, 12)])
    made[200] = 130
    assert judge_history(series(made[:201])).verdict is Verdict.REGRESSED
    for night in range(203, 213):
        assert judge_history(series(made[:night])).verdict is Verdict.OK, night


def test_wild_nights_in_the_history_neither_hide_a_step_nor_make_one() -> None:
    made = shifted(4.0, 6)
    made[[20, 60, 100, 140, 170]] += [15, -12, 20, 18, -25]
    assert judge_history(series(made)).direction == HIGHER
    made[-6:] -= 4
    assert judge_history(series(made)).verdict is Verdict.OK


def test_one_repetition_a_night_is_judged_too() -> None:
    """conbench 1583: the figure is all that is needed."""
    assert judge_history(series(shifted(6.0))).verdict is Verdict.REGRESSED


def test_a_worse_night_after_the_same_code_is_the_same_at_the_stated_rate() -> None:
    """nvbench 316: two and a half standard deviations more is no change."""
    assert judge_history(series([*QUIET, 102.5])).verdict is Verdict.OK


def test_correlated_nights_need_more_to_be_a_change() -> None:
    rng, made = np.random.default_rng(5), np.zeros(260)
    for night in range(1, 260):
        made[night] = 0.7 * made[night - 1] + rng.normal() * 0.51**0.5
    found = judge_history(series(100 + made))
    assert found.details["phi"] > 0.5
    same = judge_history(series(100 + rng.permutation(made)))
    assert same.details["phi"] < 0.25


def test_correlated_nights_let_a_smaller_first_night_be_seen() -> None:
    """What a night should be is known from the one before; in units of all nights' spread less is then a surprise."""
    rng, made = np.random.default_rng(5), np.zeros(260)
    for night in range(1, 260):
        made[night] = 0.8 * made[night - 1] + rng.normal() * 0.6
    found = judge_history(series(100 + made, replace(TIME, relative_floor=0.0)))
    unseen = float(found.reason.partition("one of less than ")[2].split()[0])
    phi, scale = found.details["phi"], found.details["scale"]
    assert unseen == pytest.approx(3.92 * scale * (1 - phi**2) ** 0.5, rel=0.08)


def test_only_what_is_within_reach_counts() -> None:
    """Ten years are judged like the last two hundred nights."""
    old = np.concatenate([np.full(3000, 500.0), QUIET])
    old_found, found = judge_history(series(old)), judge_history(series(QUIET))
    assert old_found.details["location"] == found.details["location"]
    assert old_found.details["statistic"] == pytest.approx(found.details["statistic"])


@pytest.mark.parametrize(("count", "reference"), [(13, 12), (20, 16), (60, 48), (200, 180), (400, 180)])
def test_the_newest_fifth_and_twenty_nights_at_most_are_under_judgement(count: int, reference: int) -> None:
    made = 100 + np.random.default_rng(9).normal(size=count)
    assert judge_history(series(made)).details["reference_nights"] == reference


def test_one_night_and_an_old_onset_need_more_evidence() -> None:
    found = HistorySettings().thresholds(20)
    assert found[[-1, -2, -6, -7, 0]] == pytest.approx([3.92, 3.86, 3.86, 3.90, 3.86 + 14 * 0.04])


def test_evidence_for_one_side_and_nights_on_the_other_are_no_change() -> None:
    shift = Shift("2026-01-01", 3, 1.0, 5.0, 3.9)
    assert shift.found()
    assert not replace(shift, size=-1.0).found()
    assert not replace(shift, statistic=3.8).found()
    assert replace(shift, size=-1.0, statistic=-5.0).found()


def test_what_may_go_unseen_is_what_the_noise_hides_and_what_the_floor_leaves_out() -> None:
    unseen = []
    for floor in (0.0, 0.01, 0.08):
        reason = judge_history(series(QUIET, replace(TIME, relative_floor=floor))).reason
        unseen.append(float(reason.partition("one of less than ")[2].split()[0]))
    assert 3.5 < unseen[0] == unseen[1] < 5
    assert unseen[2] == pytest.approx(8, abs=0.05)


def test_of_two_looks_the_worse_is_told_and_of_two_alike_the_first() -> None:
    base = judge_history(series(QUIET))
    order = [Verdict.INCONCLUSIVE, Verdict.OK, Verdict.IMPROVED, Verdict.REGRESSED, Verdict.INVALID]
    looks = [replace(base, verdict=verdict) for verdict in order]
    for place, look in enumerate(looks):
        assert all(worse_of(look, other) is looks[max(place, n)] for n, other in enumerate(looks))
    small, again = replace(base, reason_code="below_floor"), replace(base)
    assert worse_of(base, small) is worse_of(small, base) is small
    assert worse_of(base, again) is base


def test_a_higher_threshold_asks_for_more() -> None:
    made = series(shifted(3.0, 2))
    assert judge_history(made, HistorySettings(threshold=2.5)).verdict is Verdict.REGRESSED
    assert judge_history(made, HistorySettings(threshold=6.0)).verdict is Verdict.OK


@given(
    st.lists(st.one_of(st.none(), st.floats(), st.floats(0.5, 2.0)), max_size=60),
    st.randoms(use_true_random=False),
    st.floats(0, 0.2),
)
@settings(max_examples=150, deadline=None)
def test_any_series_gets_a_verdict_that_is_json_and_does_not_depend_on_order(
    values: list[float | None], random: object, floor: float
) -> None:
    made = series(values, replace(TIME, relative_floor=floor))
    found = judge_history(made)
    json.dumps(found.details, allow_nan=False)
    mixed = list(made.figures)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert judge_history(Series(made.metric, tuple(mixed))) == found
    usable = [v for v in values if v is not None and math.isfinite(v) and v > 0]
    if len(usable) < 13:
        assert found.verdict in (Verdict.INVALID, Verdict.INCONCLUSIVE)


@given(st.integers(0, 1000), st.sampled_from(["ns", "us", "s"]))
@settings(max_examples=30, deadline=None)
def test_the_verdict_does_not_depend_on_the_unit(seed: int, unit: str) -> None:
    rng = np.random.default_rng(seed)
    made = 100 + rng.normal(size=60)
    made[-3:] += rng.choice([0, 4])
    factor = {"ns": 1e6, "us": 1e3, "s": 1e-3}[unit]
    plain = series(made)
    other = Series(TIME, tuple(Figure(f.time, (f.value or 0) * factor, unit) for f in plain.figures))
    assert judge_history(other).verdict is judge_history(plain).verdict
