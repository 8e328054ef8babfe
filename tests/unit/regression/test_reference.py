"""The reference: evidence is standard normal while nothing changes, and smaller for what is not known exactly."""

from __future__ import annotations

import numpy as np
import pytest

from regression.detectors.reference import Reference, hold_against, learn, ramp_evidence, raw_threshold, step_evidence
from regression.detectors.series import Floats


def correlated(rng: np.random.Generator, count: int, phi: float) -> Floats:
    made = rng.normal(size=count)
    for night in range(1, count):
        made[night] = phi * made[night - 1] + (1 - phi**2) ** 0.5 * made[night]
    return made


@pytest.mark.parametrize(("count", "phi"), [(20, 0.0), (40, 0.0), (180, 0.0), (180, 0.4), (180, 0.7)])
def test_evidence_is_standard_normal_or_less_while_nothing_changes(count: int, phi: float) -> None:
    """Little history, an unknown level and correlation all make it smaller, never larger."""
    rng, found, window = np.random.default_rng(1), [], 4 if count < 100 else 10
    for _ in range(700):
        made = correlated(rng, count + window, phi)
        reference = learn(made[:count], np.ones(count - 1))
        found.append(step_evidence(reference, hold_against(reference, made[count - 1 :], np.ones(window), 99.0)))
    assert np.std(found, axis=0) == pytest.approx(0.97, abs=0.12)
    assert np.mean(np.abs(found) > 2.576) < 0.02


def test_evidence_of_the_first_night_is_what_one_night_is_worth() -> None:
    """A shift of four standard deviations, on a level known from 180 nights, gives four; from 12 it is worth less."""
    reference = Reference(10.0, 2.0, 0.0, 0.0, None, 180, 0.0, 1e6)
    recent = hold_against(reference, np.array([10.0, 10.0, 18.0]), np.ones(2), 99.0)
    assert step_evidence(reference, recent) == pytest.approx([4 / 2**0.5, 4.0], abs=1e-3)
    short = Reference(10.0, 2.0, 0.0, 0.0, None, 12, 1 / 12, 9.0)
    assert step_evidence(short, recent)[-1] < 3
    assert raw_threshold(reference, 4.0) == pytest.approx(4, abs=1e-3)
    assert raw_threshold(short, 4.0) == pytest.approx(7.0, abs=0.01)


def test_an_error_of_the_level_makes_a_long_shift_worth_less() -> None:
    """Ten nights of one standard deviation more: as good as 3.2, were the level known; it comes from twelve nights."""
    known = Reference(0.0, 1.0, 0.0, 0.0, None, 12, 0.0, 1e6)
    short = Reference(0.0, 1.0, 0.0, 0.0, None, 12, 1 / 12, 1e6)
    nights = np.array([0.0, *[1.0] * 10])
    worth = [step_evidence(r, hold_against(r, nights, np.ones(10), 99.0))[0] for r in (known, short)]
    assert worth == pytest.approx([10**0.5, 10 / (10 + 100 / 12) ** 0.5], abs=1e-3)


def test_the_correlation_is_taken_half_a_standard_error_higher_than_it_was_found() -> None:
    found = learn(correlated(np.random.default_rng(8), 180, 0.5), np.ones(179))
    error = ((1 - found.phi_estimate**2) / 179) ** 0.5
    assert found.phi == pytest.approx(found.phi_estimate + error / 2)
    assert learn(np.array([1.0, -1.0] * 20) + np.arange(40) / 100, np.ones(39)).phi == 0


def test_a_missing_night_lets_the_correlation_fade() -> None:
    reference = Reference(0.0, 1.0, 0.5, 0.5, None, 180, 0.0, 1e6)
    near = hold_against(reference, np.array([2.0, 2.0]), np.array([1.0]), 99.0)
    far = hold_against(reference, np.array([2.0, 2.0]), np.array([3.0]), 99.0)
    assert near.residual == pytest.approx([1 / 0.75**0.5])
    assert far.residual == pytest.approx([1.75 / (1 - 0.5**6) ** 0.5])


def test_the_night_after_a_wild_one_is_not_told_for_it() -> None:
    """Without pulling it in, a wild night would have the next one expected far up, and found far down."""
    reference = Reference(0.0, 1.0, 0.5, 0.5, None, 180, 0.0, 1e6)
    assert hold_against(reference, np.array([30.0, 0.0]), np.ones(1), 99.0).residual == pytest.approx(
        [-1.5 / 0.75**0.5]
    )


def test_heavy_tails_make_a_wild_night_worth_less() -> None:
    made = np.random.default_rng(2).standard_t(3, 180)
    heavy = learn(made, np.ones(179))
    assert heavy.tail is not None
    normal = Reference(heavy.location, heavy.scale, heavy.phi, 0.0, None, 180, heavy.level_error, heavy.freedom)
    wild = np.array([0.0, 6 * heavy.scale])
    worth = [step_evidence(r, hold_against(r, wild, np.ones(1), 99.0))[0] for r in (heavy, normal)]
    assert worth[0] < 3.5 < worth[1]


@pytest.mark.parametrize("phi", [0.0, 0.5])
def test_a_shape_is_found_at_its_size(phi: float) -> None:
    reference = Reference(0.0, 1.0, phi, phi, None, 180, 0.0, 1e6)
    ramp = np.arange(1.0, 9.0)
    recent = hold_against(reference, np.concatenate([[0.0], 0.3 * ramp]), np.ones(8), 99.0)
    evidence, size = ramp_evidence(reference, recent, np.stack([ramp, ramp[::-1]]))
    assert size[0] == pytest.approx(0.3)
    assert evidence[0] > evidence[1]


def test_a_step_is_the_shape_of_equal_nights() -> None:
    reference = learn(correlated(np.random.default_rng(3), 100, 0.4), np.ones(99))
    recent = hold_against(reference, np.random.default_rng(4).normal(size=7), np.ones(6), 99.0)
    shapes = np.triu(np.ones((6, 6)))
    assert ramp_evidence(reference, recent, shapes)[0] == pytest.approx(step_evidence(reference, recent))


def test_mostly_equal_nights_keep_a_scale() -> None:
    """A heavy tail that is fitted to them would shrink to nothing, and make everything a finding."""
    made = np.array([5.0] * 40 + [5.1] + [5.0] * 40)
    assert learn(made, np.ones(80)).scale == pytest.approx(0.1 * np.std(made))
