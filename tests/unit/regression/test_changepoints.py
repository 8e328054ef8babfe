"""Change points: dates, sizes, what they add up to, and everything that must not be one."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regression.detectors.changepoints import ChangePointSettings, change_points, difference_noise, partition
from regression.detectors.series import Figure, Metric, Series, of_values

TIME = Metric("wall_time_per_replay", "ms", relative_floor=0.01)
PLAIN = ChangePointSettings(robust=False)


def series(values: np.ndarray | list[float], metric: Metric = TIME) -> Series:
    return of_values(metric, 20_000 + np.arange(len(values)), map(float, values))


def steps(seed: int, *changes: tuple[int, float], count: int = 240) -> np.ndarray:
    made = 100 + np.random.default_rng(seed).normal(size=count)
    for first, percent in changes:
        made[first:] += percent
    return made


@pytest.mark.parametrize("settings", [PLAIN, ChangePointSettings()])
def test_steps_are_dated_within_a_night_or_two(settings: ChangePointSettings) -> None:
    off = []
    for seed in range(40):
        found = change_points(series(steps(seed, (80, 3.0), (160, -4.0))), settings)
        assert len(found) == 2, seed
        off += [abs(found[0].index - 80), abs(found[1].index - 160)]
    assert np.mean(np.array(off) <= 2) >= 0.95
    assert np.median(off) == 0


def test_the_interval_of_the_date_holds_it_as_often_as_it_says() -> None:
    held = []
    for seed in range(60):
        (found,) = change_points(series(steps(seed, (80, 2.0), count=160)))
        held.append(found.earliest[:10] <= "2024-12-23" <= found.latest[:10])
        assert found.earliest <= found.time <= found.latest
    assert np.mean(held) >= 0.9


def test_a_change_has_date_levels_and_the_sum_since_the_first_level() -> None:
    """asv 932: 4 % and 4 %."""
    made = steps(1, (80, 4.0), (160, 4.16))
    one, other = change_points(series(made))
    assert one.time == "2024-12-23T00:00:00+00:00"
    assert (one.relative, other.relative) == (pytest.approx(0.04, abs=0.005), pytest.approx(0.04, abs=0.005))
    assert other.since_first == pytest.approx(0.0816, abs=0.006)
    assert one.after == pytest.approx(other.before, abs=0.3)
    json.dumps([point.as_json() for point in (one, other)])


def test_a_wild_first_night_is_not_the_first_level() -> None:
    made = steps(1, (80, 4.0), (160, 4.16))
    made[0] = 130
    assert change_points(series(made))[-1].since_first == pytest.approx(0.0816, abs=0.006)


@pytest.mark.parametrize("phi", [0.0, 0.6])
def test_an_unchanged_history_has_none(phi: float) -> None:
    found = 0
    for seed in range(40):
        rng, made = np.random.default_rng(seed), np.zeros(365)
        for night in range(1, 365):
            made[night] = phi * made[night - 1] + rng.normal() * (1 - phi**2) ** 0.5
        found += len(change_points(series(100 + made)))
    assert found <= 4


def test_a_wild_night_is_no_change_for_the_robust_and_two_for_the_plain() -> None:
    made = steps(3)
    made[100] = 130
    assert change_points(series(made)) == ()
    assert [point.index for point in change_points(series(made), PLAIN)] == [100, 101]


def test_changes_below_the_floor_are_left_out() -> None:
    made = steps(4, (80, 3.0))
    assert len(change_points(series(made))) == 1
    assert change_points(series(made, replace(TIME, relative_floor=0.05))) == ()
    assert change_points(series(made, replace(TIME, absolute_floor=5.0))) == ()


def test_a_small_change_gives_way_and_the_large_one_beside_it_stays() -> None:
    made = steps(4, (80, 3.0), (160, 12.0))
    found = change_points(series(made, replace(TIME, relative_floor=0.05)))
    assert [point.index for point in found] == [160]
    assert found[0].before == pytest.approx(101.5, abs=1)


def test_constant_series_have_none_and_a_step_between_constants_one() -> None:
    """elasticsearch 97588."""
    assert change_points(series([5.0] * 50)) == ()
    (found,) = change_points(series([5.0] * 50 + [5.2] * 10))
    assert (found.index, found.before, found.after) == (50, 5.0, 5.2)


def test_too_short_or_empty_histories_have_none() -> None:
    for count in (0, 1, 2):
        assert change_points(series([1.0] * count)) == ()


def test_missing_figures_do_not_move_the_dates() -> None:
    """ruptures 122 and 318."""
    made = steps(5, (80, 4.0))
    whole = change_points(series(made))
    holes = [float("nan") if n in (20, 79, 140) else v for n, v in enumerate(made)]
    found = change_points(series(holes))
    assert [point.time for point in found] == [point.time for point in whole]


@given(st.permutations(range(30)), st.lists(st.integers(0, 3), min_size=30, max_size=30))
@settings(max_examples=60, deadline=None)
def test_order_does_not_matter_ties_are_kept_and_no_date_comes_twice(order: list[int], gaps: list[int]) -> None:
    """sage 35046, Horreum 2267 and 209."""
    made, days = steps(6, (15, 6.0), count=30), 20_000 + np.cumsum(gaps)
    figures = of_values(TIME, days.astype(float), map(float, made)).figures
    found = change_points(Series(TIME, tuple(figures[n] for n in order)))
    assert found == change_points(Series(TIME, figures))
    assert all(one.index < other.index for one, other in pairwise(found))
    assert all(isinstance(figure, Figure) for figure in figures)


def brute_force(values: np.ndarray, penalty: float) -> float:
    """Least cost over all ways to cut."""
    count = len(values)
    best = [-penalty] + [0.0] * count
    for end in range(1, count + 1):
        best[end] = min(best[s] + float(np.var(values[s:end]) * (end - s)) + penalty for s in range(end))
    return best[count]


@given(st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=25), st.sampled_from([0.5, 3.0, 20.0]))
@settings(deadline=None)
def test_the_partition_is_the_best_there_is(values: list[float], penalty: float) -> None:
    made = np.array(values)
    edges = [0, *partition(made, penalty), len(made)]
    cost = sum(float(np.var(made[a:b]) * (b - a)) + penalty for a, b in pairwise(edges)) - penalty
    assert cost == pytest.approx(brute_force(made, penalty), abs=1e-8)


def test_the_noise_is_measured_through_changes() -> None:
    scale, phi = difference_noise(steps(7, (60, 30.0), (150, -60.0), count=1000))
    assert (scale, phi) == (pytest.approx(1, abs=0.1), pytest.approx(0, abs=0.15))


def test_ten_years_are_cut_like_one() -> None:
    made = steps(8, (1000, 3.0), (3000, -3.0), count=3650)
    assert [abs(p.index - at) <= 3 for p, at in zip(change_points(series(made)), (1000, 3000), strict=True)] == [
        True
    ] * 2
