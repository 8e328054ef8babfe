"""One Python call, one PTX instruction: thin wrappers over pyptx that name the result register's type.

Every call that produces a value takes a fresh register, so that a kernel reads as a data flow. Registers that a loop or
a predicate overwrites are passed as ``into``. Float arithmetic is ``.rn`` throughout: without a rounding mode
ptxas may contract a multiplication and an addition, and the text would no longer fix the result.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from pyptx import ptx, reg, smem
from pyptx.types import f32, pred, u32, u64

Register = Any  # pyptx's registers and predicates are untyped
ALL_LANES = "0xFFFFFFFF"
NEGATIVE_INFINITY = float("-inf")


def emit(mnemonic: str, *operands: Any, when: Register | None = None) -> None:
    """Append one instruction, guarded by predicate ``when``."""
    node = ptx.inst
    for part in mnemonic.split("."):
        node = getattr(node, part)
    node(*operands, pred=when)


def producing(mnemonic: str, kind: Any) -> Callable[..., Register]:
    """A function that emits ``mnemonic`` on its operands into a fresh register of ``kind`` (or ``into``)."""

    def instruction(*operands: Any, into: Register | None = None, when: Register | None = None) -> Register:
        destination = reg.scalar(kind) if into is None else into
        emit(mnemonic, destination, *operands, when=when)
        return destination

    return instruction


fadd = producing("add.rn.f32", f32)
fsub = producing("sub.rn.f32", f32)
fmul = producing("mul.rn.f32", f32)
fma = producing("fma.rn.f32", f32)
fneg = producing("neg.f32", f32)
reciprocal = producing("rcp.rn.f32", f32)
log2 = producing("lg2.approx.f32", f32)
fmove = producing("mov.f32", f32)
fselect = producing("selp.f32", f32)
to_float = producing("cvt.rn.f32.u32", f32)

move = producing("mov.u32", u32)
add = producing("add.u32", u32)
subtract = producing("sub.u32", u32)
multiply = producing("mul.lo.u32", u32)
multiply_high = producing("mul.hi.u32", u32)
multiply_add = producing("mad.lo.u32", u32)
minimum = producing("min.u32", u32)
bit_and = producing("and.b32", u32)
shift_right = producing("shr.u32", u32)
count_ones = producing("popc.b32", u32)
reverse_bits = producing("brev.b32", u32)
leading_zeros = producing("clz.b32", u32)
select = producing("selp.u32", u32)
to_integer = producing("cvt.rzi.u32.f32", u32)
both = producing("and.pred", pred)

ballot = producing("vote.sync.ballot.b32", u32)
warp_sum = producing("redux.sync.add.u32", u32)
shuffle_up = producing("shfl.sync.up.b32", u32)
shuffle_from = producing("shfl.sync.idx.b32", u32)
shuffle_xor = producing("shfl.sync.bfly.b32", f32)

_KIND = {"f32": f32, "u32": u32, "u16": u32}


def literal(value: float) -> str:
    """PTX text of a float32 constant, bit for bit."""
    return "0f" + struct.pack(">f", value).hex().upper()


def zero() -> Register:
    """A register holding 0.0."""
    return fmove(literal(0.0))


def compare(relation: str, left: Register, right: Any) -> Register:
    """Predicate ``left relation right`` of unsigned integers: lt, le, gt, ge, eq or ne."""
    return producing(f"setp.{relation}.u32", pred)(left, right)


def exceeds(left: Register, right: Any) -> Register:
    """Predicate ``left > right`` of floats; false where either is NaN."""
    return producing("setp.gt.f32", pred)(left, right)


def load(
    kind: str, address: Register, offset: int = 0, *, into: Register | None = None, when: Register | None = None
) -> Register:
    """Load one value; ``kind`` is the space and type, such as ``global.nc.f32`` or ``shared.u16``."""
    value_type = _KIND[kind.rpartition(".")[2]]
    return producing(f"ld.{kind}", value_type)(ptx.addr(address, offset), into=into, when=when)


def load_four(kind: str, address: Register, offset: int = 0, *, when: Register | None = None) -> list[Register]:
    """Load four consecutive values with one instruction; with ``when``, lanes left out get all bits set."""
    space, _, value_type = kind.rpartition(".")
    values = [reg.scalar(_KIND[value_type]) for _ in range(4)]
    if when is not None:
        for value in values:
            move(ALL_LANES, into=value)
    emit(f"ld.{space}.v4.{value_type}", values, ptx.addr(address, offset), when=when)
    return values


def load_floats(kind: str, address: Register, count: int) -> list[Register]:
    """Load ``count`` (a multiple of 4) consecutive floats, four at a time; ``kind`` is shared or global.nc."""
    return [value for word in range(0, count, 4) for value in load_four(f"{kind}.f32", address, 4 * word)]


def store(kind: str, address: Register, value: Any, offset: int = 0, *, when: Register | None = None) -> None:
    """Store one value, or a list with a vector ``kind`` such as ``global.v4.f32``."""
    emit(f"st.{kind}", ptx.addr(address, offset), value, when=when)


def global_pointer(parameter: Any) -> Register:
    """Address in the global space of a kernel parameter."""
    generic = producing("ld.param.u64", u64)(ptx.addr(parameter))
    return producing("cvta.to.global.u64", u64)(generic)


def value_parameter(parameter: Any) -> Register:
    """A kernel parameter that is a number under 2**32; like every parameter here it takes 64 bits."""
    return producing("cvt.u32.u64", u32)(producing("ld.param.u64", u64)(ptx.addr(parameter)))


def element(base: Register, index: Register, size: int = 4) -> Register:
    """64-bit address of item ``index`` of ``size`` bytes."""
    return producing("mad.wide.u32", u64)(index, size, base)


def shared_array(name: str, words: int) -> Register:
    """32-bit address of ``words`` words of shared memory.

    The name is always given: pyptx's automatic ones count up over the whole process, and the text would change with
    it. Past 48 KiB pyptx turns every array into a slice of one dynamic allocation, whose start is then all that
    the name stands for.
    """
    allocation = smem.alloc(f32, words, align=16, name=name)
    start = move(allocation.name)
    return add(start, allocation.byte_offset) if allocation.name == "dyn_smem" else start
