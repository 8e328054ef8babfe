"""The control: one warp that spins, to be replayed in a graph of the task's shape and as long as the task takes.

What it costs above an idle GPU is what context, clocks and launches cost, and next to no work: a chain of dependent
operations on registers, no loads, and one store a lane at the end so that the chain cannot be removed. The chain is
the logistic map, three roundings an iteration: integers a compiler might combine over several iterations, this it may
not. Started in (0, 1) it stays within, for ever and in every rounding.
"""

from __future__ import annotations

from pyptx import Tile, kernel, ptx
from pyptx.types import f32

from kernels.instructions import (
    add,
    compare,
    element,
    fmul,
    fsub,
    global_pointer,
    literal,
    move,
    store,
    subtract,
    to_float,
    value_parameter,
)

LANES = 32
GROWTH = 3.75
START = 1.0 / 64  # lane i starts at (i + 1) / 64


@kernel(
    arch="sm_80",
    version=(7, 0),
    out_specs=(Tile(LANES, f32),),
    grid=(1, 1, 1),
    block=(LANES, 1, 1),
    reqntid=(LANES, 1, 1),
)
def control(result, iterations):
    """Iterate ``x <- 3.75 * (x * (1 - x))`` as often as ``iterations`` says, and store x, a lane a word."""
    result, left = global_pointer(result), value_parameter(iterations)
    lane = move(ptx.special.tid.x())
    one, growth = literal(1.0), literal(GROWTH)
    x = fmul(to_float(add(lane, 1)), literal(START))

    ptx.label("spin")
    ptx.bra("spun", pred=compare("eq", left, 0))
    fmul(fmul(x, fsub(one, x)), growth, into=x)
    subtract(left, 1, into=left)
    ptx.bra("spin")
    ptx.label("spun")

    store("global.f32", element(result, lane), x)
    ptx.ret()
