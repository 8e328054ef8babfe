"""Instructions on registers against independent definitions: libm, exact fractions, Python integers."""

import ctypes
import ctypes.util
from fractions import Fraction

import numpy as np
import pytest

from gpu_tasks.devices.emulated.operations import OPERATIONS, fused_multiply_add
from tests.unit.gpu_tasks.devices.emulated.launching import OWN_WORD, module, run_small

F32 = np.float32


def adversarial_operands() -> list[np.ndarray]:
    """Triples around the points where rounding twice goes wrong: halfway cases, cancellation, subnormals, extremes."""
    rng = np.random.default_rng(5)
    odd_a, odd_b = (2 * rng.integers(2**11, 2896, 2000) + 1 for _ in range(2))  # products of 25 bits: halfway
    tiny = (F32(2) ** rng.integers(-60, -30, 2000) * rng.choice([-1, 1], 2000)).astype(F32)
    down = F32(2.0**-75)  # the same halfway points between subnormal numbers
    edges = np.array([0.0, -0.0, 1.0, -1.0, 2**-149, 2**-126, 3.4028235e38, -3.4028235e38, 2**-75, np.inf, np.nan], F32)
    a, b, c = (grid.ravel() for grid in np.meshgrid(edges, edges, edges))
    near = rng.normal(size=2000).astype(F32)
    return [
        np.concatenate([odd_a.astype(F32), odd_a * down, a, near]),
        np.concatenate([odd_b.astype(F32), odd_b * F32(2.0**-86), b, near]),
        np.concatenate([tiny, np.where(tiny > 0, F32(2**-149), F32(0)), c, -(near * near)]).astype(F32),
    ]


def random_operands() -> list[np.ndarray]:
    bits = np.random.default_rng(6).integers(0, 2**32, (3, 60_000), dtype=np.uint32)
    return list(bits.view(F32))


@pytest.mark.skipif(ctypes.util.find_library("m") is None, reason="no libm to compare with")
@pytest.mark.parametrize("operands", [adversarial_operands(), random_operands()], ids=["adversarial", "random"])
def test_fma_agrees_with_libm_bit_by_bit(operands):
    fmaf = ctypes.CDLL(ctypes.util.find_library("m")).fmaf
    fmaf.restype, fmaf.argtypes = ctypes.c_float, [ctypes.c_float] * 3
    with np.errstate(all="ignore"):
        found = fused_multiply_add(*operands)
    expected = np.array([fmaf(*values) for values in zip(*(o.tolist() for o in operands), strict=True)], F32)
    nan = np.isnan(expected)
    assert np.array_equal(np.isnan(found), nan)
    assert np.array_equal(found[~nan].view(np.uint32), expected[~nan].view(np.uint32))


def test_fma_is_the_nearest_float32_to_the_exact_sum():
    a, b, c = adversarial_operands()
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    a, b, c = a[finite], b[finite], c[finite]
    with np.errstate(all="ignore"):
        found = fused_multiply_add(a, b, c)
    for x, y, z, result in zip(a.tolist(), b.tolist(), c.tolist(), found, strict=True):
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        if np.isfinite(result):
            error = abs(Fraction(float(result)) - exact)
            assert all(error <= abs(Fraction(n) - exact) for n in neighbours(result))


def neighbours(value: np.float32) -> list[float]:
    """The finite float32 values next to ``value``."""
    with np.errstate(over="ignore"):
        both = [float(np.nextafter(value, F32(limit))) for limit in (-np.inf, np.inf)]
    return [n for n in both if np.isfinite(n)]


def test_plain_float64_is_not_enough_for_fma():
    a, b, c = adversarial_operands()
    with np.errstate(all="ignore"):
        twice_rounded = (a.astype(np.float64) * b + c).astype(F32)
        once_rounded = fused_multiply_add(a, b, c)
    differs = (twice_rounded != once_rounded) & np.isfinite(once_rounded)
    assert differs.sum() > 100


@pytest.mark.parametrize("name", ["div.rn.f32", "rcp.rn.f32", "sqrt.rn.f32"])
def test_division_and_root_are_correctly_rounded(name):
    bits = np.random.default_rng(7).integers(0, 0x7F800000, (2, 4000), dtype=np.uint32)
    a, b = bits.view(F32)
    operation = OPERATIONS[name]
    with np.errstate(all="ignore"):
        found = operation.function(*(a, b)[: len(operation.operands)]).astype(F32)
    for x, y, result in zip(a.tolist(), b.tolist(), found, strict=True):
        if not np.isfinite(result) or not x or not y:
            continue
        for neighbour in neighbours(result):
            halfway = (Fraction(float(result)) + Fraction(neighbour)) / 2
            # Comparing squares, or multiplied out, avoids the root and the quotient themselves.
            exact, bound = {
                "div.rn.f32": (Fraction(x), halfway * Fraction(y)),
                "rcp.rn.f32": (Fraction(1), halfway * Fraction(x)),
                "sqrt.rn.f32": (Fraction(x), halfway * abs(halfway)),
            }[name]
            assert exact >= bound if neighbour < result else exact <= bound


PAIRS = [(0, 0), (1, 31), (5, 32), (0xFFFFFFFF, 1), (0x80000000, 0xFFFFFFFF), (123456789, 4), (7, 0xFFFFFFFF)]


def signed(value: int) -> int:
    return value - 2**32 if value >> 31 else value


INTEGER = {
    "add.u32": lambda a, b: a + b,
    "sub.u32": lambda a, b: a - b,
    "mul.lo.u32": lambda a, b: a * b,
    "mul.hi.u32": lambda a, b: a * b >> 32,
    "min.u32": min,
    "max.u32": max,
    "min.s32": lambda a, b: min(signed(a), signed(b)),
    "max.s32": lambda a, b: max(signed(a), signed(b)),
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
    "shl.b32": lambda a, b: a << b if b < 32 else 0,
    "shr.u32": lambda a, b: a >> b if b < 32 else 0,
    "shr.s32": lambda a, b: signed(a) >> min(b, 31),
}


@pytest.mark.parametrize("mnemonic", INTEGER)
def test_integer_instructions(mnemonic):
    pairs = np.array((PAIRS * 5)[:32], np.uint32)
    kind = ".s32" if mnemonic.endswith("s32") else ".u32"
    body = f"""{OWN_WORD} ld.param.u64 %rd3, [a]; mad.wide.u32 %rd4, %r0, 8, %rd3;
    ld.global.nc.v2.u32 {{%r4, %r5}}, [%rd4]; {mnemonic} %r6, %r4, %r5; st.global{kind} [%rd2], %r6;"""
    found = run_small(module(body, parameters="out a"), inputs={"a": pairs})
    assert found.tolist() == [INTEGER[mnemonic](int(a), int(b)) % 2**32 for a, b in pairs]


@pytest.mark.parametrize(
    ("mnemonic", "value", "expected"),
    [
        ("popc.b32", 0xF0F00001, 9),
        ("brev.b32", 0x00000005, 0xA0000000),
        ("clz.b32", 0x00008000, 16),
        ("clz.b32", 0, 32),
        ("clz.b32", 0xFFFFFFFF, 0),
        ("not.b32", 0x0F0F0F0F, 0xF0F0F0F0),
    ],
)
def test_bit_instructions(mnemonic, value, expected):
    body = f"{OWN_WORD} mov.u32 %r4, {value}; {mnemonic} %r5, %r4; st.global.u32 [%rd2], %r5;"
    assert (run_small(module(body)) == expected).all()


@pytest.mark.parametrize(
    ("mode", "distance", "clamp", "source"),
    [
        ("up", 3, 0, lambda lane: lane - 3 if lane >= 3 else lane),
        ("down", 3, 31, lambda lane: lane + 3 if lane + 3 < 32 else lane),
        ("bfly", 16, 31, lambda lane: lane ^ 16),
        ("idx", 7, 31, lambda lane: 7),
        ("idx", 2, 0x181F, lambda lane: lane // 8 * 8 + 2),
        ("down", 1, 0x181F, lambda lane: lane + 1 if lane % 8 < 7 else lane),
    ],
)
def test_shuffles(mode, distance, clamp, source):
    body = f"{OWN_WORD} shfl.sync.{mode}.b32 %b0, %r0, {distance}, {clamp}, 0xFFFFFFFF; st.global.b32 [%rd2], %b0;"
    assert run_small(module(body)).tolist() == [source(lane) for lane in range(32)]


def test_votes_and_reductions_are_of_one_warp():
    body = f"""{OWN_WORD} setp.lt.u32 %p0, %r3, 35; vote.sync.ballot.b32 %r4, %p0, -1;
    redux.sync.add.u32 %r5, %r3, -1; vote.sync.all.pred %p1, %p0, -1; selp.u32 %r6, 1000000, 0, %p1;
    add.u32 %r7, %r5, %r6; xor.b32 %r8, %r4, %r7; st.global.u32 [%rd2], %r8;"""
    found = run_small(module(body), block=64)
    assert (found[:32] == 0xFFFFFFFF ^ (sum(range(32)) + 1000000)).all()
    assert (found[32:] == 0b111 ^ sum(range(32, 64))).all()


@pytest.mark.parametrize(
    ("value", "expected"), [(3.99, 3), (-1.0, 0), (float("nan"), 0), (1e20, 2**32 - 1), (16777217.0, 16777216)]
)
def test_conversion_to_integer_truncates_and_saturates(value, expected):
    with np.errstate(all="ignore"):
        assert OPERATIONS["cvt.rzi.u32.f32"].function(np.array([value], F32)).tolist() == [expected]


@pytest.mark.parametrize("relation", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons_with_nan_are_false(relation):
    nan = np.array([np.nan, 1.0], F32)
    assert not OPERATIONS[f"setp.{relation}.f32"].function(nan, nan[::-1]).any()


def test_the_logarithm_is_within_half_a_unit_in_the_last_place():
    values = np.random.default_rng(8).uniform(1e-6, 100, 1000).astype(F32)
    exact = np.log2(values.astype(np.float64))
    found = OPERATIONS["lg2.approx.f32"].function(values).astype(F32)
    assert (np.abs(found - exact) <= np.spacing(np.abs(found)) / 2).all()


@pytest.mark.parametrize(
    "instruction",
    [
        "add.rn.f32 %f2, %f0, %f1;",
        "sub.rn.f32 %f2, %f0, %f1;",
        "mul.rn.f32 %f2, %f0, %f1;",
        "div.rn.f32 %f2, %f0, %f1;",
        "fma.rn.f32 %f2, %f0, %f1, %f1;",
        "rcp.rn.f32 %f2, %f0;",
        "sqrt.rn.f32 %f2, %f0;",
        "lg2.approx.f32 %f2, %f0;",
    ],
)
@pytest.mark.parametrize("operand", ["0fFFC12345", "0f7F812345", "0f7FC00000"])
def test_a_result_that_is_not_a_number_has_the_bits_that_hardware_gives_it(instruction, operand):
    body = f"{OWN_WORD} setp.lt.u32 %p0, %r0, 16; mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f3F800000;"
    body += f" @%p0 mov.f32 %f0, {operand}; {instruction} st.global.f32 [%rd2], %f2;"
    found = run_small(module(body))
    assert (found[:16] == 0x7FFFFFFF).all()
    assert np.isfinite(found[16:].view(F32)).all()


@pytest.mark.parametrize(
    "instruction",
    [
        "div.rn.f32 %f2, 0f00000000, 0f00000000;",
        "sub.rn.f32 %f2, 0f7F800000, 0f7F800000;",
        "sqrt.rn.f32 %f2, 0fBF800000;",
    ],
)
def test_invalid_operations_give_the_same_bits(instruction):
    assert (run_small(module(f"{OWN_WORD} {instruction} st.global.f32 [%rd2], %f2;")) == 0x7FFFFFFF).all()


def test_moving_and_selecting_keep_the_bits_of_what_is_not_a_number():
    body = f"""{OWN_WORD} setp.lt.u32 %p0, %r0, 32; mov.f32 %f0, 0fFF812345;
    selp.f32 %f1, %f0, %f0, %p0; st.global.f32 [%rd2], %f1;"""
    assert (run_small(module(body)) == 0xFF812345).all()
