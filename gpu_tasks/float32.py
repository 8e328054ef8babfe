"""Correctly rounded float32 fused multiply-add in numpy, independent of the machine's FMA unit and of any BLAS."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Float32Array = npt.NDArray[np.float32]


def fma(a: Float32Array, b: Float32Array, c: Float32Array) -> Float32Array:
    """``a * b + c`` with a single rounding to nearest even, element by element with broadcasting.

    The product of two float32 values is exact in float64 (48 of 53 bits), so only the sum can round. Rounding it to
    float64 and again to float32 would round twice; the float64 sum is therefore rounded to odd, which keeps the one
    bit of information that the second rounding needs (Boldo and Melquiond, "Emulation of FMA and correctly rounded
    sums: proved algorithms using rounding to odd", IEEE Transactions on Computers 57(4), 2008). The error of the
    sum comes from Knuth's TwoSum. Infinity and NaN follow IEEE 754; overflow gives infinity without a warning.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        product = np.asarray(np.multiply(a, b, dtype=np.float64))
        addend = np.asarray(c, dtype=np.float64)
        total = np.atleast_1d(product + addend)
        addend_seen = total - product
        error = (product - (total - addend_seen)) + (addend - addend_seen)
        rounded = _round_to_odd(total, error).astype(np.float32)
    return rounded.reshape(np.broadcast_shapes(product.shape, addend.shape))


def _round_to_odd(total: npt.NDArray[np.float64], error: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    bits = total.view(np.int64)
    inexact_and_even = (error != 0) & np.isfinite(total) & ((bits & 1) == 0)
    step = np.where((error > 0) == (total > 0), 1, -1)
    odd: npt.NDArray[np.float64] = (bits + inexact_and_even * step).view(np.float64)
    return odd
