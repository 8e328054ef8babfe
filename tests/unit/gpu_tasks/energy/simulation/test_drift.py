"""Drift: every model's energy is the integral of its power, and what was once drawn stays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_tasks.energy.simulation.drift import GRID_S, WALK_W_PER_SQRT_S, drift_model
from gpu_tasks.records import DRIFTS


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(DRIFTS), st.integers(0, 10**6), st.floats(0, 400), st.floats(0, 60))
def test_the_energy_is_the_integral_of_the_power(kind: str, seed: int, start_s: float, length_s: float) -> None:
    drift = drift_model(kind, np.random.default_rng(seed))
    kinks = GRID_S * np.arange(int(start_s / GRID_S), int((start_s + length_s) / GRID_S) + 2)
    inside = kinks[(kinks > start_s) & (kinks < start_s + length_s)]
    times = np.concatenate(([start_s], inside, [start_s + length_s]))
    powers = drift.powers_w(times)
    expected = float(np.sum(np.diff(times) * (powers[1:] + powers[:-1]) / 2))
    found = drift.energy_j(start_s + length_s) - drift.energy_j(start_s)
    assert found == pytest.approx(expected, abs=1e-4)
    assert powers.tolist() == pytest.approx([drift.power_w(time) for time in times.tolist()], abs=1e-9)


@pytest.mark.parametrize("kind", DRIFTS)
def test_it_begins_with_nothing_and_was_nothing_before(kind: str) -> None:
    drift = drift_model(kind, np.random.default_rng(1))
    for elapsed in (-5.0, 0.0):
        assert drift.power_w(elapsed) == 0.0
        assert drift.energy_j(elapsed) == 0.0
    assert drift.powers_w(np.array([-5.0, 0.0])).tolist() == [0.0, 0.0]
    assert drift.powers_w(np.array([])).size == 0
    assert (drift.power_w(30.0) == 0.0) == (kind == "none")


def test_a_walk_does_not_depend_on_how_far_was_looked_first() -> None:
    near, far = (drift_model("random_walk", np.random.default_rng(4)) for _ in range(2))
    far.energy_j(5000.0)
    for elapsed in (1.0, 17.3, 204.0, 999.0, 5000.0):
        assert near.power_w(elapsed) == far.power_w(elapsed)
        assert near.energy_j(elapsed) == far.energy_j(elapsed)


def test_a_walk_is_as_wide_as_it_says() -> None:
    ends = [drift_model("random_walk", np.random.default_rng(seed)).power_w(100.0) for seed in range(400)]
    assert np.std(ends) == pytest.approx(WALK_W_PER_SQRT_S * 10, rel=0.15)


def test_curvature_settles_and_a_slope_does_not() -> None:
    settling, rising = (drift_model(kind, np.random.default_rng(2)) for kind in ("curvature", "linear"))
    assert abs(settling.power_w(1000.0) - settling.power_w(900.0)) < 1e-6
    assert abs(settling.power_w(10.0) - settling.power_w(5.0)) > 1e-3
    assert 0.99 < abs(rising.power_w(1000.0) - rising.power_w(900.0)) < 3.01


def test_other_models_are_refused() -> None:
    with pytest.raises(ValueError, match="none, linear, curvature, random_walk, found 'sine'"):
        drift_model("sine", np.random.default_rng(0))
