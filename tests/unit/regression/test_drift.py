"""Slow drift: growth that no night shows, and what small steps add up to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from regression.detectors.drift import DriftSettings, judge_drift
from regression.detectors.history import judge_history
from regression.detectors.series import HIGHER, LOWER, Metric, Series, of_values
from regression.detectors.verdict import Verdict

TIME = Metric("wall_time_per_replay", "ms", relative_floor=0.01)
NOISE = np.random.default_rng(11).normal(size=400)


def series(values: np.ndarray | list[float | None], metric: Metric = TIME) -> Series:
    return of_values(metric, 20_000 + np.arange(len(values)), [None if v is None else float(v) for v in values])


def growing(percent_a_night: float, nights: int, before: int = 180) -> np.ndarray:
    made = 100 + NOISE[: before + nights]
    made[before:] += percent_a_night * np.arange(1, nights + 1)
    return made


@pytest.mark.parametrize(("slope", "direction"), [(0.5, HIGHER), (-0.5, LOWER)])
def test_half_a_percent_a_night_is_told_with_its_begin(slope: float, direction: str) -> None:
    found = judge_drift(series(growing(slope, 9)))
    assert (found.reason_code, found.direction) == (f"drift_{direction}", direction)
    assert found.verdict is (Verdict.REGRESSED if direction == HIGHER else Verdict.IMPROVED)
    assert found.details["nights_since"] in (6, 9, 13)
    assert np.sign(found.details["size"]) == np.sign(slope)


def test_a_tenth_of_a_percent_a_night_is_seen_by_its_growth() -> None:
    """A test against the night before never sees it."""
    found = judge_drift(series(growing(0.1, 45)))
    assert (found.reason_code, found.details["nights_since"] >= 28) == ("drift_higher", True)


def test_no_drift_is_ok_at_every_age() -> None:
    for count in (20, 40, 80, 200, 400):
        assert judge_drift(series(100 + NOISE[:count])).verdict is Verdict.OK, count


def test_four_percent_and_four_percent_is_seen_as_eight() -> None:
    """asv 932: under a gate of 5 %, and the first step has long been usual when the second one comes."""
    made = 100 + NOISE[:400]
    made[60:] *= 1.04
    made[320:] *= 1.04
    five = replace(TIME, relative_floor=0.05)
    assert judge_history(series(made, five)).verdict is Verdict.OK
    found = judge_drift(series(made, five))
    assert (found.verdict, found.reason_code) == (Verdict.REGRESSED, "creep_higher")
    assert found.details["size"] == pytest.approx(8.16, abs=1)
    assert "(8" in found.reason
    assert judge_drift(series(made[:320], five)).verdict is Verdict.OK


def test_a_few_better_nights_do_not_hide_what_has_become_worse_since_the_first_ones() -> None:
    """asv 752."""
    made = 100 + NOISE
    made[:60] -= 8
    made[-8:] -= 0.45 * np.arange(1, 9)
    assert judge_drift(series(made[60:])).reason_code == "drift_lower"
    assert judge_drift(series(made)).reason_code == "creep_higher"


def test_too_short_a_history_says_what_is_missing() -> None:
    found = judge_drift(series(100 + NOISE[:15]))
    assert (found.verdict, found.details["nights_needed"]) == (Verdict.INCONCLUSIVE, 16)
    assert "15 usable nights, 16 needed" in found.reason


def test_missing_nights_change_nothing_for_the_others() -> None:
    made = growing(0.5, 9)
    holes: list[float | None] = [None if n in (50, 120, 185) else float(v) for n, v in enumerate(made)]
    kept = [n for n, v in enumerate(holes) if v is not None]
    one, other = judge_drift(series(holes)), judge_drift(of_values(TIME, 20_000 + np.array(kept), made[kept]))
    assert {**one.details, "dropped": {}} == other.details
    assert one.verdict is Verdict.REGRESSED


def test_equal_values_do_not_drift_and_a_step_after_them_shows() -> None:
    assert judge_drift(series([5.0] * 100)).verdict is Verdict.OK
    assert judge_drift(series([5.0] * 100 + [5.2])).verdict is Verdict.REGRESSED


@pytest.mark.parametrize(("noise_nights", "phi"), [(30, 0.0), (150, 0.6)])
def test_what_a_creep_is_worth_allows_for_correlation_and_for_a_noise_that_is_hardly_known(
    noise_nights: int, phi: float
) -> None:
    rng, made = np.random.default_rng(4), np.zeros(200)
    for night in range(1, 200):
        made[night] = phi * made[night - 1] + rng.normal() * (1 - phi**2) ** 0.5
    made[35:] += 12
    found = judge_drift(series(100 + made), DriftSettings(lengths=(4,), reference_nights=noise_nights))
    assert found.details["tail_degrees_of_freedom"] is None
    assert found.reason_code == "creep_higher"
    scale, used = found.details["scale"], found.details["phi"]
    fading = (1 - used) / (1 + used)
    level_errors = [1 / (3 / np.pi * (1 + nights * fading)) for nights in (29, 9)]
    freedom = 0.82 * noise_nights - 1
    raw = stats.t.isf(stats.norm.sf(4.1), freedom)
    expected = found.details["size"] / (scale * sum(level_errors) ** 0.5) * 4.1 / raw
    assert found.details["statistic"] == pytest.approx(expected, rel=1e-6)


def test_the_last_digits_of_equal_values_are_no_drift() -> None:
    made = series([0.3] * 50 + [0.1 + 0.2], replace(TIME, relative_floor=0.0))
    assert judge_drift(made).verdict is Verdict.OK


@pytest.mark.parametrize(("count", "reference"), [(16, 12), (30, 21), (60, 41), (181, 121), (400, 180)])
def test_growth_is_looked_for_over_a_third_of_the_history_and_sixty_nights_at_most(count: int, reference: int) -> None:
    assert judge_drift(series(100 + NOISE[:count])).details["reference_nights"] == reference


def test_one_night_makes_or_hides_no_creep() -> None:
    """Ten nights say where the figure is now."""
    crept = 100 + NOISE
    crept[60:] *= 1.08
    crept[-1] = 100
    assert judge_drift(series(crept)).reason_code == "creep_higher"
    usual = 100 + NOISE
    usual[-1] = 108
    assert judge_drift(series(usual)).verdict is Verdict.OK


def test_lengths_that_do_not_fit_are_left_out() -> None:
    found = judge_drift(series(100 + NOISE[:30]), DriftSettings(lengths=(4, 6, 60)))
    assert found.details["reference_nights"] == 24
