"""Differing predictions: every one of them, with the classes that each side chose, and the scores that tell why."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_tasks.comparison.differing import MOST_LISTED, differing, with_scores
from gpu_tasks.payload.draws import Draw, Payload
from gpu_tasks.records import DifferingPrediction
from gpu_tasks.workloads.base import Workload
from tests.unit.gpu_tasks.comparison.records import validation

CLASSES = st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=12)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.integers(0, 3), CLASSES, max_size=3))
def test_all_that_are_not_the_same_three_times(draws: dict[int, list[tuple[int, int, int]]]) -> None:
    """(candidate, pinned, frozen) of each query, against the plain definition."""
    own, other, expected = [], [], []
    for draw, queries in sorted(draws.items()):
        own.append(validation(draw, [(i, f, c) for i, (c, _, f) in enumerate(queries) if c != f]))
        other.append(validation(draw, [(i, f, p) for i, (_, p, f) in enumerate(queries) if p != f]))
        expected += [
            DifferingPrediction(draw, i, c, p, f, None, None, None)
            for i, (c, p, f) in enumerate(queries)
            if len({c, p, f}) > 1
        ]
    found = differing(own, other)
    assert (found.listed, found.total) == (expected, len(expected))
    assert differing(own[::-1], other[::-1]) == found


def test_a_side_that_did_not_get_through_predicted_nothing() -> None:
    own, other = [validation(0, ran=False)], [validation(0, [(7, 1, 2)])]
    assert differing(own, other).listed == [DifferingPrediction(0, 7, None, 2, 1, None, None, None)]
    assert differing(other, own).listed == [DifferingPrediction(0, 7, 2, None, 1, None, None, None)]
    assert differing(other, []).listed == [DifferingPrediction(0, 7, 2, None, 1, None, None, None)]
    assert differing(own, own).total == differing([], []).total == 0


def test_a_thousand_are_listed_and_all_are_counted() -> None:
    wrong = [validation(draw, [(i, 0, 1) for i in range(700)]) for draw in (1, 0)]
    found = differing(wrong, [validation(0), validation(1)])
    assert (len(found.listed), found.total) == (MOST_LISTED, 1400)
    assert (found.listed[0].draw, found.listed[-1].draw, found.listed[-1].index) == (0, 1, 299)


def test_scores_are_the_reference_s(qda: Workload, draws: list[Draw]) -> None:
    draw = draws[2]
    scores = qda.scores(draw.x, draw.labels, draw.q)
    order = np.argsort(scores, axis=1)
    assert (order[:, -1] == qda.predict(draw.x, draw.labels, draw.q)).all()
    i = 5
    best, second, worst = int(order[i, -1]), int(order[i, -2]), int(order[i, 0])
    cases = [
        (second, best, best, best),  # the pinned kernel is right
        (second, second, best, best),  # both are wrong alike: held against what is frozen
        (second, None, best, best),  # the pinned one predicted nothing
        (second, worst, best, worst),  # each is wrong in its own way
        (best, worst, best, worst),  # the candidate is right
        (None, worst, best, worst),
    ]
    listed = [DifferingPrediction(2, i, own, other, frozen, None, None, None) for own, other, frozen, _ in cases]
    found = with_scores(listed, qda, Payload("original", qda))
    for one, (own, _, _, compared) in zip(found, cases, strict=True):
        assert one.pinned_score == scores[i, compared]
        assert one.candidate_score == (None if own is None else scores[i, own])
        assert one.gap == (None if own is None else scores[i, compared] - scores[i, own])
    gap = found[0].gap
    assert gap is not None
    assert gap > 0, "the class of the higher score is the one that the reference predicts"


def test_a_kernel_that_is_wrong_by_rounding_shows_a_small_gap(qda: Workload, draws: list[Draw]) -> None:
    """The closest call of all draws is far above what float32 rounds off, and far below what a bug does."""
    gaps = []
    for draw in draws:
        ordered = np.sort(qda.scores(draw.x, draw.labels, draw.q), axis=1)
        gaps.append(float((ordered[:, -1] - ordered[:, -2]).min()))
    assert 1e-6 < min(gaps) < 1e-2
    assert with_scores([], qda, Payload("original", qda)) == []


def test_draws_are_read_once_each(qda: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    payload, read = Payload("original", qda), list[int]()
    load = payload.load
    monkeypatch.setattr(payload, "load", lambda number: (read.append(number), load(number))[1])
    listed = [DifferingPrediction(draw, i, 0, 1, 1, None, None, None) for draw in (0, 3) for i in range(5)]
    found = with_scores(listed, qda, payload)
    assert [(one.draw, one.index) for one in found] == [(one.draw, one.index) for one in listed]
    assert read == [0, 3]
