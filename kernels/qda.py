"""Building blocks shared by the three designs: layout, moments, factorisation, score and prediction.

A class is described by the moments of the augmented vector (1, x0 ... x8) about some centre: the 10x10 symmetric
matrix has 55 different entries, kept as the packed lower triangle (entry (j, i), i <= j, at j(j+1)/2 + i), so that
entry 0 is the number of samples. Centring matters: on raw second moments the rounding error of a score difference
comes to almost half of the smallest differences in the frozen draws.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyptx import ptx

from kernels.instructions import (
    NEGATIVE_INFINITY,
    Register,
    bit_and,
    both,
    compare,
    element,
    exceeds,
    fadd,
    fma,
    fmove,
    fmul,
    fneg,
    fsub,
    literal,
    load,
    log2,
    move,
    multiply,
    multiply_add,
    multiply_high,
    reciprocal,
    select,
    shift_right,
    store,
    subtract,
    zero,
)

SAMPLES = 1000
QUERIES = 1000
FEATURES = 9
CLASSES = 10
TRIANGLE = 55  # entries of the packed moment matrix
MOMENTS = 56  # the same, padded to whole groups of four
QUERIES_PER_BLOCK = 32  # one for each lane of a warp
SCORE_GRID = (32, 1, 1)
SCORE_BLOCK = (CLASSES * 32, 1, 1)  # one warp for each class

# A pivot below this part of its feature's second moment may be nothing but rounding: a sum of a hundred squares and
# its elimination can be wrong by 2**-18 of it. On the frozen draws no pivot comes below 2**-12 (record) or 2**-5.
SINGULAR_BELOW = 2.0**-18
LN_2 = 0.6931471805599453


@dataclass(frozen=True)
class Position:
    """Where a thread is: thread in the block, block in the grid, lane in the warp, warp in the block."""

    thread: Register
    block: Register
    lane: Register
    warp: Register


def position() -> Position:
    """Read the special registers once."""
    thread = move(ptx.special.tid.x())
    block = move(ptx.special.ctaid.x())
    return Position(thread, block, bit_and(thread, 31), shift_right(thread, 5))


def packed(row: int, column: int) -> int:
    """Index of moment (row, column), column <= row, in the packed triangle."""
    return row * (row + 1) // 2 + column


def row_and_column(index: Register) -> tuple[Register, Register]:
    """Row and column of a packed index, by nine comparisons (pyptx emits no initialised tables)."""
    row, start = move(0), move(0)
    for candidate in range(1, FEATURES + 1):
        reached = compare("ge", index, packed(candidate, 0))
        move(candidate, into=row, when=reached)
        move(packed(candidate, 0), into=start, when=reached)
    return row, subtract(index, start)


def divide_by(divisor: int, value: Register) -> tuple[Register, Register]:
    """Quotient and remainder of ``value`` (under 2**16) by a constant, by multiplying with its reciprocal."""
    quotient = multiply_high(value, -(-(2**32) // divisor))
    return quotient, subtract(value, multiply(quotient, divisor))


@dataclass(frozen=True)
class Model:
    """One class, ready to score: everything a query needs, relative to the centre of the moments.

    ``multipliers`` are the strictly lower columns of the unit triangular factor L of the covariance L D L^T,
    negated, column by column; ``weights`` are 1/D; ``constant`` is log prior minus half the log determinant.
    """

    mean: list[Register]
    multipliers: list[Register]
    weights: list[Register]
    constant: Register


def factorise(moments: list[Register]) -> tuple[Model, Register]:
    """Factorise the covariance of one class in registers; also a predicate that is false where it is singular.

    L D L^T needs no square roots and one reciprocal a pivot, and nine pivots are the longest dependent chain of the
    task. The covariance is the maximum likelihood one: divided by n, no ridge.
    """
    per_sample = reciprocal(moments[0])
    mean = [fmul(moments[packed(row, 0)], per_sample) for row in range(1, FEATURES + 1)]
    negated = [fneg(value) for value in mean]
    raw = [
        [fmul(moments[packed(row + 1, column + 1)], per_sample) for column in range(row + 1)] for row in range(FEATURES)
    ]
    matrix = [
        [fma(negated[column], mean[row], raw[row][column]) for column in range(row + 1)] for row in range(FEATURES)
    ]
    floors = [fmul(raw[row][row], literal(SINGULAR_BELOW)) for row in range(FEATURES)]
    multipliers: list[Register] = []
    weights: list[Register] = []
    log_determinant = regular = None
    for pivot in range(FEATURES):
        diagonal = matrix[pivot][pivot]
        large_enough = exceeds(diagonal, floors[pivot])
        regular = large_enough if regular is None else both(regular, large_enough)
        log_pivot = log2(diagonal)
        log_determinant = log_pivot if log_determinant is None else fadd(log_determinant, log_pivot)
        weight = reciprocal(diagonal)
        weights.append(weight)
        below = range(pivot + 1, FEATURES)
        column_multipliers = [fneg(fmul(matrix[row][pivot], weight)) for row in below]
        for multiplier, row in zip(column_multipliers, below, strict=True):
            for column in range(pivot + 1, row + 1):
                matrix[row][column] = fma(multiplier, matrix[column][pivot], matrix[row][column])
        multipliers += column_multipliers
    log_prior = log2(fmul(moments[0], literal(1.0 / SAMPLES)))
    constant = fmul(fma(log_determinant, literal(-0.5), log_prior), literal(LN_2))
    return Model(mean, multipliers, weights, constant), regular


def discriminant(model: Model, query: list[Register]) -> Register:
    """Score of one query (given relative to the model's centre): constant - 1/2 z^T D^-1 z with L z = q - mean."""
    residual = [fsub(value, mean) for value, mean in zip(query, model.mean, strict=True)]
    multipliers = iter(model.multipliers)
    distance = None
    for pivot in range(FEATURES):
        weighted = fmul(residual[pivot], model.weights[pivot])
        term = residual[pivot]
        distance = fmul(weighted, term) if distance is None else fma(weighted, term, distance)
        for row in range(pivot + 1, FEATURES):
            residual[row] = fma(next(multipliers), term, residual[row])
    return fma(distance, literal(-0.5), model.constant)


def write_status(status: Register, label: Register, count: Register, regular: Register, when: Register) -> None:
    """``status[label]``: the number of samples of the class, negated where its covariance is singular.

    One word each with one writer each, rewritten by every launch: nothing has to be cleared between replays, 0 is an
    empty class, and absolute values that do not sum to the number of samples are labels outside 0 ... 9.
    """
    value = select(count, subtract(0, count), regular)
    store("global.u32", element(status, label), value, when=when)


def own_query(at: Position) -> tuple[Register, Register]:
    """Index of this lane's query, and a predicate: the last block has lanes without one."""
    query = multiply_add(at.block, QUERIES_PER_BLOCK, at.lane)
    return query, compare("lt", query, QUERIES)


def fetch_query_word(q: Register, at: Position) -> Register:
    """This thread's word of the block's 32 queries (threads 0 ... 287), 0 past the end; coalesced."""
    words = QUERIES_PER_BLOCK * FEATURES
    index = multiply_add(at.block, words, at.thread)
    wanted = both(compare("lt", index, QUERIES * FEATURES), compare("lt", at.thread, words))
    return load("global.nc.f32", element(q, index), into=zero(), when=wanted)


def stage_query_word(queries: Register, word: Register, at: Position) -> None:
    """Put the word that ``fetch_query_word`` brought where the block can read it; a barrier must follow."""
    staged = compare("lt", at.thread, QUERIES_PER_BLOCK * FEATURES)
    store("shared.f32", multiply_add(at.thread, 4, queries), word, when=staged)


def staged_query(queries: Register, at: Position, centre: list[Register]) -> list[Register]:
    """This lane's query out of the staged ones, relative to ``centre``."""
    row = multiply_add(at.lane, 4 * FEATURES, queries)
    return [fsub(load("shared.f32", row, 4 * feature), centre[feature]) for feature in range(FEATURES)]


def predict(scores: Register, score: Register, at: Position, predictions: Register) -> None:
    """Exchange the ten scores of each query and store the first class of the highest; ends the kernel.

    Warp c brings the scores of class c; warp 0 decides. A query with a score that is no finite number (a class that
    could not be factorised, features beyond float32) is predicted as -1, which is no class.
    """
    query, exists = own_query(at)
    store("shared.f32", multiply_add(at.thread, 4, scores), score)
    ptx.bar.sync(0)
    ptx.ret(pred=compare("ne", at.warp, 0))
    column = multiply_add(at.lane, 4, scores)
    values = [load("shared.f32", column, 4 * 32 * label) for label in range(CLASSES)]
    best, best_label, total = fmove(values[0]), move(0), values[0]
    for label, value in enumerate(values[1:], start=1):
        better = exceeds(value, best)
        fmove(value, into=best, when=better)
        move(label, into=best_label, when=better)
        total = fadd(total, value)
    label = select(best_label, "0xFFFFFFFF", exceeds(total, literal(NEGATIVE_INFINITY)))
    store("global.u32", element(predictions, query), label, when=exists)
    ptx.ret()
