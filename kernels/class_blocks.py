"""Variant ``class_blocks``, the default: one block of 512 threads trains one class, then 32 blocks of 320 score.

A class is whole in its block, so its moments are taken about its own first sample (exact to subtract, close to the
mean, and the same whatever the data are translated by), and it is factorised once instead of in all 32 blocks.
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
    count_ones,
    element,
    emit,
    fadd,
    fma,
    fsub,
    global_pointer,
    literal,
    load,
    load_floats,
    move,
    multiply,
    multiply_add,
    select,
    shared_array,
    store,
    warp_sum,
    zero,
)
from kernels.qda import (
    CLASSES,
    FEATURES,
    MOMENTS,
    QUERIES,
    QUERIES_PER_BLOCK,
    SAMPLES,
    SCORE_BLOCK,
    SCORE_GRID,
    TRIANGLE,
    Model,
    Position,
    discriminant,
    divide_by,
    factorise,
    fetch_query_word,
    position,
    predict,
    row_and_column,
    stage_query_word,
    staged_query,
    write_status,
)

THREADS = 512
SLICES = THREADS // TRIANGLE  # threads that share one moment; each takes every ninth sample
SAMPLE_ROW = FEATURES + 2  # words of a gathered sample: 1, x0 ... x8, and one to keep the stride odd
MODEL_ROW = 64  # words of one class: centre 9, mean 9, multipliers 36, weights 9, constant 1


@kernel(
    arch="sm_80",
    version=(7, 0),
    in_specs=(Tile(SAMPLES, FEATURES, f32), Tile(SAMPLES, s32)),
    out_specs=(Tile(CLASSES, MODEL_ROW, f32), Tile(CLASSES, s32)),
    grid=(CLASSES, 1, 1),
    block=(THREADS, 1, 1),
    reqntid=(THREADS, 1, 1),
)
def train(x, labels, model, status):
    """model[class] = everything ``score`` needs; block = class."""
    x, labels = global_pointer(x), global_pointer(labels)
    model, status = global_pointer(model), global_pointer(status)
    at = position()
    rows = shared_array("rows", SAMPLES * SAMPLE_ROW)
    counts = shared_array("counts", 32)
    partial = shared_array("partial", SLICES * TRIANGLE)
    moments = shared_array("moments", MOMENTS)

    count = _gather_class(x, labels, rows, counts, at)
    ptx.bar.sync(0)
    # An empty class has no first sample: it is trained on nothing, comes out as NaN, and the status says so.
    not_empty = compare("ne", count, 0)
    _sum_slices(rows, partial, count, not_empty, at)
    ptx.bar.sync(0)
    ptx.ret(pred=compare("ne", at.warp, 0))

    _merge_slices(partial, moments, at.lane)
    emit("bar.warp.sync", ALL_LANES)
    fitted, regular = factorise(load_floats("shared", moments, MOMENTS))
    centre = [load("shared.f32", rows, 4 + 4 * i, into=zero(), when=not_empty) for i in range(FEATURES)]
    words = [*centre, *fitted.mean, *fitted.multipliers, *fitted.weights, fitted.constant]
    first = compare("eq", at.lane, 0)
    own = element(model, at.block, 4 * MODEL_ROW)
    for word in range(0, MODEL_ROW, 4):
        store("global.v4.f32", own, words[word : word + 4], 4 * word, when=first)
    write_status(status, at.block, count, regular, first)
    ptx.ret()


def _gather_class(x: Register, labels: Register, rows: Register, counts: Register, at: Position) -> Register:
    """Copy the class's samples to shared memory in their order, as rows (1, x); returns how many there are.

    A sample's place is the number of members before it: of earlier groups of 32 samples (by the counts that
    every warp leaves in shared memory) and of lower lanes of its own group (by the ballot).
    """
    groups_of_half = THREADS // 32
    lower_lanes = move(ptx.sreg("%lanemask_lt"))
    halves = []
    for half in range(2):
        sample = add(at.thread, THREADS * half)
        inside = compare("lt", sample, SAMPLES)
        label = load("global.nc.u32", element(labels, sample), into=move(ALL_LANES), when=inside)
        member = compare("eq", label, at.block)
        members = ballot(member, ALL_LANES)
        address = element(x, sample, 4 * FEATURES)
        values = [load("global.nc.f32", address, 4 * i, into=zero(), when=member) for i in range(FEATURES)]
        of_group = multiply_add(at.warp, 4, counts)
        leader = compare("eq", at.lane, 0)
        store("shared.u32", of_group, count_ones(members), 4 * groups_of_half * half, when=leader)
        halves.append((member, count_ones(bit_and(members, lower_lanes)), values))
    ptx.bar.sync(0)
    group_count = load("shared.u32", multiply_add(at.lane, 4, counts))
    for half, (member, rank, values) in enumerate(halves):
        earlier = compare("lt", at.lane, add(at.warp, groups_of_half * half))
        before = warp_sum(select(group_count, 0, earlier), ALL_LANES)
        row = multiply_add(add(before, rank), 4 * SAMPLE_ROW, rows)
        for offset, value in enumerate([literal(1.0), *values]):
            store("shared.f32", row, value, 4 * offset, when=member)
    return warp_sum(group_count, ALL_LANES)


def _sum_slices(rows: Register, partial: Register, count: Register, not_empty: Register, at: Position) -> None:
    """partial[slice, moment]: each thread sums one product over every ninth sample, about the first sample."""
    slice_index, moment = divide_by(TRIANGLE, at.thread)
    row, column = row_and_column(moment)
    left, right = multiply_add(row, 4, rows), multiply_add(column, 4, rows)
    left_centre = load("shared.f32", left, into=zero(), when=both(not_empty, compare("ne", row, 0)))
    right_centre = load("shared.f32", right, into=zero(), when=both(not_empty, compare("ne", column, 0)))
    in_use = compare("lt", slice_index, SLICES)
    total = zero()
    sample, offset = move(slice_index), multiply(slice_index, 4 * SAMPLE_ROW)
    ptx.label("next_sample")
    more = both(compare("lt", sample, count), in_use)
    ptx.bra("no_more", pred=~more)
    left_value = fsub(load("shared.f32", add(left, offset)), left_centre)
    right_value = fsub(load("shared.f32", add(right, offset)), right_centre)
    fma(left_value, right_value, total, into=total)
    add(sample, SLICES, into=sample)
    add(offset, 4 * SAMPLE_ROW * SLICES, into=offset)
    ptx.bra("next_sample")
    ptx.label("no_more")
    store("shared.f32", multiply_add(at.thread, 4, partial), total, when=in_use)


def _merge_slices(partial: Register, moments: Register, lane: Register) -> None:
    """Sum the nine slices of two moments in each lane of the one warp that is left; the 56th word is 0."""
    own = multiply_add(lane, 4, partial)
    has_high = compare("lt", lane, TRIANGLE - 32)
    slice_bytes = 4 * TRIANGLE
    low = [load("shared.f32", own, slice_bytes * s) for s in range(SLICES)]
    high = [load("shared.f32", own, slice_bytes * s + 4 * 32, into=zero(), when=has_high) for s in range(SLICES)]
    merged = multiply_add(lane, 4, moments)
    store("shared.f32", merged, _sum_in_pairs(low))
    store("shared.f32", merged, _sum_in_pairs(high), 4 * 32, when=compare("lt", lane, MOMENTS - 32))


def _sum_in_pairs(values: list[Register]) -> Register:
    """Sum as a tree: four dependent additions for nine values instead of eight."""
    while len(values) > 1:
        paired = [fadd(a, b) for a, b in zip(values[0::2], values[1::2], strict=False)]
        values = paired + values[2 * len(paired) :]
    return values[0]


@kernel(
    arch="sm_80",
    version=(7, 0),
    in_specs=(Tile(CLASSES, MODEL_ROW, f32), Tile(QUERIES, FEATURES, f32)),
    out_specs=(Tile(QUERIES, s32),),
    grid=SCORE_GRID,
    block=SCORE_BLOCK,
    reqntid=SCORE_BLOCK,
)
def score(model, q, predictions):
    """Predict 32 queries a block from the trained classes: warp = class, lane = query."""
    model, q, predictions = global_pointer(model), global_pointer(q), global_pointer(predictions)
    at = position()
    queries = shared_array("queries", QUERIES_PER_BLOCK * FEATURES)
    scores = shared_array("scores", CLASSES * 32)
    word = fetch_query_word(q, at)
    words = load_floats("global.nc", element(model, at.warp, 4 * MODEL_ROW), MODEL_ROW)
    stage_query_word(queries, word, at)
    ptx.bar.sync(0)
    centre, mean, multipliers, weights = words[:9], words[9:18], words[18:54], words[54:63]
    fitted = Model(mean, multipliers, weights, words[63])
    predict(scores, discriminant(fitted, staged_query(queries, at, centre)), at, predictions)
