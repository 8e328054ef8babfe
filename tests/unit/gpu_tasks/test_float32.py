"""fma against exact rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_tasks.float32 import fma

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
LARGEST = Fraction(float(np.finfo(np.float32).max))
HALF_STEP_ABOVE = LARGEST + Fraction(2) ** 103


def nearest_float32(exact: Fraction) -> float:
    """Round to nearest, ties to even, from the definition: no floating point takes part."""
    if abs(exact) >= HALF_STEP_ABOVE:
        return math.copysign(math.inf, exact)
    exponent = -149
    while abs(exact) >= Fraction(2) ** (exponent + 24):
        exponent += 1
    scaled = exact / Fraction(2) ** exponent
    return float(round(scaled) * Fraction(2) ** exponent)  # round() of a Fraction goes to even


def assert_exact(a: float, b: float, c: float) -> None:
    found = float(fma(np.float32([a]), np.float32([b]), np.float32([c]))[0])
    assert found == nearest_float32(Fraction(a) * Fraction(b) + Fraction(c)), (a, b, c)


@settings(max_examples=500)
@given(FLOATS, FLOATS, FLOATS)
def test_any_values(a: float, b: float, c: float) -> None:
    assert_exact(a, b, c)


@settings(max_examples=500)
@given(st.integers(2**23, 2**24 - 1), st.integers(2**23, 2**24 - 1), st.integers(-60, 60), st.sampled_from([-1, 1]))
def test_sums_that_almost_tie(m: int, n: int, shift: int, sign: int) -> None:
    """A product of 48 bits next to an addend far below or above it: what double rounding gets wrong."""
    assert_exact(float(m), float(n), float(np.float32(sign * m * 2.0**shift)))


def test_halfway_products_nudged_by_a_tiny_addend() -> None:
    """(1 + 2^-12)^2 has its last bit at 2^-24, exactly half a float32 step: the addend alone decides."""
    a = 1 + 2.0**-12
    for exponent in range(-149, -50):
        for sign in (-1.0, 1.0):
            assert_exact(a, a, sign * 2.0**exponent)
            assert_exact(-a, a, sign * 2.0**exponent)


def test_rounding_twice_would_be_seen() -> None:
    a, c = np.float32([1 + 2.0**-12]), np.float32([2.0**-100])
    rounded_twice = (a.astype(np.float64) * a + c.astype(np.float64)).astype(np.float32)
    assert fma(a, a, c) != rounded_twice


@pytest.mark.parametrize(
    ("a", "b", "c", "expected"),
    [
        (math.inf, 0.0, 1.0, math.nan),
        (math.inf, 1.0, -math.inf, math.nan),
        (math.inf, 2.0, 1.0, math.inf),
        (math.inf, -2.0, 1.0, -math.inf),
        (1.0, 1.0, math.nan, math.nan),
        (3e38, 3e38, -3e38, math.inf),
        (1e-38, 1e-38, 0.0, 0.0),
    ],
)
def test_special_values(a: float, b: float, c: float, expected: float) -> None:
    np.testing.assert_equal(float(fma(np.float32([a]), np.float32([b]), np.float32([c]))[0]), np.float32(expected))


def test_broadcasts_and_keeps_scalars() -> None:
    assert fma(np.ones((2, 1), np.float32), np.ones((1, 3), np.float32), np.float32(1)).tolist() == [[2.0] * 3] * 2
    assert fma(np.float32(2), np.float32(3), np.float32(1)).shape == ()
