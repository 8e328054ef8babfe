"""The calibration in small: ``python -m tests.benchmarks.detection`` is the whole of it, with the figures of the docs.

Limits are those of the aims, widened by what so few series can be off by chance.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks import perfherder_rule
from tests.benchmarks.detection import by_detector, found_after, openings, ours, peer_years, perfherder
from tests.benchmarks.simulated_nights import LEVEL, NOISES, Noise, creep, nights, step

SEED = 4711
IID, AR4 = NOISES[0], NOISES[1]


def first_nights(
    rng: np.random.Generator, count: int, shape: object, following: int, noise: Noise = IID
) -> dict[str, float]:
    """Share of ``count`` changes that our detectors tell after so many nights, of 180 and so many ``following``."""
    made = [ours(nights(rng, 180 + following, noise, shape), 180) for _ in range(count)]  # type: ignore[arg-type]
    _, told = next(by_detector(made))
    first = [next((n + 1 for n, night in enumerate(one) if "higher" in night), None) for one in told]
    found = found_after(first)
    return {**found["found_after"], "median": found["median_nights"]}


@pytest.mark.parametrize("noise", [IID, AR4])
def test_two_quiet_series_years_hardly_ever_alert(noise: Noise) -> None:
    """0.1 and 0.2 a year: more than two in two years are one chance in a hundred or less."""
    rng = np.random.default_rng(SEED)
    _, told = next(by_detector([ours(nights(rng, 180 + 365, noise), 180) for _ in range(2)]))
    assert sum(openings(one, 7) for one in told) <= 2


def test_a_step_of_three_sigma_is_found_as_soon_as_the_aims_say() -> None:
    found = first_nights(np.random.default_rng(SEED), 100, step(180), 5)
    for night, aim in (("1", 0.15), ("2", 0.55), ("3", 0.80), ("5", 0.97)):
        assert found[night] >= aim - 2.5 * (aim * (1 - aim) / 100) ** 0.5, night


def test_half_a_percent_a_night_is_found_within_eight() -> None:
    assert first_nights(np.random.default_rng(SEED), 40, creep(180), 9)["median"] <= 8


@pytest.mark.parametrize("noise", NOISES)
def test_the_simulated_nights_are_what_they_say(noise: Noise) -> None:
    made = nights(np.random.default_rng(SEED), 20_000, noise)
    there = made[np.isfinite(made)]
    assert np.mean(there) == pytest.approx(LEVEL, abs=0.1)
    assert 1 - len(there) / 20_000 == pytest.approx(noise.missing, abs=0.01)
    assert np.median(np.abs(there - LEVEL)) / 0.6745 == pytest.approx(0.8 if noise.tails else 1, abs=0.06)
    pairs = np.isfinite(made[1:]) & np.isfinite(made[:-1])
    found = np.corrcoef(made[1:][pairs], made[:-1][pairs])[0, 1]
    assert found == pytest.approx(noise.phi, abs=0.03)


def test_alerts_are_counted_once_until_they_have_been_quiet() -> None:
    told = [{"higher"}, set(), {"higher"}, *[set()] * 7, {"higher"}, {"lower"}]
    assert openings(told, 7) == 3
    assert openings(told, 1) == 4


def test_points_of_peers_are_counted_once_and_as_taken_back_when_gone() -> None:
    nightly = [[], [12], [13], [13, 30], [30]]
    assert peer_years([nightly], 0) == {"series_years": 1, "per_year": 1.0, "retracted": 1.0}
    assert peer_years([nightly], 20) == {"series_years": 1, "per_year": 1.0, "retracted": 0.0}
    assert peer_years([[[0]] * 41 + [[]]], 0)["retracted"] == 0
    assert peer_years([[[0]] * 39 + [[]]], 0)["retracted"] == 1


def test_the_rule_of_perfherder_needs_twelve_nights() -> None:
    made = nights(np.random.default_rng(SEED), 60, IID, step(30, 6.0))
    nightly = list(perfherder(made, 30))
    assert [bool(points) for points in nightly[:11]] == [False] * 11
    assert abs(nightly[14][0] - 30) <= 1
    assert perfherder_rule.changes(np.array([1.0] * 20 + [2.0] * 20)) == [20]
    assert perfherder_rule.changes(np.ones(60)) == []


def test_ours_says_nothing_on_a_missing_night() -> None:
    made = nights(np.random.default_rng(SEED), 60, IID)
    made[-1] = np.nan
    assert ours(made, 58)["history shift alone"][-1] == set()
