"""The reference classifier: what it computes, and what it refuses instead of answering."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpu_tasks.payload.draws import Draw
from gpu_tasks.records import BadInput
from gpu_tasks.workloads.base import Workload
from gpu_tasks.workloads.qda.classifier import scores, train
from gpu_tasks.workloads.registry import get_workload


def problem(seed: int = 0, samples: int = 300, queries: int = 50) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    labels = np.arange(samples) % 10
    centres = rng.normal(size=(10, 9))
    x = (centres[labels] + rng.normal(size=(samples, 9))).astype(np.float32)
    q = (centres[np.arange(queries) % 10] + rng.normal(size=(queries, 9))).astype(np.float32)
    return x, labels.astype(np.int64), q


def test_scores_are_gaussian_log_densities() -> None:
    """Against the textbook form with inverse and determinant, up to the constant 9/2 log 2 pi."""
    x, labels, q = problem()
    found = scores(train(x, labels), q)
    for c in range(10):
        group = x[labels == c].astype(np.float64)
        covariance = np.cov(group.T, bias=True)
        centred = q.astype(np.float64) - group.mean(axis=0)
        distance = np.einsum("ni,ij,nj->n", centred, np.linalg.inv(covariance), centred)
        expected = -0.5 * distance - 0.5 * np.log(np.linalg.det(covariance)) + np.log(len(group) / len(x))
        np.testing.assert_allclose(found[:, c], expected, rtol=1e-9)


def test_ties_go_to_the_first_class(qda: Workload) -> None:
    x, labels, q = problem()
    x = np.concatenate([x[labels == 0]] * 10)
    labels = np.repeat(np.arange(10), len(x) // 10)
    assert qda.predict(x, labels, q).tolist() == [0] * len(q)


def test_the_order_of_samples_does_not_matter(qda: Workload, draws: list[Draw]) -> None:
    order = np.random.default_rng(3).permutation(1000)
    found = qda.predict(draws[2].x[order], draws[2].labels[order], draws[2].q)
    np.testing.assert_array_equal(found, draws[2].frozen_predictions)


def test_priors_count(qda: Workload) -> None:
    """Two classes of one shape, one with three times the samples: the larger one gets the point between them."""
    x, labels, _ = problem(samples=400)
    base = x[labels == 0] - x[labels == 0].mean(axis=0)
    far = [base + np.float32(100 * c) for c in range(2, 10)]
    step = np.float32([1, 0, 0, 0, 0, 0, 0, 0, 0])
    x = np.concatenate([base, base + step, base + step, base + step, *far]).astype(np.float32)
    labels = np.repeat(np.array([0, 1, 1, 1, *range(2, 10)]), len(base))
    assert qda.predict(x, labels, (step / 2)[None, :]).tolist() == [1]


def with_value(name: str, index: Any, value: float) -> Callable[[Any], Any]:
    def change(arrays: Any) -> Any:
        arrays[name] = arrays[name].copy()
        arrays[name][index] = value
        return arrays

    return change


def with_array(name: str, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda arrays: {**arrays, name: change(arrays[name])}


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (
            with_value("x", (17, 4), np.nan),
            "not_finite",
            "x: sample 17, feature 4: expected a finite number, found nan",
        ),
        (with_value("q", (3, 0), -np.inf), "not_finite", "q: sample 3, feature 0"),
        (with_value("x", (0, 0), 1e30), "too_large", "x: expected features up to 1e.15"),
        (with_value("labels", 5, 10), "bad_label", "labels: sample 5: expected a class 0..9, found 10"),
        (with_value("labels", 5, -1), "bad_label", "found -1"),
        (with_array("x", lambda a: a.astype(np.float64)), "bad_dtype", "x: dtype: expected float32, found float64"),
        (with_array("q", lambda a: a.astype(np.float16)), "bad_dtype", "q: dtype"),
        (with_array("labels", lambda a: a.astype(np.int32)), "bad_dtype", "labels: dtype: expected int64"),
        (with_array("x", lambda a: a[:, :8]), "bad_shape", r"x: shape: expected \(n, 9\)"),
        (with_array("q", lambda a: a[:0]), "bad_shape", "q: shape"),
        (with_array("q", lambda a: a[0]), "bad_shape", "q: shape"),
        (with_array("labels", lambda a: a[:-1]), "bad_shape", r"labels: shape: expected \(300,\)"),
        (with_array("labels", lambda a: np.where(a == 7, 3, a)), "empty_class", "found none of class 7"),
        (with_array("x", lambda a: np.concatenate([a[:, :8], a[:, :1]], 1)), "singular_class", "x: class 0"),
        (with_array("x", lambda a: a * np.float32([1, 1, 1, 1, 0, 1, 1, 1, 1])), "singular_class", "x: class 0"),
    ],
)
def test_bad_input(qda: Workload, change: Callable[[Any], Any], code: str, words: str) -> None:
    x, labels, q = problem()
    arrays = change({"x": x, "labels": labels, "q": q})
    for refuse in (qda.check_inputs, qda.predict):
        with pytest.raises(BadInput, match=words) as caught:
            refuse(arrays["x"], arrays["labels"], arrays["q"])
        assert caught.value.code == code


def test_the_singular_class_is_the_one_named(qda: Workload) -> None:
    x, labels, q = problem()
    x[labels == 6, 2] = x[labels == 6, 3]
    with pytest.raises(BadInput, match=r"class 6: .*singular one \(30 samples\)"):
        qda.check_inputs(x, labels, q)
    few = (labels != 4) | (np.arange(300) < 90)
    with pytest.raises(BadInput, match=r"class 4: .*\(9 samples\)"):
        qda.check_inputs(problem()[0][few], labels[few], q)


def test_unknown_workload() -> None:
    with pytest.raises(BadInput, match="expected one of learner, qda, found 'lda'"):
        get_workload("lda")
