"""Robust estimators: against known values, and against wild nights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regression.detectors.robust import heavy_tail, hodges_lehmann, lag_one, mad_scale, qn_scale

NORMAL = np.random.default_rng(1).normal(10, 2, 4000)[:1500]
values = st.lists(st.integers(-1000, 1000).map(float), min_size=2, max_size=20).map(np.array)


def test_known_values() -> None:
    assert hodges_lehmann(np.array([1.0, 2.0, 10.0])) == 3.75  # of 1, 1.5, 2, 5.5, 6, 10
    # distances 1 2 3 1 2 1, rank C(3, 2) = 3 is 1; four values: 4 / 7.8
    assert qn_scale(np.array([1.0, 2.0, 3.0, 4.0])) == pytest.approx(2.2219 * 4 / 7.8)
    assert mad_scale(np.array([1.0, 2.0, 4.0, 8.0, 100.0])) == pytest.approx(1.4826 * 3)


def test_they_are_consistent_for_normal_values() -> None:
    assert hodges_lehmann(NORMAL) == pytest.approx(10, abs=0.15)
    assert qn_scale(NORMAL) == pytest.approx(2, rel=0.05)
    assert mad_scale(NORMAL) == pytest.approx(2, rel=0.08)


@pytest.mark.parametrize("estimate", [hodges_lehmann, qn_scale, mad_scale])
def test_a_fifth_of_wild_values_moves_them_little(estimate) -> None:  # type: ignore[no-untyped-def]
    wild = NORMAL[:200].copy()
    clean = estimate(wild)
    wild[:40] = 1e6
    assert abs(estimate(wild) - clean) < 1.5


def test_equal_values_have_no_scale_and_mostly_equal_ones_the_standard_deviation() -> None:
    for scale in (qn_scale, mad_scale):
        assert scale(np.full(9, 3.0)) == 0
        mostly = np.array([3.0] * 9 + [4.0])
        assert scale(mostly) == pytest.approx(np.std(mostly), rel=0.06)


@pytest.mark.parametrize("phi", [0.0, 0.4, 0.8])
def test_the_autocorrelation_is_found_and_its_error_stated(phi: float) -> None:
    rng, found = np.random.default_rng(2), []
    for _ in range(60):
        made = np.zeros(400)
        for night in range(1, 400):
            made[night] = phi * made[night - 1] + rng.normal() * (1 - phi**2) ** 0.5
        found.append(lag_one(made[200:], np.ones(199)))
    assert np.mean([estimate for estimate, _ in found]) == pytest.approx(phi, abs=0.04)
    assert np.std([estimate for estimate, _ in found]) == pytest.approx(np.mean([e for _, e in found]), rel=0.35)


def test_only_neighbours_one_step_apart_count() -> None:
    alternating = np.array([1.0, 1.0, -1.0, -1.0] * 10)
    near, _ = lag_one(alternating, np.array([1, 2] * 19 + [1], dtype=float))
    assert near > 0.9
    assert lag_one(alternating[:3], np.ones(2)) == (0.0, 1.0)


def test_two_wild_nights_in_a_row_are_no_correlation() -> None:
    made = np.random.default_rng(6).normal(size=180)
    quiet, _ = lag_one(made, np.ones(179))
    made[90:92] = 40
    assert abs(lag_one(made, np.ones(179))[0] - quiet) < 0.12


def test_of_tails_that_are_about_as_likely_the_heaviest_is_taken() -> None:
    rng = np.random.default_rng(3)
    found = [heavy_tail(rng.standard_t(5, 180)) for _ in range(40)]
    assert np.median([tail for tail, _ in filter(None, found)]) <= 3


def test_heavy_tails_are_seen_and_normal_ones_mostly_left_alone() -> None:
    rng = np.random.default_rng(3)
    heavy = [heavy_tail(rng.standard_t(3, 180)) for _ in range(40)]
    normal = [heavy_tail(rng.normal(size=180)) for _ in range(100)]
    assert sum(found is not None and found[0] <= 5 for found in heavy) >= 36
    assert sum(found is not None for found in normal) <= 10
    assert heavy_tail(np.zeros(20)) is None


@given(values, st.sampled_from([0.125, 0.5, 4.0]), st.integers(-100, 100))
def test_location_and_scale_follow_the_unit(made: np.ndarray, factor: float, shift: int) -> None:
    moved = made * factor + shift
    assert hodges_lehmann(moved) == pytest.approx(hodges_lehmann(made) * factor + shift, rel=1e-6, abs=1e-6)
    assert qn_scale(moved) == pytest.approx(qn_scale(made) * factor, rel=1e-6, abs=1e-6)


def test_the_downward_bias_of_short_series_is_taken_out() -> None:
    rng, found = np.random.default_rng(5), []
    for _ in range(400):
        made = rng.normal(size=100)
        for night in range(1, 100):
            made[night] = 0.4 * made[night - 1] + 0.84**0.5 * made[night]
        found.append(lag_one((made[60:] - np.mean(made[60:])), np.ones(39))[0])
    assert np.mean(found) == pytest.approx(0.4, abs=0.03)
