"""The three variants agree with each other and with the float64 reference, and say so where nothing can be right."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu_tasks.devices.emulated.device import EmulatedQda
from gpu_tasks.devices.manifest import load_kernels
from gpu_tasks.records import BadInput
from gpu_tasks.workloads.qda import classifier
from gpu_tasks.workloads.qda.workload import Qda
from tests.unit.gpu_tasks.devices.emulated.launching import (
    DRAWS,
    VARIANTS,
    Problem,
    draw,
    predict,
    random_problem,
    shared_device,
)

QDA = Qda()
PROBLEMS = 300 if settings.get_current_profile_name() == "thorough" else 80
"""Random problems, each on all three variants: 0.15 s a problem. The profile is registered in conftest.py."""
needs_draws = pytest.mark.skipif(not DRAWS.is_dir(), reason="the frozen draws are not in this checkout")


def reference(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """float64 predictions, and of each query whether float32 can be asked to tell its two best classes apart."""
    scores = classifier.scores(classifier.train(problem.x, problem.labels), problem.q)
    ordered = np.sort(scores, axis=1)
    best, second = ordered[:, -1], ordered[:, -2]
    return scores.argmax(axis=1), best - second > 1e-3 + 2e-5 * np.abs(second)


@needs_draws
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("index", range(11))
def test_all_predictions_of_the_frozen_draws(variant, index):
    problem, frozen = draw(index)
    assert np.array_equal(predict(shared_device(variant), problem), frozen)


@settings(max_examples=PROBLEMS, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32 - 1), spread=st.floats(0.05, 3))
def test_random_problems(seed, spread):
    problem = random_problem(seed, spread=spread)
    expected, clear = reference(problem)
    assert clear.sum() > 950
    for variant in VARIANTS:
        found = predict(shared_device(variant, check_races=False), problem)
        assert np.array_equal(found[clear], expected[clear]), variant


def transformed(problem: Problem, change) -> Problem:
    return problem._replace(x=change(problem.x).astype(np.float32), q=change(problem.q).astype(np.float32))


TRANSFORMATIONS = {
    "translated": lambda a: a + np.float32(64),
    "translated per feature": lambda a: a + np.arange(-32, 40, 8, dtype=np.float32),
    "scaled up": lambda a: a * np.float32(2**20),
    "scaled down": lambda a: a * np.float32(2**-30),
    "features reversed": lambda a: np.ascontiguousarray(a[:, ::-1]),
    "mirrored": lambda a: -a,
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("what", TRANSFORMATIONS)
def test_transformed_samples(variant, what):
    problem = transformed(random_problem(11), TRANSFORMATIONS[what])
    expected, clear = reference(problem)
    found = predict(shared_device(variant), problem)
    assert np.array_equal(found[clear], expected[clear])


@pytest.mark.parametrize("variant", VARIANTS)
def test_scaling_by_a_power_of_two_changes_no_prediction(variant):
    problem = random_problem(12)
    scaled = transformed(problem, lambda a: a * np.float32(4))
    assert np.array_equal(predict(shared_device(variant), problem), predict(shared_device(variant), scaled))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_order_of_the_samples_does_not_matter(variant):
    problem = random_problem(13)
    order = np.random.default_rng(1).permutation(1000)
    expected, clear = reference(problem)
    shuffled = Problem(problem.x[order], problem.labels[order], problem.q)
    found = predict(shared_device(variant), shuffled)
    assert np.array_equal(found[clear], expected[clear])


@pytest.mark.parametrize("variant", VARIANTS)
def test_permuted_queries_give_permuted_predictions(variant):
    problem = random_problem(14)
    order = np.random.default_rng(2).permutation(1000)
    found = predict(shared_device(variant), problem)
    permuted = predict(shared_device(variant), problem._replace(q=problem.q[order]))
    assert np.array_equal(permuted, found[order])


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_tie_goes_to_the_lowest_class(variant):
    """Classes 2 and 7 have the same samples, in the same order, and so the same score for every query."""
    rng = np.random.default_rng(3)
    cloud = rng.normal(size=(100, 9)).astype(np.float32)
    labels = np.resize([0, 1, 3, 4, 5, 6, 8, 9], 1000)
    x = rng.normal(size=(1000, 9)).astype(np.float32) + 50 + 5 * labels[:, None].astype(np.float32)
    # Pairs at 4a and 4a + 1 are summed alike by every variant, except where a part of 125 samples ends between them.
    starts = [4 * quad for quad in range(250) if 4 * quad // 125 == (4 * quad + 1) // 125][:100]
    for sample, start in zip(cloud, starts, strict=True):
        x[start : start + 2], labels[start : start + 2] = sample, (2, 7)
    found = predict(shared_device(variant), Problem(x, labels, rng.normal(size=(1000, 9)).astype(np.float32)))
    assert (found == 2).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_last_block_has_fewer_queries_than_lanes(variant):
    problem = random_problem(15)
    expected, _ = reference(problem)
    found = predict(shared_device(variant), problem)
    assert 1000 % 32 == 8
    assert np.array_equal(found[992:], expected[992:])


@pytest.mark.parametrize("variant", VARIANTS)
def test_very_uneven_classes(variant):
    labels = np.concatenate([np.arange(10).repeat(12), np.full(880, 3)])
    rng = np.random.default_rng(4)
    x = rng.normal(size=(1000, 9)) + labels[:, None]
    problem = Problem(x.astype(np.float32), labels, (rng.normal(size=(1000, 9)) + 4).astype(np.float32))
    expected, clear = reference(problem)
    found = predict(shared_device(variant), problem)
    assert np.array_equal(found[clear], expected[clear])


def kernel_verdict(variant: str, problem: Problem) -> BadInput:
    """What the kernel itself says of inputs that the host would have refused."""
    device = EmulatedQda(QDA, load_kernels(variant=variant))
    device.load_unchecked(problem.x, problem.labels.astype(np.int32), problem.q)
    device.poison_scratch()
    with pytest.raises(BadInput) as refused:
        device.eager()
    assert (device.predictions() == -1).all()
    return refused.value


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_kernel_itself_names_an_empty_class(variant):
    problem = random_problem(16)
    refused = kernel_verdict(variant, problem._replace(labels=np.where(problem.labels == 6, 5, problem.labels)))
    assert (refused.code, "class 6" in refused.message) == ("empty_class", True)


SINGULAR = {
    "constant feature": lambda x: x[:, 2] * 0 + 1,
    "copy of a feature": lambda x: x[:, 5],
    "sum of two features": lambda x: x[:, 5] + x[:, 8],
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("what", SINGULAR)
def test_the_kernel_itself_names_a_singular_class(variant, what):
    problem = random_problem(17)
    x = problem.x.copy()
    x[problem.labels == 4, 2] = SINGULAR[what](x)[problem.labels == 4]
    device = EmulatedQda(QDA, load_kernels(variant=variant))
    device.load_unchecked(x, problem.labels.astype(np.int32), problem.q)
    device.poison_scratch()
    with pytest.raises(BadInput, match="class 4: expected a covariance of full rank") as refused:
        device.eager()
    assert refused.value.code == "singular_class"


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_single_sample_is_a_singular_class(variant):
    problem = random_problem(18)
    labels = np.where(problem.labels == 9, 0, problem.labels)
    labels[123] = 9
    device = EmulatedQda(QDA, load_kernels(variant=variant))
    device.load_unchecked(problem.x, labels.astype(np.int32), problem.q)
    device.poison_scratch()
    with pytest.raises(BadInput, match="class 9") as refused:
        device.eager()
    assert refused.value.code == "singular_class"


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("label", [10, -1, 2**31 - 1])
def test_the_kernel_itself_notices_a_label_that_is_no_class(variant, label):
    problem = random_problem(19)
    labels = problem.labels.copy()
    labels[500] = label
    device = EmulatedQda(QDA, load_kernels(variant=variant))
    device.load_unchecked(problem.x, labels.astype(np.int32), problem.q)
    device.poison_scratch()
    with pytest.raises(BadInput, match="found 999") as refused:
        device.eager()
    assert refused.value.code == "bad_label"


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("value", [np.nan, np.inf, 3e38])
def test_a_query_beyond_float32_is_marked_and_named(variant, value):
    problem = random_problem(20)
    q = problem.q.copy()
    q[321, 4] = value
    device = EmulatedQda(QDA, load_kernels(variant=variant))
    device.load_unchecked(problem.x, problem.labels.astype(np.int32), q)
    device.poison_scratch()
    with pytest.raises(BadInput, match="query 321") as refused:
        device.eager()
    assert refused.value.code == "score_not_finite"
    assert device.predictions()[321] == -1
    assert (device.predictions() >= 0).sum() == 999
