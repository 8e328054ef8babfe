"""The counter: whole mJ, steps where they belong, nothing lost between them."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_tasks.energy.simulation.counter import EnergyCounter
from gpu_tasks.energy.simulation.steps import Steps

START_S = 50.0
periods = st.sampled_from([0.02, 0.05, 0.1])


def counter_of(period_s: float, seed: int, watts: float = 40.0) -> EnergyCounter:
    return EnergyCounter(lambda time: watts * (time - START_S), period_s, np.random.default_rng(seed), START_S)


@settings(max_examples=60, deadline=None)
@given(periods, st.integers(0, 10**6), st.lists(st.floats(0, 60), min_size=2, max_size=30))
def test_it_lags_by_less_than_a_tick_and_counts_whole_mj(period_s: float, seed: int, moments: list[float]) -> None:
    counter = counter_of(period_s, seed)
    first_s = counter.step_s(counter.step_before(START_S))
    loaded = counter.value_mj(START_S) - math.floor(40e3 * (first_s - START_S))
    for moment in moments:  # in any order
        value = counter.value_mj(START_S + moment) - loaded
        assert isinstance(value, int)
        assert 40e3 * (moment - 1.051 * period_s) - 1 < value <= 40e3 * moment


@settings(deadline=None)
@given(periods, st.integers(0, 10**6), st.integers(0, 3000))
def test_a_step_is_where_it_says(period_s: float, seed: int, step: int) -> None:
    counter = counter_of(period_s, seed)
    moment = counter.step_s(step + 1)
    before, after = counter.value_mj(math.nextafter(moment, 0)), counter.value_mj(moment)
    assert after - before == pytest.approx(40e3 * (moment - counter.step_s(step)), abs=1.001)
    assert counter.step_before(moment) == step + 1
    assert counter.step_before(math.nextafter(moment, 0)) == step


@pytest.mark.parametrize("period_s", [0.02, 0.1])
def test_period_phase_and_jitter(period_s: float) -> None:
    firsts, periods_s = [], []
    for seed in range(200):
        counter = counter_of(period_s, seed)
        times = [counter.step_s(step) for step in range(1, 200)]
        gaps = [b - a for a, b in pairwise(times)]
        periods_s.append(np.mean(gaps))
        assert 0.5e-2 < np.std(gaps) / period_s < 1e-2  # of two jitters of half a percent
        assert counter.step_s(0) <= START_S < counter.step_s(2)
        firsts.append((counter.step_s(0) - START_S) / period_s)
    assert min(periods_s) == pytest.approx(0.99 * period_s, rel=1e-3)
    assert max(periods_s) == pytest.approx(1.01 * period_s, rel=1e-3)
    assert np.std(firsts) == pytest.approx(1 / math.sqrt(12), abs=0.03)  # any phase as likely as any other


def test_the_counter_starts_somewhere_else_each_time() -> None:
    values = {counter_of(0.1, seed).value_mj(START_S) for seed in range(20)}
    assert len(values) == 20
    assert min(values) > 10**8


def test_a_stuck_counter_stays_and_was_right_before() -> None:
    free, stuck = counter_of(0.1, 3), counter_of(0.1, 3)
    stuck.stick(START_S + 5)
    assert stuck.value_mj(START_S + 4.9) == free.value_mj(START_S + 4.9)
    assert {stuck.value_mj(START_S + late) for late in (5, 6, 60)} == {free.value_mj(START_S + 5)}


def test_a_falling_counter_falls_once_and_goes_on() -> None:
    free, fallen = counter_of(0.1, 3), counter_of(0.1, 3)
    fallen.fall(START_S + 5, 1000)
    fallen.fall(START_S + 8, 500)
    lost = [free.value_mj(START_S + t) - fallen.value_mj(START_S + t) for t in (4.999, 5, 7, 8, 60)]
    assert lost == [0, 1000, 1000, 1500, 1500]


@pytest.mark.parametrize("period_s", [0.0, -0.1, math.nan, math.inf])
def test_a_period_is_a_positive_time(period_s: float) -> None:
    with pytest.raises(ValueError, match="period_s: expected seconds above 0"):
        counter_of(period_s, 0)


def test_steps_of_a_value() -> None:
    steps = Steps(7)
    steps.set(1.0, 5)
    steps.set(2.0, 5)
    steps.set(3.0, 4)
    assert [steps.at(time) for time in (0.0, 0.999, 1.0, 2.5, 3.0, 9.0)] == [7, 7, 5, 5, 4, 4]
    assert steps.at_all(np.array([0.0, 1.0, 3.0])).tolist() == [7, 5, 4]
    assert steps.seconds_with(1, 2.5) == 1.5
    assert steps.seconds_with(1, 9.0) == 2.0
    assert steps.seconds_with(4, 9.0) == 8.0
    assert steps.seconds_with(1, 0.5) == 0.0
    with pytest.raises(ValueError, match=r"expected 3\.0 or later"):
        steps.set(2.0, 1)
