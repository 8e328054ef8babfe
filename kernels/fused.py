"""Variant ``fused``: one launch of 32 blocks of 320 threads; every block trains all ten classes for itself.

No second launch and no trip through global memory between training and prediction, at the price of doing the
training 32 times over. Warp = class throughout; about 60 KiB of dynamic shared memory hold all samples.
"""

from __future__ import annotations

from pyptx import Tile, kernel, ptx
from pyptx.types import f32, s32

from kernels.instructions import (
    ALL_LANES,
    Register,
    add,
    bit_and,
    both,
    compare,
    element,
    emit,
    fadd,
    fma,
    fselect,
    fsub,
    global_pointer,
    load,
    load_floats,
    load_four,
    move,
    multiply,
    multiply_add,
    shared_array,
    shuffle_from,
    shuffle_up,
    shuffle_xor,
    store,
    subtract,
    to_float,
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
    Position,
    discriminant,
    factorise,
    fetch_query_word,
    packed,
    position,
    predict,
    stage_query_word,
    staged_query,
    write_status,
)

SAMPLE_BYTES = 4 * FEATURES
LABEL_ROUNDS = 8  # rounds in which the 32 lanes of a warp read four labels each: 1024 places for 1000 labels
LIST_BYTES = 2 * SAMPLES  # one class's list of 16-bit sample offsets, long enough for all samples
MOMENT_ROW = 64


@kernel(
    arch="sm_80",
    version=(7, 0),
    in_specs=(Tile(SAMPLES, FEATURES, f32), Tile(SAMPLES, s32), Tile(QUERIES, FEATURES, f32)),
    out_specs=(Tile(QUERIES, s32), Tile(CLASSES, s32)),
    grid=SCORE_GRID,
    block=SCORE_BLOCK,
    reqntid=SCORE_BLOCK,
)
def fused(x, labels, q, predictions, status):
    """Train and predict 32 queries in every block: warp = class, lane = share of the samples, later query."""
    x, labels, q = global_pointer(x), global_pointer(labels), global_pointer(q)
    predictions, status = global_pointer(predictions), global_pointer(status)
    at = position()
    samples = shared_array("samples", SAMPLES * FEATURES)
    lists = shared_array("lists", CLASSES * LIST_BYTES // 4)
    moments = shared_array("moments", CLASSES * MOMENT_ROW)
    scores = shared_array("scores", CLASSES * 32)
    queries = shared_array("queries", QUERIES_PER_BLOCK * FEATURES)

    own_labels = _all_labels(labels, at.lane)
    _start_copy_of_samples(x, samples, at.thread)
    word = fetch_query_word(q, at)
    own_list = multiply_add(at.warp, LIST_BYTES, lists)
    count = _list_members(own_labels, own_list, at)
    stage_query_word(queries, word, at)
    emit("cp.async.wait_group", 0)
    ptx.bar.sync(0)

    # The centre is the class's first listed sample; an empty class reads sample 0 and comes out as NaN.
    first_offset = load("shared.u16", own_list, into=move(0), when=compare("ne", count, 0))
    first_row = add(samples, first_offset)
    centre = [load("shared.f32", first_row, 4 * i) for i in range(FEATURES)]
    sums = _sum_members(samples, (own_list, count), first_offset, centre, at.lane)
    own_moments = multiply_add(at.warp, 4 * MOMENT_ROW, moments)
    pair = _sum_over_lanes(sums, at.lane)
    holds_moments = compare("lt", at.lane, MOMENTS // 2)
    store("shared.v2.f32", multiply_add(at.lane, 8, own_moments), pair, when=holds_moments)
    query = staged_query(queries, at, centre)
    emit("bar.warp.sync", ALL_LANES)

    model, regular = factorise([to_float(count), *load_floats("shared", own_moments, MOMENTS)[1:]])
    first = both(compare("eq", at.block, 0), compare("eq", at.lane, 0))
    write_status(status, at.warp, count, regular, first)
    predict(scores, discriminant(model, query), at, predictions)


def _all_labels(labels: Register, lane: Register) -> list[Register]:
    """All labels in every warp, 32 a lane; places past the end hold a label that is no class."""
    own: list[Register] = []
    address = element(labels, lane, 16)
    for group in range(LABEL_ROUNDS):
        quads_left = SAMPLES // 4 - 32 * group
        guard = compare("lt", lane, quads_left) if quads_left < 32 else None
        own += load_four("global.nc.u32", address, 16 * 32 * group, when=guard)
    return own


def _start_copy_of_samples(x: Register, samples: Register, thread: Register) -> None:
    """Begin copying all samples to shared memory, 16 bytes a thread and round, without passing registers."""
    pieces = SAMPLES * SAMPLE_BYTES // 16
    for start in range(0, pieces, SCORE_BLOCK[0]):
        piece = add(thread, start)
        inside = compare("lt", piece, pieces)
        target = multiply_add(piece, 16, samples)
        emit("cp.async.cg.shared.global", ptx.addr(target), ptx.addr(element(x, piece, 16)), 16, when=inside)
    emit("cp.async.commit_group")


def _list_members(labels: list[Register], own_list: Register, at: Position) -> Register:
    """Write the byte offsets of the class's samples to the warp's list; returns how many there are.

    Each lane counts its own members, a scan over the lanes turns counts into places, and each lane then writes
    its members one after the other.
    """
    own_count = move(0)
    is_member = [compare("eq", label, at.warp) for label in labels]
    for member in is_member:
        add(own_count, 1, into=own_count, when=member)
    scanned = move(own_count)
    for distance in (1, 2, 4, 8, 16):
        below = shuffle_up(scanned, distance, 0, ALL_LANES)
        add(scanned, below, into=scanned, when=compare("ge", at.lane, distance))
    place = multiply_add(subtract(scanned, own_count), 2, own_list)
    lane_bytes = multiply(at.lane, 4 * SAMPLE_BYTES)
    for index, member in enumerate(is_member):
        group, within = divmod(index, 4)
        offset = add(lane_bytes, (128 * group + within) * SAMPLE_BYTES)
        store("shared.u16", place, offset, when=member)
        add(place, 2, into=place, when=member)
    return shuffle_from(scanned, 31, 31, ALL_LANES)


def _sum_members(
    samples: Register,
    members: tuple[Register, Register],
    first_offset: Register,
    centre: list[Register],
    lane: Register,
) -> list[Register]:
    """This lane's part of the moments about the centre, packed; entry 0, the count, is left at 0."""
    own_list, count = members
    sums = [zero() for _ in range(packed(FEATURES, FEATURES) + 1)]
    place = multiply_add(lane, 2, own_list)
    index, done = move(lane), move(0)
    ptx.label("next_members")
    ptx.bra("no_more", pred=compare("ge", done, count))
    # Lanes past the end read the centre itself: its differences are exactly 0 and add nothing.
    offset = load("shared.u16", place, into=move(first_offset), when=compare("lt", index, count))
    row = add(samples, offset)
    values = [fsub(load("shared.f32", row, 4 * i), centre[i]) for i in range(FEATURES)]
    for i in range(FEATURES):
        of_row = sums[packed(i + 1, 0)]
        fadd(of_row, values[i], into=of_row)
        for j in range(i + 1):
            product = sums[packed(i + 1, j + 1)]
            fma(values[i], values[j], product, into=product)
    add(index, 32, into=index)
    add(place, 64, into=place)
    add(done, 32, into=done)
    ptx.bra("next_members")
    ptx.label("no_more")
    return sums


def _sum_over_lanes(values: list[Register], lane: Register) -> list[Register]:
    """Sum 64 values over the warp and leave two in each lane: lane l ends with sums 2l and 2l + 1.

    Five exchanges, each of which halves the values a lane still holds: lanes whose bit is set keep the upper half
    and send the lower one. Values past the end of the list are never sent, and the lanes that would end with them
    hold repeats that nobody reads.
    """
    half = 32
    for distance in (16, 8, 4, 2, 1):
        upper = compare("ne", bit_and(lane, distance), 0)
        kept_sums = []
        for index in range(min(half, len(values))):
            keep = send = values[index]
            if index + half < len(values):
                keep = fselect(values[index + half], values[index], upper)
                send = fselect(values[index], values[index + half], upper)
            kept_sums.append(fadd(keep, shuffle_xor(send, distance, 31, ALL_LANES)))
        values, half = kept_sums, half // 2
    return values
