"""Quantiles against scipy's, and widths of sums of errors against their definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gpu_tasks.energy.quantiles import detectable_difference, half_width_95, t_quantile


@settings(deadline=None)
@given(st.floats(1, 290), st.floats(0.55, 0.999))
def test_t_is_scipys(freedom: float, probability: float) -> None:
    assert t_quantile(probability, freedom) == pytest.approx(stats.t.ppf(probability, freedom), rel=2e-4)


@pytest.mark.parametrize("freedom", [None, 1e6])
def test_without_or_with_very_many_degrees_of_freedom_it_is_normal(freedom: float | None) -> None:
    assert t_quantile(0.975, freedom) == pytest.approx(1.959964, abs=1e-6)


@pytest.mark.parametrize(("probability", "freedom"), [(0.5, 3.0), (1.0, 3.0), (0.2, None), (0.9, 0.5)])
def test_what_it_is_not_made_for_is_refused(probability: float, freedom: float | None) -> None:
    with pytest.raises(ValueError, match="expected"):
        t_quantile(probability, freedom)


def test_seven_rounds_find_1_63_standard_deviations() -> None:
    """The figure that the energy notes of the project give."""
    assert detectable_difference(1.0, 7) == pytest.approx(1.631, abs=5e-4)
    assert detectable_difference(0.006, 7) == pytest.approx(0.0098, abs=1e-4)
    assert detectable_difference(1.0, 1) is None


def test_one_uniform_error_reaches_95_percent_of_its_box() -> None:
    assert half_width_95([2.0], 0.0) == pytest.approx(1.9, rel=5e-3)


def test_nothing_is_no_width() -> None:
    assert half_width_95([], 0.0) == 0.0
    assert half_width_95([0.0, 0.0], 0.0) == 0.0


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(0.01, 5), max_size=6), st.just(0.0) | st.floats(0.01, 3), st.integers(0, 2**31))
def test_the_width_holds_95_percent_of_draws(halves: list[float], sd: float, seed: int) -> None:
    if not halves and sd == 0:
        return
    rng = np.random.default_rng(seed)
    draws = rng.normal(0, sd, 40_000) + sum(rng.uniform(-half, half, 40_000) for half in halves)
    inside = np.mean(np.abs(draws) <= half_width_95(halves, sd))
    assert math.isclose(inside, 0.95, abs_tol=0.012)
