"""What the instructions on registers mean: full mnemonic, types of result and operands, and a function of arrays.

A mnemonic that is not in ``OPERATIONS``, ``WARP_OPERATIONS`` or ``instructions`` does not exist here. Floats carry
``.rn`` because without it ptxas may contract operations and the text would not fix the result. numpy's float32
``+ - *`` and ``sqrt`` are IEEE 754 round-to-nearest-even with subnormals, which is what the instructions without
``.ftz`` do. Float arithmetic is rounded once, to float32, and a result that is not a number has the one bit pattern
that hardware gives it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

DTYPES: dict[str, type[np.generic]] = {
    "pred": np.bool_,
    "b16": np.uint16,
    "u16": np.uint16,
    "s16": np.int16,
    "b32": np.uint32,
    "u32": np.uint32,
    "s32": np.int32,
    "f32": np.float32,
    "b64": np.uint64,
    "u64": np.uint64,
    "s64": np.int64,
}

WARP = 32
_NOT_A_NUMBER = np.uint32(0x7FFFFFFF).view(np.float32)  # PTX ISA, floating point: the canonical one
_SMALLEST_NORMAL = 2.0**-126
_BELOW_FLOAT32 = np.int64(0x1FFFFFFF)  # bits of a float64 significand that float32 has no room for
_HALFWAY = np.int64(0x10000000)


class Operation(NamedTuple):
    """Types of result and operands, and the function from operand arrays to the result array."""

    result: str
    operands: tuple[str, ...]
    function: Callable[..., Any]


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """Correctly rounded float32 ``a * b + c``.

    The product is exact in float64; the sum is not always, and rounding it twice is wrong exactly where the first
    rounding hits a point halfway between two float32 values (or, for subnormal results, where those lie wider). Only
    there is the sum redone with rounding to odd, which makes the second rounding innocuous (Boldo and Melquiond,
    Emulation of a FMA and correctly rounded sums, 2008).
    """
    product = np.multiply(a, b, dtype=np.float64)
    addend = np.asarray(c, dtype=np.float64)
    total = product + addend
    size = np.abs(total)
    doubtful = (total.view(np.int64) & _BELOW_FLOAT32) == _HALFWAY
    doubtful |= (size < _SMALLEST_NORMAL) & (size > 0)
    if doubtful.any():
        total = np.where(doubtful, _add_to_odd(product, addend), total)
    return total.astype(np.float32)


def _add_to_odd(a: Array, b: Array) -> Array:
    """float64 sum rounded to odd: where inexact, of the two neighbours the one with an odd significand."""
    total = a + b
    back = total - a
    error = (a - (total - back)) + (b - back)  # exact (Knuth's TwoSum)
    bits = total.view(np.int64)
    towards = np.where((error > 0) == (total > 0), 1, -1)
    change = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    return np.asarray(np.where(change, bits + towards, bits)).view(np.float64)


def _in_float64(function: Callable[..., Array]) -> Callable[..., Array]:
    """Evaluate in float64 and round once more: innocuous for one division, as 53 >= 2 * 24 + 2."""
    return lambda *operands: function(*[np.asarray(x, dtype=np.float64) for x in operands])


def _canonical(function: Callable[..., Array]) -> Callable[..., Array]:
    """float32 results, all that are not numbers with the same bits."""

    def evaluate(*operands: Array) -> Array:
        result = np.asarray(function(*operands), np.float32)
        odd = np.isnan(result)
        return np.where(odd, _NOT_A_NUMBER, result) if odd.any() else result

    return evaluate


def _shift_left(value: Array, amount: Array) -> Array:
    return np.where(amount < 32, value << (amount & np.uint32(31)), np.uint32(0))


def _shift_right(value: Array, amount: Array) -> Array:
    return np.where(amount < 32, value >> (amount & np.uint32(31)), np.uint32(0))


def _shift_right_signed(value: Array, amount: Array) -> Array:
    return value >> np.minimum(amount, np.uint32(31)).astype(np.int32)


def _widen(value: Array) -> Array:
    return value.astype(np.uint64)


def _leading_zeros(value: Array) -> Array:
    return 32 - np.frexp(value.astype(np.float64))[1]


def _reverse_bits(value: Array) -> Array:
    for step, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0x0000FFFF)):
        value = ((value >> np.uint32(step)) & np.uint32(mask)) | ((value & np.uint32(mask)) << np.uint32(step))
    return value


def _truncate_to_u32(value: Array) -> Array:
    """Towards zero, saturating; NaN becomes 0."""
    return np.nan_to_num(np.clip(value.astype(np.float64), 0, 2**32 - 1)).astype(np.uint32)


def _same(value: Array) -> Array:
    return value


def _base_2_logarithm(value: Array) -> Array:
    """Rounded from float64. The hardware's result may differ: by up to 2**-22, absolute for operands in (0.5, 2),
    relative elsewhere (PTX ISA, ``lg2``). It is the one instruction whose bits are not the hardware's."""
    return np.log2(value.astype(np.float64))


_RELATIONS: dict[str, Callable[..., Array]] = {
    "eq": np.equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _table() -> dict[str, Operation]:
    table: dict[str, Operation] = {}

    def define(mnemonic: str, result: str, operands: str, function: Callable[..., Any]) -> None:
        table[mnemonic] = Operation(result, tuple(operands.split()), function)

    define("add.rn.f32", "f32", "f32 f32", _canonical(np.add))
    define("sub.rn.f32", "f32", "f32 f32", _canonical(np.subtract))
    define("mul.rn.f32", "f32", "f32 f32", _canonical(np.multiply))
    define("fma.rn.f32", "f32", "f32 f32 f32", _canonical(fused_multiply_add))
    define("div.rn.f32", "f32", "f32 f32", _canonical(_in_float64(np.divide)))
    define("rcp.rn.f32", "f32", "f32", _canonical(_in_float64(np.reciprocal)))
    define("sqrt.rn.f32", "f32", "f32", _canonical(np.sqrt))
    define("neg.f32", "f32", "f32", np.negative)
    define("abs.f32", "f32", "f32", np.abs)
    define("lg2.approx.f32", "f32", "f32", _canonical(_base_2_logarithm))

    for kind in ("u32", "s32", "u64", "s64"):
        define(f"add.{kind}", kind, f"{kind} {kind}", np.add)
        define(f"sub.{kind}", kind, f"{kind} {kind}", np.subtract)
        define(f"min.{kind}", kind, f"{kind} {kind}", np.minimum)
        define(f"max.{kind}", kind, f"{kind} {kind}", np.maximum)
        define(f"mul.lo.{kind}", kind, f"{kind} {kind}", np.multiply)
        define(f"mad.lo.{kind}", kind, f"{kind} {kind} {kind}", lambda a, b, c: a * b + c)
    define("mul.hi.u32", "u32", "u32 u32", lambda a, b: (_widen(a) * b) >> np.uint64(32))
    define("mul.wide.u32", "u64", "u32 u32", lambda a, b: _widen(a) * b)
    define("mad.wide.u32", "u64", "u32 u32 u64", lambda a, b, c: _widen(a) * b + c)

    for kind in ("b32", "b64", "pred"):
        define(f"and.{kind}", kind, f"{kind} {kind}", np.bitwise_and)
        define(f"or.{kind}", kind, f"{kind} {kind}", np.bitwise_or)
        define(f"xor.{kind}", kind, f"{kind} {kind}", np.bitwise_xor)
        define(f"not.{kind}", kind, kind, np.invert)
    define("shl.b32", "b32", "b32 u32", _shift_left)
    define("shr.u32", "u32", "u32 u32", _shift_right)
    define("shr.b32", "b32", "b32 u32", _shift_right)
    define("shr.s32", "s32", "s32 u32", _shift_right_signed)
    define("popc.b32", "u32", "b32", np.bitwise_count)
    define("clz.b32", "u32", "b32", _leading_zeros)
    define("brev.b32", "b32", "b32", _reverse_bits)

    for kind in ("u16", "b16", "u32", "s32", "b32", "f32", "u64", "s64", "b64", "pred"):
        define(f"mov.{kind}", kind, kind, _same)
    for kind in ("u32", "s32", "b32", "f32", "u64", "s64", "b64"):
        define(f"selp.{kind}", kind, f"{kind} {kind} pred", lambda a, b, p: np.where(p, a, b))
    for kind in ("u32", "s32", "f32", "u64", "s64"):
        for relation, compare in _RELATIONS.items():
            define(f"setp.{relation}.{kind}", "pred", f"{kind} {kind}", compare)
        # Of floats this is the ordered comparison: false where either is NaN.
        define(f"setp.ne.{kind}", "pred", f"{kind} {kind}", lambda a, b: (a < b) | (a > b))

    define("cvt.rn.f32.u32", "f32", "u32", _same)
    define("cvt.rn.f32.s32", "f32", "s32", _same)
    define("cvt.rzi.u32.f32", "u32", "f32", _truncate_to_u32)
    define("cvt.u64.u32", "u64", "u32", _same)
    define("cvt.u32.u64", "u32", "u64", _same)
    define("cvt.u32.u16", "u32", "u16", _same)
    define("cvt.u16.u32", "u16", "u32", _same)
    define("cvta.to.global.u64", "u64", "u64", _same)
    return table


OPERATIONS = _table()


def _shuffle(mode: str) -> Callable[..., Array]:
    """PTX ISA, ``shfl.sync``: the clamp operand holds a bound in bits 0-4 and a mask of segment bits in 8-12."""

    def shuffle(values: Array, distance: Array, clamp: Array) -> Array:
        lane, by = np.arange(WARP), distance.astype(np.int64) & 31
        segment, bound = (clamp.astype(np.int64) >> 8) & 31, clamp.astype(np.int64) & 31
        last = (lane & segment) | (bound & ~segment)
        if mode == "up":
            chosen = lane - by
            valid = chosen >= last
        else:
            indexed = (lane & segment) | (by & ~segment)
            chosen = {"down": lane + by, "bfly": lane ^ by, "idx": indexed}[mode]
            valid = chosen <= last
        return np.take_along_axis(values, np.where(valid, chosen, lane), axis=1)

    return shuffle


def _ballot(votes: Array) -> Any:
    return (votes * (np.uint32(1) << np.arange(WARP, dtype=np.uint32))).sum(axis=1, keepdims=True, dtype=np.uint32)


# On arrays of (warps, 32 lanes); a result of one column is every lane's.
WARP_OPERATIONS = {
    **{
        f"shfl.sync.{mode}.b32": Operation("b32", ("b32", "u32", "u32"), _shuffle(mode))
        for mode in ("up", "down", "bfly", "idx")
    },
    "vote.sync.ballot.b32": Operation("b32", ("pred",), _ballot),
    "vote.sync.any.pred": Operation("pred", ("pred",), lambda votes: votes.any(axis=1, keepdims=True)),
    "vote.sync.all.pred": Operation("pred", ("pred",), lambda votes: votes.all(axis=1, keepdims=True)),
    "redux.sync.add.u32": Operation("u32", ("u32",), lambda v: np.add.reduce(v, axis=1, keepdims=True)),
    "redux.sync.min.u32": Operation("u32", ("u32",), lambda v: v.min(axis=1, keepdims=True)),
    "redux.sync.max.u32": Operation("u32", ("u32",), lambda v: v.max(axis=1, keepdims=True)),
}
