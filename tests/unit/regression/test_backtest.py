"""Replay over a history: one alert a change, its cause, what was missed, and segments after acceptance."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from regression.detectors.backtest import Cause, Detector, backtest, replay
from regression.detectors.series import Metric, Nights, Series, SeriesKey, of_values
from regression.detectors.verdict import CheckVerdict, Verdict

TIME = Metric("wall_time_per_replay", "ms")
A100 = SeriesKey("qda", "GPU-1", "A100", "classic", "m", "1")
START = datetime(2024, 10, 4, tzinfo=UTC)  # day 20,000
NOISE = np.random.default_rng(21).normal(size=400) * 0.5


def night(number: int) -> datetime:
    return START + timedelta(days=number)


def series(values: np.ndarray, key: SeriesKey = A100, metric: Metric = TIME) -> Series:
    made = of_values(metric, 20_000 + np.arange(len(values)), map(float, values))
    return replace(made, key=key)


def stepped(*changes: tuple[int, float], count: int = 150) -> np.ndarray:
    made = 100 + NOISE[:count]
    for first, percent in changes:
        made[first:] += percent
    return made


def test_a_change_is_one_alert_however_many_nights_tell_it() -> None:
    (alert,) = replay(series(stepped((100, 4.0), count=125)))
    assert (alert.opened, alert.direction, alert.first.reason_code) == (night(100), "higher", "shift_higher")
    assert alert.nights >= 20
    assert alert.last == night(124)


def test_what_was_alerted_is_held_against_the_acknowledged_causes() -> None:
    made = series(stepped((60, 4.0), (110, -4.0), count=120))
    up = Cause(night(60), "new kernel", A100, TIME.name, "higher", accepted=night(62))
    down = Cause(night(110), "kernel taken back", A100, TIME.name, "lower")
    found = backtest([made], [up, down], since=night(55))
    assert found.recall == 1.0
    assert [cause for _, cause in found.alerts] == [up, down]
    assert (found.precision, found.delays, found.median_delay) == (1.0, (1, 1), 1)
    assert backtest([series(stepped((60, 4.0), count=62))], since=night(58)).precision == 0.0
    other_metric = replace(up, metric="adjusted_energy")
    assert backtest([made], [other_metric], since=night(115)).recall is None
    never = Cause(night(20), "a fan was changed", A100)
    assert backtest([made], [up, down, never], since=night(15)).missed == (never,)


def test_another_series_is_judged_by_itself() -> None:
    """conbench 567 and 1029: one baseline for everything."""
    h100 = replace(A100, device_name="H100", device_uuid="GPU-2")
    found = backtest([series(stepped(count=80)), series(50 + stepped(count=80), h100)])
    assert found.alerts == ()
    assert (found.precision, found.recall) == (None, None)
    assert found.series_years == pytest.approx(2 * 79 / 365.25)
    assert found.false_per_series_year == 0


def test_an_accepted_cause_begins_a_segment_and_ends_the_alert() -> None:
    made = series(stepped((80, 4.0)))
    accepted = Cause(night(80), "slower and right", A100, accepted=night(82))
    (alert,) = replay(made, [accepted])
    assert (alert.opened, alert.last) == (night(80), night(81))
    (kept,) = [a for a in replay(made) if a.direction == "higher"]
    assert kept.last > alert.last


def test_a_night_is_judged_with_what_was_known_then() -> None:
    made = stepped((100, 4.0), count=130)
    whole, early = replay(series(made)), replay(series(made[:105]))
    assert (whole[0].opened, whole[0].first) == (early[0].opened, early[0].first)


def test_since_leaves_out_earlier_nights_and_causes_but_not_their_history() -> None:
    made = series(stepped((60, 4.0)))
    cause = Cause(night(60), "new kernel", A100)
    found = backtest([made], [cause], since=night(140))
    assert (found.alerts, found.causes) == ((), 0)


def telling(*nights: int, direction: str = "higher", seen: dict[int, Nights] | None = None) -> Detector:
    """A detector that tells a change on those nights; ``seen`` gets what it was shown."""

    def judge(metric: Metric, shown: Nights) -> CheckVerdict:
        tonight = round(float(shown.days[-1]) - START.timestamp() / 86400)
        if seen is not None:
            seen[tonight] = shown
        verdict = Verdict.REGRESSED if tonight in nights else Verdict.OK
        return CheckVerdict("told", verdict, TIME.name, "ms", "code", "reason", direction=direction)

    return judge


FLAT = series(np.full(70, 100.0))


@pytest.mark.parametrize(
    ("nights", "alerts"),
    [
        ((10, 13), [(10, 13, 2)]),
        ((10, 14), [(10, 10, 1), (14, 14, 1)]),
        ((10, 12, 14, 16), [(10, 16, 4)]),
    ],
)
def test_an_alert_ends_with_so_many_quiet_nights_in_a_row(
    nights: tuple[int, ...], alerts: list[tuple[int, int, int]]
) -> None:
    found = replay(FLAT, detectors=[telling(*nights)], quiet_nights=3)
    assert [((a.opened - START).days, (a.last - START).days, a.nights) for a in found] == alerts


def test_two_directions_are_two_alerts_and_the_first_detector_that_tells_one_opens_it() -> None:
    both = [telling(10, 11), telling(10), telling(11, direction="lower")]
    found = replay(FLAT, detectors=both)
    assert [(a.direction, (a.opened - START).days, a.nights) for a in found] == [("higher", 10, 2), ("lower", 11, 1)]


def test_a_segment_begins_at_the_start_of_what_was_accepted_and_not_before_it_was() -> None:
    seen: dict[int, Nights] = {}
    replay(FLAT, [Cause(night(30), "new kernel", accepted=night(35))], detectors=[telling(seen=seen)])
    assert len(seen[34]) == 35
    assert [len(seen[n]) for n in (35, 36)] == [6, 7]
    assert seen[35].date(0) == night(30).isoformat()


def test_a_night_that_is_no_measure_is_judged_all_the_same() -> None:
    made = series(stepped((40, 4.0), count=60))
    shown = tuple(replace(figure, measure=n != 40) for n, figure in enumerate(made.figures))
    assert replay(replace(made, figures=shown))[0].opened == night(40)
    gone = tuple(replace(figure, valid=n != 40) for n, figure in enumerate(made.figures))
    assert replay(replace(made, figures=gone))[0].opened == night(41)


def test_a_figure_is_judged_as_if_it_were_alone_until_the_other_one_has_a_history() -> None:
    """Of each segment anew, as the nightly checks do."""
    looks: list[int] = []

    def judge(metric: Metric, shown: Nights) -> CheckVerdict:
        looks.append(metric.looks)
        return CheckVerdict("told", Verdict.OK, metric.name, "ms", "code", "reason")

    values = [None if n in (3, 4, 50) else 100.0 for n in range(70)]
    other = of_values(replace(TIME, looks=2), 20_000 + np.arange(70), values)
    own = replace(FLAT, metric=replace(TIME, looks=2), sharper=other)
    replay(own, [Cause(night(40), "new kernel", accepted=night(42))], detectors=[judge])
    assert looks == [*[1] * 14, *[2] * 28, *[1] * 11, *[2] * 17]
    looks.clear()
    replay(replace(own, sharper=None), detectors=[judge])
    assert set(looks) == {2}
    assert own.until(night(20)).sharper == other.until(night(20))


@pytest.mark.parametrize(
    ("cause", "explained"),
    [
        ({}, True),
        ({"patience": timedelta(days=10)}, True),
        ({"patience": timedelta(days=9)}, False),
        ({"patience": timedelta(days=9), "end": night(21)}, True),
        ({"direction": "lower"}, False),
        ({"direction": "higher"}, True),
        ({"start": night(31)}, False),
        ({"metric": "another"}, False),
        ({"key": replace(A100, device_uuid="GPU-2")}, False),
    ],
)
def test_a_cause_explains_what_it_can_have_moved_and_when(cause: dict[str, object], explained: bool) -> None:
    known = replace(Cause(night(20), "a cause"), **cause)  # type: ignore[arg-type]
    found = backtest([FLAT], [known], detectors=[telling(30)])
    assert found.alerts[0][1] == (known if explained else None)
    assert found.precision == (1.0 if explained else 0.0)


def test_the_delay_is_that_of_the_first_of_several_alerts() -> None:
    found = backtest([FLAT], [Cause(night(20), "a cause")], detectors=[telling(22, 40)])
    assert (len(found.alerts), found.delays) == (2, (3,))
    assert found.false_per_series_year == 0


def test_false_alerts_are_counted_in_years_of_a_series() -> None:
    found = backtest([FLAT, FLAT], detectors=[telling(22, 40)])
    assert found.false_per_series_year == pytest.approx(4 / (2 * 69 / 365.25))


def test_whoever_waits_is_told_of_each_night_of_each_series() -> None:
    told: list[datetime] = []
    backtest([FLAT, FLAT], since=night(60), detectors=[telling()], judged=told.append)
    assert told == 2 * [night(n) for n in range(60, 70)]


def test_empty_histories_are_no_error() -> None:
    found = backtest([], [])
    assert (found.alerts, found.false_per_series_year, found.median_delay) == ((), None, None)
    assert replay(series(np.array([]))) == []
