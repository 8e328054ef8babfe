"""The lag: its closed form against superposition, whatever the schedule; what is forgotten changes nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_tasks.energy.simulation.lag import MANY, FlooredLag, Lag

START_S = 100.0

schedules = st.lists(
    st.tuples(st.floats(0, 5), st.floats(-50, 400)).map(lambda pair: (pair[0], pair[1])), min_size=1, max_size=12
)
constants = st.floats(0.05, 20)


def superposed(steps: list[tuple[float, float]], constant_s: float, time_s: float) -> tuple[float, float]:
    """Value and integral as the sum of the answers to each step of the target."""
    value = integral = 0.0
    for at_s, height in steps:
        elapsed = time_s - at_s
        if elapsed > 0:
            answered = 1 - math.exp(-elapsed / constant_s)
            value += height * answered
            integral += height * (elapsed - constant_s * answered)
    return value, integral


def played(schedule: list[tuple[float, float]], constant_s: float) -> tuple[Lag, list[tuple[float, float]], float]:
    lag, now, target, steps = Lag(constant_s, START_S), START_S, 0.0, []
    for wait_s, following in schedule:
        now += wait_s
        lag.set_target(now, following)
        steps.append((now, following - target))
        target = following
    return lag, steps, now


@settings(deadline=None)
@given(schedules, constants, st.floats(0, 1))
def test_value_and_integral_are_those_of_the_superposed_steps(
    schedule: list[tuple[float, float]], constant_s: float, share: float
) -> None:
    lag, steps, end_s = played(schedule, constant_s)
    time_s = START_S + share * (end_s + 3 - START_S)
    value, integral = superposed(steps, constant_s, time_s)
    assert lag.value(time_s) == pytest.approx(value, abs=1e-6)
    assert lag.integral(time_s) == pytest.approx(integral, abs=1e-5)
    assert lag.values(np.array([time_s, START_S])).tolist() == pytest.approx([lag.value(time_s), 0.0])


@settings(deadline=None)
@given(schedules, constants)
def test_over_all_time_nothing_is_lost(schedule: list[tuple[float, float]], constant_s: float) -> None:
    lag, steps, end_s = played(schedule, constant_s)
    lag.set_target(end_s, 0.0)
    steps.append((end_s, -sum(height for _, height in steps)))
    expected = -sum(at_s * height for at_s, height in steps)
    assert lag.integral(end_s + 60 * constant_s) == pytest.approx(expected, abs=1e-4)


def test_the_same_target_again_is_no_change() -> None:
    lag = Lag(0.4, 0.0)
    for time_s in range(1000):
        lag.set_target(float(time_s), 5.0)
    assert lag.changes == 2
    lag.set_target(1000.0, 0.0)
    lag.set_target(1000.0, 5.0)
    assert lag.changes == 2
    lag.set_target(1000.0, 0.0)
    lag.set_target(1000.0, 6.0)
    assert lag.changes == 3


def test_what_was_forgotten_changes_nothing_after_it() -> None:
    kept, forgetful = Lag(0.4, 0.0), Lag(0.4, 0.0)
    for number in range(3 * MANY):
        for lag in (kept, forgetful):
            lag.set_target(float(number), float(number % 7))
        earliest = max(number - 100.0, 0.0)
        forgetful.forget_before(earliest)
        assert forgetful.integral(earliest) == kept.integral(earliest)
    times = [3 * MANY - 101.0, 3 * MANY - 50.3, 3 * MANY + 1.0]
    assert [forgetful.integral(time) for time in times] == [kept.integral(time) for time in times]
    assert [forgetful.value(time) for time in times] == [kept.value(time) for time in times]
    assert forgetful.changes < MANY + 200 < kept.changes


def test_other_times_are_refused() -> None:
    lag = Lag(0.4, 10.0)
    lag.set_target(12.0, 1.0)
    for wrong in (lambda: lag.set_target(11.0, 2.0), lambda: lag.value(9.0), lambda: lag.values(np.array([9.0]))):
        with pytest.raises(ValueError, match="or later, found"):
            wrong()


@settings(deadline=None)
@given(schedules, constants, st.floats(-60, 420), st.floats(0, 1))
def test_under_a_floor_nothing_lower_is_seen_and_the_integral_is_that_of_what_is_seen(
    schedule: list[tuple[float, float]], constant_s: float, floor: float, share: float
) -> None:
    """Against the plain lag, looked at in small steps: an error of a step is under its height times its length."""
    floored = FlooredLag(constant_s, START_S, floor)
    plain, _, end_s = played(schedule, constant_s)
    now = START_S
    for wait_s, target in schedule:
        now += wait_s
        floored.set_target(now, target)
    time_s = START_S + share * (end_s + 3 - START_S)
    grid = np.linspace(START_S, time_s, 4001)
    seen = np.maximum(plain.values(grid), floor)
    assert floored.value(time_s) == pytest.approx(seen[-1], abs=1e-6)
    assert floored.values(grid).tolist() == pytest.approx(seen.tolist(), abs=1e-6)
    step_s = (time_s - START_S) / 4000
    tolerance = (len(schedule) + 1) * 500 * (1 + len(schedule)) * step_s * min(1.0, step_s / constant_s) + 1e-6
    assert floored.integral(time_s) == pytest.approx(float(np.trapezoid(seen, grid)), abs=tolerance)


def test_a_floor_that_is_crossed_on_the_way_down_and_up_again() -> None:
    floored = FlooredLag(1.0, START_S, 50.0)
    assert (floored.value(START_S + 1), floored.integral(START_S + 1)) == (50.0, 50.0)
    floored.set_target(START_S + 1, 100.0)
    crossing = math.log(2)  # 100*(1 - e^-t) = 50
    rising_s = 3 - crossing
    risen = 100 * rising_s - 50 * (1 - math.exp(-rising_s))
    assert floored.integral(START_S + 4) == pytest.approx(50 + 50 * crossing + risen, rel=1e-12)
    top = floored.value(START_S + 4)
    floored.set_target(START_S + 4, 0.0)
    before, crossing = floored.integral(START_S + 4), math.log(top / 50)
    assert floored.value(START_S + 4 + crossing) == pytest.approx(50.0)
    fallen = top - 50
    assert floored.integral(START_S + 9) == pytest.approx(before + fallen + 50 * (5 - crossing), rel=1e-12)
