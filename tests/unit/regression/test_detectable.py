"""The detectable difference: known quantiles, the power of its test and of the rule of nights, samples of odd sizes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from regression.detectors.detectable import detectable_difference
from regression.detectors.energy import RULE
from regression.detectors.spread import compare
from regression.detectors.verdict import Verdict

SEVEN = [float(value) for value in range(7)]
SPREAD = math.sqrt(14 / 3)  # sample standard deviation of SEVEN
finite = st.floats(-1e6, 1e6)
samples = st.lists(finite, min_size=1, max_size=12)


def test_seven_rounds_against_seven_of_equal_spread_show_1_63_standard_deviations() -> None:
    found = detectable_difference(SEVEN, [value + 100 for value in SEVEN])
    assert found == pytest.approx((2.178813 + 0.872609) * math.sqrt(2 / 7) * SPREAD, rel=1e-6)
    assert found == pytest.approx(1.631 * SPREAD, rel=1e-3)


def test_the_record_could_not_have_seen_less_than_94_percent_of_its_median() -> None:
    """Its seven rounds had a standard deviation of 0.0059858 mJ and a median of 0.010379 mJ."""
    record = [value / SPREAD * 0.005985793726324726 for value in SEVEN]
    assert detectable_difference(record, record) == pytest.approx(0.94 * 0.010378672372650355, rel=2e-3)


def test_unequal_spreads_and_sizes_follow_welch() -> None:
    one, other = [0.0, 1.0, 2.0], [0.0, 10.0, 20.0, 30.0]
    parts = [np.var(one, ddof=1) / 3, np.var(other, ddof=1) / 4]
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 2 + parts[1] ** 2 / 3)
    expected = (stats.t.ppf(0.975, freedom) + stats.t.ppf(0.8, freedom)) * math.sqrt(sum(parts))
    assert detectable_difference(one, other) == pytest.approx(expected, rel=1e-9)


def test_a_single_round_is_taken_to_spread_like_the_others() -> None:
    expected = (stats.t.ppf(0.975, 6) + stats.t.ppf(0.8, 6)) * SPREAD * math.sqrt(1 + 1 / 7)
    assert detectable_difference([5.0], SEVEN) == pytest.approx(expected, rel=1e-9)
    assert detectable_difference([5.0], [6.0]) is None
    assert detectable_difference([], SEVEN) is None
    assert detectable_difference([5.0, 5.0], [5.0, 5.0]) == 0.0


def test_the_test_that_it_comes_from_has_the_power_that_it_is_planned_for() -> None:
    """20,000 pairs of runs whose true means differ by just that: Welch's test finds eight of ten."""
    random = np.random.default_rng(20261130)
    difference = detectable_difference(SEVEN, SEVEN)
    assert difference is not None
    before = random.normal(0, SPREAD, (20_000, 7))
    after = random.normal(difference, SPREAD, (20_000, 7))
    found = stats.ttest_ind(before, after, axis=1, equal_var=False).pvalue < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.015)


@pytest.mark.parametrize(("size", "found"), [(0.0, 0.012), (1.0, 0.45), (1.5, 0.84)])
def test_the_rule_of_nights_finds_about_half_of_changes_of_that_size_and_most_of_half_as_much_again(
    size: float, found: float
) -> None:
    """4,000 pairs of runs of seven rounds; ``size`` is the true change in units of 1.63 standard deviations."""
    random = np.random.default_rng(20261130)
    change = size * 1.631
    verdicts = [
        compare(
            random.normal(change, 1, 7).tolist(), random.normal(0, 1, 7).tolist(), rule=RULE, kernel_changed=False
        ).verdict
        for _ in range(4000)
    ]
    assert sum(verdict is Verdict.REGRESSED for verdict in verdicts) / 4000 == pytest.approx(found, abs=0.025)


@given(samples, samples)
def test_it_is_the_same_from_both_sides_and_in_any_unit(one: list[float], other: list[float]) -> None:
    found = detectable_difference(one, other)
    assert (found is None) == (max(len(one), len(other)) < 2)
    if found is not None:
        assert found >= 0
        assert detectable_difference(other, one) == pytest.approx(found, rel=1e-9)
        doubled = detectable_difference([2 * value for value in one], [2 * value for value in other])
        assert doubled == pytest.approx(2 * found, rel=1e-9)


@given(samples, st.lists(finite, min_size=2, max_size=12), st.booleans())
def test_red_is_out_of_the_spread_and_detectable_and_nothing_else(
    values: list[float], baseline: list[float], kernel_changed: bool
) -> None:
    found = compare(values, baseline, rule=RULE, kernel_changed=kernel_changed)
    outside = not min(baseline) <= found.median <= max(baseline)
    assert found.detectable is not None
    moved = abs(found.median - found.baseline_median)
    seen = moved >= found.detectable if outside else moved > found.detectable
    expected = {(False, False): "ok", (False, True): "inconclusive", (True, False): "inconclusive"}.get((outside, seen))
    assert (found.direction is None) == (expected == "ok")
    less_by_design = kernel_changed and found.median < min(baseline)
    assert found.verdict.value == (expected or ("improved" if less_by_design else "regressed"))
