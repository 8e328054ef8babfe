"""Rounds that cannot be used: a counter that falls, stands still or runs too fast."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_tasks.energy.invalidation import invalid_reasons, window_reasons
from gpu_tasks.energy.trace import Sample
from tests.unit.gpu_tasks.energy.rounds_between import AFTER, BEFORE, READINGS, codes, counted, reading


def test_codecarbon_1309_pyjoules_16_a_counter_that_falls_invalidates() -> None:
    for fallen in (READINGS[2].energy_mj - 1, 0):
        readings = [*READINGS[:3], reading(121.01, fallen)]
        assert codes(readings=readings) == ["counter_backwards"]
    (reason,) = window_reasons("active", reading(1.0, 500), reading(2.0, 0), 400.0)
    assert reason.message == "active: counter: expected to rise, found to fall by 500 mJ in 1.000 s"


@pytest.mark.parametrize("by_mj", [1, 20_000])
def test_a_counter_that_falls_between_two_samples_invalidates_however_little(by_mj: int) -> None:
    """Readings around it rise all the same: 20 J are made up for in a third of a second."""
    rising = [400_000 + 3_000 * number for number in range(300)]
    assert codes(samples=counted(*rising)) == []
    fallen = [*rising[:150], *(energy - by_mj - 3_000 for energy in rising[150:])]
    assert codes(samples=counted(*fallen)) == ["counter_backwards"]
    (reason,) = invalid_reasons(BEFORE, AFTER, counted(*fallen), READINGS, active=[])
    assert reason.message == f"counter: expected never to fall, found {by_mj} mJ less at 112.500 s"


def test_a_counter_that_stands_still_for_a_moment_has_not_fallen() -> None:
    assert codes(samples=counted(400_000, 400_000, 403_720, 403_720)) == []


@pytest.mark.parametrize(
    ("sample", "found"),
    [
        (counted(300_001, start_s=104.94), ["counter_backwards"]),  # before the reading of 300,000 at 105
        (counted(300_001, start_s=104.96), []),  # near enough to be in another order than the moments say
        (counted(299_999, start_s=105.04), []),
        (counted(299_999, start_s=105.06), ["counter_backwards"]),
        (counted(1_800_001, start_s=120.9), ["counter_backwards"]),
        (counted(250_000, start_s=104.0), []),
    ],
)
def test_samples_and_readings_are_of_one_counter(sample: list[Sample], found: list[str]) -> None:
    assert codes(samples=sample, active=[]) == found


@given(st.lists(st.integers(0, 4000), min_size=3, max_size=60), st.data())
def test_one_fall_anywhere_is_found_and_a_counter_that_rises_is_never_at_fault(
    steps_mj: list[int], data: st.DataObject
) -> None:
    """The counter by the sampler every 50 ms and by readings at some of those moments."""
    energies = [sum(steps_mj[: number + 1]) for number in range(len(steps_mj))]
    samples = counted(*energies)
    places = data.draw(st.sets(st.sampled_from(range(len(samples))), max_size=4))
    readings = [reading(samples[place].time_s, energies[place]) for place in sorted(places)]
    assert "counter_backwards" not in codes(samples=samples, readings=readings, active=[])
    place = data.draw(st.integers(1, len(samples) - 1))
    by_mj = data.draw(st.integers(1, 10**6)) + steps_mj[place]
    fallen = counted(*energies[:place], *(max(0, energy - by_mj) for energy in energies[place:]))
    if energies[place - 1]:
        assert codes(samples=fallen, readings=[], active=[]) == ["counter_backwards"]


def test_a_counter_that_stands_still_invalidates() -> None:
    assert codes(readings=[reading(0, 7), reading(5, 7), reading(25, 9000)]) == ["counter_unchanged"]
    assert codes(readings=[reading(0, 7), reading(0.01, 7)]) == ["counter_unchanged"]


def test_pyjoules_17_papi_525_alumet_338_a_window_that_is_shorter_than_the_tick_reads_0_and_is_invalid() -> None:
    (reason,) = window_reasons("active", reading(5.0, 1000), reading(5.02, 1000), 400.0)
    assert reason.code == "counter_unchanged"
    assert reason.message == "active: counter: expected to rise, found the same 1000 mJ after 0.020 s"


def test_readings_closer_than_two_ticks_may_be_equal_or_a_step_apart() -> None:
    equal = [reading(0, 0), reading(5, 300_000), reading(5.003, 300_000), reading(21, 1_800_000)]
    step = [reading(0, 0), reading(5, 300_000), reading(5.003, 303_720), reading(21, 1_800_000)]
    assert codes(readings=equal) == codes(readings=step) == []


def test_two_ticks_are_far_enough_to_have_moved() -> None:
    after = [reading(21, 1_800_000)]
    assert codes(readings=[reading(0, 7), reading(0.2, 7), *after]) == ["counter_unchanged"]
    assert codes(readings=[reading(0, 7), reading(0.19, 7), *after]) == []
    assert codes(readings=[reading(0, 7), reading(0.2, 900_000), *after]) == ["impossible_power"]


def test_one_tick_of_energy_may_be_too_much_and_no_more() -> None:
    most_mj = round(1000 * 1.2 * 400 * (20 + 0.1))
    assert window_reasons("active", reading(0, 0), reading(20, most_mj - 1), 400.0) == []
    (reason,) = window_reasons("active", reading(0, 0), reading(20, most_mj + 1), 400.0)
    expected = "at most 1.2 times the limit of 400 W, found 9648.001 J in 20.000 s"
    assert reason.message == f"active: counter: expected {expected}"


@pytest.mark.parametrize(("watts", "found"), [(470.0, []), (490.0, ["impossible_power"]), (5e6, ["impossible_power"])])
def test_power_over_1_2_times_the_limit_is_impossible(watts: float, found: list[str]) -> None:
    assert codes(readings=[reading(0, 0), reading(20, round(watts * 20_000))]) == found
    limit = dataclasses.replace(BEFORE, power_limit_w=None), dataclasses.replace(AFTER, power_limit_w=None)
    assert codes(*limit, readings=[reading(0, 0), reading(20, round(watts * 20_000))]) == []


def test_an_impossible_stretch_is_not_hidden_by_the_whole() -> None:
    readings = [reading(0, 0), reading(100, 6_000_000), reading(101, 8_000_000), reading(300, 20_000_000)]
    assert codes(readings=readings) == ["impossible_power"]


def test_one_reading_or_none_says_nothing() -> None:
    assert codes(readings=[]) == codes(readings=READINGS[:1]) == []


@given(st.floats(10, 480), st.lists(st.floats(0.5, 60), min_size=2, max_size=12), st.floats(0.01, 0.1))
def test_a_counter_that_ticks_at_a_possible_power_is_never_at_fault(
    watts: float, gaps: list[float], tick_s: float
) -> None:
    """The counter is what was used up to the last tick: short stretches read up to one tick too much or too little."""
    times = [sum(gaps[:number]) for number in range(len(gaps) + 1)]
    readings = [reading(time, int(1000 * watts * (time // tick_s) * tick_s)) for time in times]
    assert invalid_reasons(BEFORE, AFTER, [], readings, active=[], tick_period_s=tick_s) == []
