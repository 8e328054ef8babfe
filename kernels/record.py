"""Variant ``record``: the geometry of the recorded system, 8 blocks of 512 and 32 blocks of 320 threads.

``stats`` takes 125 samples a block and leaves ten classes' partial moments; in ``score`` every block merges the
eight partial sums, factorises all ten covariances and scores its 32 queries. No class is whole in any block of
``stats``, so the moments are taken about the mean of the first four samples of the draw, which every block can read.
"""

from __future__ import annotations

from pyptx import Tile, kernel, ptx
from pyptx.types import f32, s32

from kernels.instructions import (
    ALL_LANES,
    Register,
    add,
    ballot,
    bit_and,
    both,
    compare,
    element,
    emit,
    fadd,
    fma,
    fmul,
    fsub,
    global_pointer,
    leading_zeros,
    literal,
    load,
    load_floats,
    minimum,
    move,
    multiply,
    multiply_add,
    reverse_bits,
    shared_array,
    store,
    subtract,
    to_integer,
    zero,
)
from kernels.qda import (
    CLASSES,
    FEATURES,
    MOMENTS,
    QUERIES,
    SAMPLES,
    SCORE_BLOCK,
    SCORE_GRID,
    TRIANGLE,
    Position,
    discriminant,
    divide_by,
    factorise,
    own_query,
    position,
    predict,
    row_and_column,
    write_status,
)

PARTS = 8
SAMPLES_PER_PART = SAMPLES // PARTS
PART_ROW = 64  # words of one class in one part: 55 moments, two for each lane
SAMPLE_ROW = FEATURES + 1  # words of one staged sample: 1, x0 ... x8
THREADS = 512
CENTRE_SAMPLES = 4  # of one sample, an outlying one lets the error of score differences grow beyond 5 %


@kernel(
    arch="sm_80",
    version=(7, 0),
    in_specs=(Tile(SAMPLES, FEATURES, f32), Tile(SAMPLES, s32)),
    out_specs=(Tile(PARTS, CLASSES, PART_ROW, f32),),
    grid=(PARTS, 1, 1),
    block=(THREADS, 1, 1),
    reqntid=(THREADS, 1, 1),
)
def stats(x, labels, partial):
    """partial[part, class] = packed moments of the class's samples among the part's 125."""
    x, labels, partial = global_pointer(x), global_pointer(labels), global_pointer(partial)
    at = position()
    samples = shared_array("samples", SAMPLES_PER_PART * SAMPLE_ROW)
    own_labels = _labels_of_part(labels, at.block, at.lane)
    _stage_centred(x, samples, at)
    ptx.bar.sync(0)
    ptx.ret(pred=compare("ge", at.warp, CLASSES))

    # One warp for each class, two packed moments for each lane; lanes past the 55th compute and do not store.
    products = []
    for half in range(2):
        row, column = row_and_column(add(at.lane, 32 * half))
        row, column = minimum(row, FEATURES), minimum(column, FEATURES)
        products.append((multiply_add(row, 4, samples), multiply_add(column, 4, samples), zero()))
    for group, label in enumerate(own_labels):
        members = ballot(compare("eq", label, at.warp), ALL_LANES)
        _accumulate_members(products, members, group)

    own = element(partial, multiply_add(multiply_add(at.block, CLASSES, at.warp), PART_ROW, at.lane))
    (_, _, low), (_, _, high) = products
    store("global.f32", own, low)
    store("global.f32", own, high, 4 * 32, when=compare("lt", at.lane, TRIANGLE - 32))
    ptx.ret()


def _labels_of_part(labels: Register, part: Register, lane: Register) -> list[Register]:
    """The part's 125 labels in every warp, four a lane; the lanes past the end get a label that is no class."""
    own = []
    for group in range(0, SAMPLES_PER_PART, 32):
        sample = add(lane, group)
        index = multiply_add(part, SAMPLES_PER_PART, sample)
        inside = compare("lt", sample, SAMPLES_PER_PART)
        own.append(load("global.nc.u32", element(labels, index), into=move(ALL_LANES), when=inside))
    return own


def _stage_centred(x: Register, samples: Register, at: Position) -> None:
    """Copy the part's samples to shared memory as rows (1, x - centre)."""
    words = SAMPLES_PER_PART * FEATURES
    fetched = []
    for start in range(0, words, THREADS):
        index = add(at.thread, start)
        inside = compare("lt", index, words)
        row, column = divide_by(FEATURES, index)
        value = load("global.nc.f32", element(x, multiply_add(at.block, words, index)), into=zero(), when=inside)
        centre = _centre(x, column, inside)
        fetched.append((inside, row, column, value, centre))
    for inside, row, column, value, centre in fetched:
        target = multiply_add(multiply_add(row, SAMPLE_ROW, column), 4, samples)
        store("shared.f32", target, fsub(value, centre), 4, when=inside)
    one = literal(1.0)
    own_row = multiply_add(at.thread, 4 * SAMPLE_ROW, samples)
    store("shared.f32", own_row, one, when=compare("lt", at.thread, SAMPLES_PER_PART))


def _centre(x: Register, feature: Register, when: Register | None = None) -> Register:
    """Mean of a feature over the first samples of the draw: the same bits wherever it is computed."""
    column = element(x, feature)
    values = [
        load("global.nc.f32", column, 4 * FEATURES * sample, into=zero(), when=when) for sample in range(CENTRE_SAMPLES)
    ]
    return fmul(_sum_in_order(values), literal(1.0 / CENTRE_SAMPLES))


def _accumulate_members(products: list[tuple[Register, Register, Register]], members: Register, group: int) -> None:
    """Add the products of every sample whose bit is set in ``members``, lowest bit first."""
    ptx.label(f"next_member_{group}")
    ptx.bra(f"no_more_{group}", pred=compare("eq", members, 0))
    lane_of_member = leading_zeros(reverse_bits(members))
    offset = multiply(add(lane_of_member, 32 * group), 4 * SAMPLE_ROW)
    for row, column, total in products:
        left = load("shared.f32", add(row, offset))
        right = load("shared.f32", add(column, offset))
        fma(left, right, total, into=total)
    bit_and(members, subtract(members, 1), into=members)
    ptx.bra(f"next_member_{group}")
    ptx.label(f"no_more_{group}")


@kernel(
    arch="sm_80",
    version=(7, 0),
    in_specs=(Tile(PARTS, CLASSES, PART_ROW, f32), Tile(SAMPLES, FEATURES, f32), Tile(QUERIES, FEATURES, f32)),
    out_specs=(Tile(QUERIES, s32), Tile(CLASSES, s32)),
    grid=SCORE_GRID,
    block=SCORE_BLOCK,
    reqntid=SCORE_BLOCK,
)
def score(partial, x, q, predictions, status):
    """Merge the parts, factorise, and predict 32 queries a block: warp = class, lane = query."""
    partial, x, q = global_pointer(partial), global_pointer(x), global_pointer(q)
    predictions, status = global_pointer(predictions), global_pointer(status)
    at = position()
    moments = shared_array("moments", CLASSES * PART_ROW)
    scores = shared_array("scores", CLASSES * 32)
    query, exists = own_query(at)
    row = element(q, query, 4 * FEATURES)
    features = [load("global.nc.f32", row, 4 * i, into=zero(), when=exists) for i in range(FEATURES)]
    centre = [_centre(x, move(feature)) for feature in range(FEATURES)]

    own = element(partial, multiply_add(at.warp, PART_ROW, at.lane))
    has_high = compare("lt", at.lane, TRIANGLE - 32)
    part_bytes = 4 * CLASSES * PART_ROW
    low = [load("global.nc.f32", own, part_bytes * part) for part in range(PARTS)]
    high = [load("global.nc.f32", own, part_bytes * part + 4 * 32, into=zero(), when=has_high) for part in range(PARTS)]
    merged = multiply_add(multiply_add(at.warp, PART_ROW, at.lane), 4, moments)
    store("shared.f32", merged, _sum_in_order(low))
    store("shared.f32", merged, _sum_in_order(high), 4 * 32)
    emit("bar.warp.sync", ALL_LANES)

    of_class = load_floats("shared", multiply_add(at.warp, 4 * PART_ROW, moments), MOMENTS)
    model, regular = factorise(of_class)
    first = both(compare("eq", at.block, 0), compare("eq", at.lane, 0))
    write_status(status, at.warp, to_integer(of_class[0]), regular, first)
    relative = [fsub(value, origin) for value, origin in zip(features, centre, strict=True)]
    predict(scores, discriminant(model, relative), at, predictions)


def _sum_in_order(values: list[Register]) -> Register:
    total = values[0]
    for value in values[1:]:
        total = fadd(total, value)
    return total
