"""Sampled power: its text, the energy under it, its gaps."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_tasks.energy.trace import COLUMNS, HEADER, Sample, csv_text, integrate_j, largest_gap_s, read_samples
from gpu_tasks.records import BadInput, InvalidMeasurement, PowerTrace

ROW = "12.500000,40.125,12.502000,123456,1410,1215,31,98,0,4,2"
HALVES = [Sample(float(second), power) for second, power in enumerate([10.0, 20.0, 20.0, 0.0])]


def trace(*lines: str) -> PowerTrace:
    return PowerTrace(0.05, "instantaneous", "".join(f"{line}\n" for line in (HEADER, *lines)), None)


def powers(*pairs: tuple[float, float | None]) -> list[Sample]:
    return [Sample(time, power) for time, power in pairs]


def test_the_columns_are_those_that_the_record_documents_in_that_order() -> None:
    text = " ".join((PowerTrace.__doc__ or "").split())
    assert f"Columns: {', '.join(COLUMNS)};" in text
    assert tuple(field.name for field in dataclasses.fields(Sample)) == COLUMNS


def test_a_row_is_read_as_what_it_says() -> None:
    (sample,) = read_samples(trace(ROW))
    assert sample == Sample(12.5, 40.125, 12.502, 123456, 1410, 1215, 31, 98, 0, 4, 2)
    assert csv_text([sample]) == f"{HEADER}\n{ROW}\n"


def test_what_could_not_be_had_is_empty_and_read_as_null_not_as_0() -> None:
    assert read_samples(trace("1.000000,,,,,,,,,,")) == [Sample(1.0)]
    assert csv_text([Sample(1.0)]) == f"{HEADER}\n1.000000,,,,,,,,,,\n"
    assert csv_text([Sample(1.0, power_w=0.0, temperature_c=0)]).splitlines()[1] == "1.000000,0.000,,,,,0,,,,"
    assert csv_text([Sample(1.0, throttle_reasons=0, processes=0)]).splitlines()[1] == "1.000000,,,,,,,,,0,0"


MICROSECONDS = st.integers(0, 10**13)
COUNTS = st.none() | st.integers(0, 2**64 - 1)


ROWS = st.tuples(MICROSECONDS, st.none() | st.integers(0, 2**32), st.none() | MICROSECONDS, *[COUNTS] * 8)


@given(st.lists(ROWS, max_size=9, unique_by=lambda row: row[0]))
def test_text_and_samples_are_the_same_thing(rows: list[tuple[int, ...]]) -> None:
    samples = [
        Sample(time / 1e6, power and power / 1e3, counter and counter / 1e6, *rest)
        for time, power, counter, *rest in sorted(rows, key=lambda row: row[0])
    ]
    text = csv_text(samples)
    back = read_samples(PowerTrace(0.05, None, text, None))
    assert csv_text(back) == text
    assert back == samples


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["12.5,40.125,,,,,,,,,"], "line 2: time_s: expected a number with 6 decimals, found '12.5'"),
        ([ROW, ROW], "line 3: time_s: expected more than 12.500000, found 12.500000"),
        ([ROW, "12.400000,,,,,,,,,,"], "line 3: time_s: expected more than 12.500000, found 12.400000"),
        (
            ["1.000000,[Not Supported],,,,,,,,,"],
            r"power_w: expected a number with .*, found '\[Not Supported\]'",
        ),
        (["1.000000,N/A,,,,,,,,,"], "power_w: expected"),
        (["1.000000,nan,,,,,,,,,"], "power_w: expected"),
        (["1.000000,-1.000,,,,,,,,,"], "power_w: expected"),
        (["1.000000,,,3.0,,,,,,,"], "counter_mj: expected an integer, found '3.0'"),
        (["1.000000,,,,,,,, 0,,"], "performance_state: expected an integer"),
        (["1.000000,,,,,,,,,٣,"], "throttle_reasons: expected an integer"),
        (["1.000000,,,,,,,,,,0x1"], "processes: expected an integer"),
        ([",40.000,,,,,,,,,"], "time_s: expected"),
        (["1.000000,,,,,,,,,"], "line 2: expected 11 values, found 10"),
        (["1.000000,,,,,,,,,,,"], "line 2: expected 11 values, found 12"),
        ([ROW, ""], "line 3: expected 11 values, found 1"),
    ],
)
def test_a_row_that_is_not_one_is_refused_with_its_line_and_column(lines: list[str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        read_samples(trace(*lines))


@pytest.mark.parametrize("text", ["", "time_s,power_w\n1.000000,3.000\n", HEADER.upper() + "\n", "\n" + HEADER + "\n"])
def test_another_header_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="trace: line 1: expected 'time_s,"):
        read_samples(PowerTrace(0.05, None, text, None))


def test_half_a_line_at_the_end_is_refused() -> None:
    with pytest.raises(BadInput, match=r"last line: expected to be whole, found '13\.0'"):
        read_samples(PowerTrace(0.05, None, f"{HEADER}\n{ROW}\n13.0", None))


def test_the_energy_is_that_of_trapezoids_between_the_actual_times() -> None:
    assert integrate_j(HALVES, 0.0, 3.0) == pytest.approx(15 + 20 + 10, rel=1e-12)
    assert integrate_j(HALVES, 1.25, 1.75) == pytest.approx(10, rel=1e-12)
    assert integrate_j(HALVES, 0.5, 2.5) == pytest.approx((15 + 20) / 2 * 0.5 + 20 + (20 + 10) / 2 * 0.5, rel=1e-12)
    uneven = powers((0, 0.0), (1, 10.0), (5, 30.0))
    assert integrate_j(uneven, 0, 5) == pytest.approx(5 + 80, rel=1e-12)


def test_a_sample_without_power_is_passed_over_not_counted_as_0_w() -> None:
    assert integrate_j(powers((0, 40.0), (1, None), (2, 40.0)), 0, 2) == pytest.approx(80, rel=1e-12)


@given(
    st.lists(st.floats(0, 700), min_size=2, max_size=40),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0.001, 1.0),
)
def test_windows_that_meet_add_up_and_power_bounds_the_energy(
    watts: list[float], first: float, second: float, third: float, period_s: float
) -> None:
    samples = [Sample(number * period_s, power) for number, power in enumerate(watts)]
    end_s = samples[-1].time_s
    a, b, c = sorted((first * end_s, second * end_s, third * end_s))
    if not a < b < c:
        return
    whole = integrate_j(samples, a, c)
    assert integrate_j(samples, a, b) + integrate_j(samples, b, c) == pytest.approx(whole, rel=1e-9, abs=1e-9)
    assert min(watts) * (c - a) - 1e-9 <= whole <= max(watts) * (c - a) + 1e-9


@pytest.mark.parametrize(("start_s", "end_s"), [(-0.001, 2.0), (1.0, 3.001), (-5.0, -4.0), (4.0, 5.0)])
def test_a_window_that_the_trace_does_not_cover_has_no_energy(start_s: float, end_s: float) -> None:
    with pytest.raises(InvalidMeasurement, match=r"found 0\.000 to 3\.000 s") as caught:
        integrate_j(HALVES, start_s, end_s)
    assert caught.value.code == "trace_too_short"


def test_a_trace_without_any_power_has_no_energy() -> None:
    for samples in ([], powers((0, None), (9, None))):
        with pytest.raises(InvalidMeasurement, match="found none with a power") as caught:
            integrate_j(samples, 1.0, 2.0)
        assert caught.value.code == "trace_too_short"


@pytest.mark.parametrize("end_s", [1.0, 0.5, float("nan")])
def test_a_window_that_ends_before_it_starts_is_refused(end_s: float) -> None:
    for function in (integrate_j, largest_gap_s):
        with pytest.raises(BadInput, match=r"expected an end after 1\.0 s") as caught:
            function(HALVES, 1.0, end_s)
        assert caught.value.code == "bad_window"


def test_the_largest_gap_is_the_longest_time_without_a_power() -> None:
    samples = powers((0, 1.0), (0.1, 1.0), (0.2, None), (0.3, None), (0.4, 1.0), (0.5, 1.0), (2.0, 1.0))
    assert largest_gap_s(samples, 0.0, 0.5) == pytest.approx(0.3)
    assert largest_gap_s(samples, 0.05, 0.09) == pytest.approx(0.1)


def test_a_gap_over_an_end_of_the_window_counts_whole() -> None:
    samples = powers((0, 1.0), (0.1, 1.0), (2.0, 1.0))
    assert largest_gap_s(samples, 0.0, 0.2) == pytest.approx(1.9)
    assert largest_gap_s(samples, 1.9, 2.0) == pytest.approx(1.9)


def test_a_window_that_starts_or_ends_on_a_sample_has_no_part_in_the_gap_beyond() -> None:
    samples = powers((0, 1.0), (1.0, 1.0), (1.1, 1.0), (9.0, 1.0))
    assert largest_gap_s(samples, 1.0, 1.1) == pytest.approx(0.1)


def test_what_is_missing_of_the_window_is_a_gap() -> None:
    samples = powers((1.0, 1.0), (1.1, 1.0), (1.2, 1.0))
    assert largest_gap_s(samples, 0.2, 1.2) == pytest.approx(0.8)
    assert largest_gap_s(samples, 1.0, 1.9) == pytest.approx(0.7)
    assert largest_gap_s([], 1.0, 4.0) == pytest.approx(3.0)
    assert largest_gap_s(samples, 5.0, 6.0) == pytest.approx(4.8)
