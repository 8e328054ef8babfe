"""What is settled at the door: units, aware times, order, ties, and figures that are not there."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regression.detectors.series import (
    Figure,
    Metric,
    NightsInTime,
    Series,
    SeriesError,
    SeriesKey,
    of_values,
    usable_nights,
)

TIME = Metric("wall_time_per_replay", "us")
NIGHT = datetime(2026, 11, 30, 3, tzinfo=UTC)


def figures(*values: float | None, unit: str = "us", valid: bool = True) -> tuple[Figure, ...]:
    return tuple(Figure(NIGHT + timedelta(days=n), value, unit, valid) for n, value in enumerate(values))


def test_nanoseconds_and_microseconds_are_one_unit() -> None:
    """github-action-benchmark 122: 990 ns, then 1.1 us, is 11 % and not a thousandth."""
    nights = usable_nights(Series(TIME, (*figures(990, unit="ns"), Figure(NIGHT + timedelta(days=1), 1.1, "us"))))
    assert nights.values == pytest.approx([0.99, 1.1])


@pytest.mark.parametrize("unit", ["mJ", "furlong", ""])
def test_another_or_unknown_unit_is_refused(unit: str) -> None:
    """conbench 1325 and 1335."""
    with pytest.raises(SeriesError, match=rf"expected us or another unit of time, found '{unit}'"):
        Series(TIME, figures(1.0, unit=unit))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unit": "furlong"}, "unit of wall_time_per_replay: expected one of"),
        ({"worse": "up"}, "worse side of wall_time_per_replay: expected higher or lower, found 'up'"),
        ({"relative_floor": -0.1}, "relative floor of wall_time_per_replay: expected a number of 0 or more"),
        ({"looks": 0}, "looks of wall_time_per_replay: expected 1 or more, found 0"),
        ({"absolute_floor": float("nan")}, "absolute floor of wall_time_per_replay: expected a number of 0 or more"),
    ],
)
def test_a_metric_that_cannot_be_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(SeriesError, match=message):
        replace(TIME, **change)  # type: ignore[arg-type]


def test_naive_times_are_refused_and_aware_ones_are_compared_as_instants() -> None:
    """conbench 609."""
    with pytest.raises(SeriesError, match="expected an aware one, found 2026-11-30 03:00:00"):
        Series(TIME, (Figure(NIGHT.replace(tzinfo=None), 1.0, "us"),))
    tokyo = timezone(timedelta(hours=9))
    early, late = Figure(datetime(2026, 11, 30, 9, tzinfo=tokyo), 1.0, "us"), Figure(NIGHT, 2.0, "us")
    assert list(usable_nights(Series(TIME, (late, early))).values) == [1.0, 2.0]


def test_a_failed_measurement_stored_as_zero_is_no_improvement() -> None:
    """dotnet/performance 3121. Adjusted energy may be negative."""
    nights = usable_nights(Series(TIME, figures(5.0, 0.0, -1.0, 5.0)))
    assert (list(nights.values), nights.dropped) == ([5.0, 5.0], {"not_positive": 2})
    assert nights.last_dropped is None
    assert usable_nights(Series(TIME, figures(5.0, 0.0))).last_dropped == "not_positive"
    energy = Metric("adjusted", "mJ", positive=False)
    assert list(usable_nights(Series(energy, figures(-0.1, 0.2, unit="mJ"))).values) == [-0.1, 0.2]


def test_every_reason_to_leave_a_figure_out_is_counted() -> None:
    left_out = figures(None, float("nan"), float("inf")) + figures(3.0, valid=False)
    assert usable_nights(Series(TIME, left_out)).dropped == {"missing": 1, "not_finite": 2, "not_valid": 1}


def test_equal_times_are_both_kept_in_one_order() -> None:
    """Horreum 209."""
    pair = (Figure(NIGHT, 2.0, "us"), Figure(NIGHT, 1.0, "us"))
    for order in (pair, pair[::-1]):
        assert list(usable_nights(Series(TIME, order)).values) == [1.0, 2.0]


def test_of_two_newest_at_one_time_neither_may_be_missing() -> None:
    good, bad = Figure(NIGHT, 2.0, "us"), Figure(NIGHT, None, "us")
    for order in ((good, bad), (bad, good)):
        assert usable_nights(Series(TIME, order)).last_dropped == "missing"
    later = Figure(NIGHT + timedelta(days=1), 3.0, "us")
    assert usable_nights(Series(TIME, (bad, later, good))).last_dropped is None


@given(st.permutations(range(8)))
def test_the_order_of_ingestion_does_not_matter(order: list[int]) -> None:
    """sage 35046."""
    kept = figures(1, 2, None, 4, 4, 6, 7, float("nan"))
    found, expected = usable_nights(Series(TIME, tuple(kept[n] for n in order))), usable_nights(Series(TIME, kept))
    assert np.array_equal(found.values, expected.values)
    assert np.array_equal(found.days, expected.days)
    assert (found.dropped, found.last_dropped) == (expected.dropped, expected.last_dropped)


def test_what_is_no_measure_is_judged_on_its_own_night_alone() -> None:
    kept = list(figures(1, 2, 3, 4))
    for n in (1, 3):
        kept[n] = replace(kept[n], measure=False)
    nights = usable_nights(Series(TIME, tuple(kept)))
    assert (list(nights.values), nights.dropped, nights.last_dropped) == ([1, 3, 4], {"not_valid": 1}, None)
    replayed = NightsInTime(Series(TIME, tuple(kept)))
    shown = [list(replayed.between(None, figure.time).values) for figure in kept]
    assert shown == [[1], [1, 2], [1, 3], [1, 3, 4]]
    assert list(replayed.between(kept[1].time, kept[3].time).values) == [3, 4]
    kept[3] = replace(kept[3], valid=False)
    assert usable_nights(Series(TIME, tuple(kept))).last_dropped == "not_valid"


STARTS, ENDS = st.sampled_from([1, 2, 3, None, -1, 7]), st.sampled_from([5, 4, 3, 2, 1, 0, -1, 7])
VALUES = st.sampled_from([1.0, 2.0, 3.0, None, 0.0, float("nan")])
MOSTLY = st.sampled_from([True, True, True, False])
FIGURES = st.tuples(st.integers(0, 5), VALUES, MOSTLY, MOSTLY)


@given(st.lists(FIGURES, max_size=12), STARTS, ENDS)
def test_what_is_cut_out_of_a_history_is_what_its_figures_give(
    rows: list[tuple[int, float | None, bool, bool]], start: int | None, end: int
) -> None:
    kept = tuple(
        Figure(NIGHT + timedelta(days=day), value, "us", valid, measure=measure) for day, value, valid, measure in rows
    )
    first, last = None if start is None else NIGHT + timedelta(days=start), NIGHT + timedelta(days=end)
    found = NightsInTime(Series(TIME, kept)).between(first, last)
    within = tuple(f for f in kept if f.time <= last and (first is None or f.time >= first))
    expected = usable_nights(Series(TIME, within))
    assert (list(found.days), list(found.values)) == (list(expected.days), list(expected.values))
    assert (found.dropped, found.last_dropped) == (expected.dropped, expected.last_dropped)


def test_steps_are_in_usual_distances() -> None:
    nights = usable_nights(of_values(TIME, [0, 1, 2.02, 3, 6, 7], [1.0] * 6))
    assert list(nights.steps()) == [1, 1, 1, 3, 1]
    assert list(usable_nights(of_values(TIME, [0, 1, 1.1, 2, 3, 4], [1.0] * 6)).steps()) == [1] * 5
    weekly = usable_nights(of_values(TIME, [0, 7, 14, 28, 35], [1.0] * 5))
    assert list(weekly.steps()) == [1, 1, 2, 1]
    assert list(usable_nights(of_values(TIME, [3, 3, 3], [1.0] * 3)).steps()) == [1, 1]
    assert len(usable_nights(of_values(TIME, [3], [1.0])).steps()) == 0


def test_the_key_tells_models_and_boards_apart() -> None:
    """conbench 1412 and 225."""
    a100 = SeriesKey("qda", "GPU-1", "A100", "classic", "m", "1")
    assert len({a100, replace(a100, device_name="H100"), replace(a100, device_uuid="GPU-2")}) == 3
