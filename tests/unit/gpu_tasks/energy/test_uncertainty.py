"""The model of a figure's uncertainty, term by term against the formulas that it stands for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpu_tasks.energy.uncertainty import Stretch, Surroundings, Term, uncertainty, walk_variance
from gpu_tasks.records import CounterEdge, CounterReading, IdleWander

N = 1_000_000
P, U, T, T_I = 40.0, 0.1, 16.4, 5.0
AROUND = Surroundings(U, None)


def reading(energy_mj: int, time_s: float, duration_s: float = 0.0) -> CounterReading:
    return CounterReading(energy_mj, time_s, duration_s)


def terms(*, shared: bool) -> list[Term]:
    """Windows at one power P: idle, work, idle; with readings of their own at each end, or shared ones."""
    r = T / (2 * T_I)
    moments = [(-1.0, 10), (1.0, 20), (-r, 10 if shared else 30), (r, 40), (-r, 50), (r, 20 if shared else 60)]
    return [Term(weight / N, P, reading(energy, 0.0)) for weight, energy in moments]


def test_separate_readings() -> None:
    """``Var(N*a) = 2*s_e^2 + T^2*s_e^2/T_i^2``."""
    s = P * U / math.sqrt(12) * 1000
    expected = math.sqrt(2 * s**2 + (T / T_I) ** 2 * s**2) / N
    assert uncertainty(0.0, terms(shared=False), [], AROUND).tick_mj == pytest.approx(expected)


def test_shared_readings() -> None:
    """``Var(N*a) = 2*s_e^2*((1+r)^2 + r^2)``: the idle windows begin and end with the readings of the work."""
    s, r = P * U / math.sqrt(12) * 1000, T / (2 * T_I)
    expected = math.sqrt(2 * s**2 * ((1 + r) ** 2 + r**2)) / N
    assert uncertainty(0.0, terms(shared=True), [], AROUND).tick_mj == pytest.approx(expected)


def test_the_records_own_spread_is_explained_by_its_ticks() -> None:
    """Observed over its seven rounds: 0.0060 mJ; a period of 0.1 s at 40 W makes 0.0048 of it by itself."""
    assert uncertainty(0.0, terms(shared=True), [], AROUND).tick_mj == pytest.approx(0.0048, rel=0.2)


def test_a_reading_is_late_by_half_a_period() -> None:
    found = uncertainty(1.0, [Term(1 / N, 72.8, reading(1, 0.0)), Term(-1 / N, 38.6, reading(2, 0.0))], [], AROUND)
    assert found.bias_mj == pytest.approx(-(72.8 - 38.6) * U / 2 * 1000 / N)
    assert (found.low_mj + found.high_mj) / 2 == pytest.approx(1.0 - found.bias_mj)


def test_an_edge_has_no_tick_but_the_time_between_its_reads() -> None:
    edge = CounterEdge(1, 1.000, 1.003)
    found = uncertainty(0.0, [Term(1 / N, P, edge)], [], AROUND)
    assert (found.tick_mj, found.bias_mj) == (0.0, 0.0)
    assert found.timing_mj == pytest.approx(P * 0.003 / math.sqrt(12) * 1000 / N)
    assert found.quantisation_mj == pytest.approx(1 / math.sqrt(12) / N)


def test_the_moment_within_a_call_counts() -> None:
    found = uncertainty(0.0, [Term(1 / N, P, reading(1, 0.0, 0.004))], [], Surroundings(0.0, None))
    assert found.timing_mj == pytest.approx(P * 0.004 / math.sqrt(12) * 1000 / N)
    assert found.combined_mj == pytest.approx(math.hypot(found.timing_mj, found.quantisation_mj))


def windows(middle_s: float) -> list[Stretch]:
    return [
        Stretch(-T_I, 0.0, -middle_s / 2 / N),
        Stretch(0.0, middle_s, middle_s / N),
        Stretch(middle_s, middle_s + T_I, -middle_s / 2 / N),
    ]


def test_a_walk_between_three_windows() -> None:
    """By hand: ``T/12 + T_i/6`` of the mean over the work against the mean of those around it."""
    unit = [Stretch(s.start_s, s.end_s, s.weight * N / T) for s in windows(T)]
    assert walk_variance(unit) == pytest.approx(T / 12 + T_I / 6)


def test_a_walk_over_gaps_is_what_draws_of_it_say() -> None:
    stretches = [Stretch(0.0, 2.0, -0.5), Stretch(3.0, 7.0, 1.0), Stretch(7.5, 9.5, -0.5)]
    rng, step = np.random.default_rng(1), 0.02
    walks = np.cumsum(rng.normal(0.0, math.sqrt(step), (20_000, 500)), axis=1)
    times = step * np.arange(1, 501)
    sums = sum(s.weight * walks[:, (times > s.start_s) & (times <= s.end_s)].mean(axis=1) for s in stretches)
    assert walk_variance(stretches) == pytest.approx(np.var(sums), rel=0.04)


def test_wander_widens_the_interval_by_its_own_doubt() -> None:
    wander = IdleWander(60.0, 12, P, 0.0, 0.07, 8.9)
    edge = [Term(1 / N, P, CounterEdge(1, 0.0, 0.003))]
    without = uncertainty(0.0, edge, windows(T), AROUND)
    found = uncertainty(0.0, edge, windows(T), Surroundings(U, wander))
    assert without.degrees_of_freedom is None
    assert found.drift_mj == pytest.approx(1000 * 0.07 * math.sqrt(T / 12 + T_I / 6) * T / N)
    assert found.degrees_of_freedom == pytest.approx(8.9, rel=0.01)
    half = (found.high_mj - found.low_mj) / 2
    assert half == pytest.approx(2.27 * found.combined_mj, rel=0.01)
