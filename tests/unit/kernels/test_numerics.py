"""How far float32 is from flipping a label: the error of a score difference, as part of the difference."""

import re

import numpy as np
import pytest

from gpu_tasks.devices.emulated import operations
from gpu_tasks.devices.emulated.device import EmulatedQda
from gpu_tasks.devices.manifest import load_kernels
from gpu_tasks.workloads.qda import classifier
from gpu_tasks.workloads.qda.workload import Qda
from tests.unit.gpu_tasks.devices.emulated.launching import (
    DRAWS,
    VARIANTS,
    Problem,
    draw,
    predict,
    shared_device,
    substitute,
    with_texts,
)

pytestmark = pytest.mark.skipif(not DRAWS.is_dir(), reason="the frozen draws are not in this checkout")
LARGEST_PART = 0.05
FUSED_SCORES = 36000 + 20000 + 2560  # bytes of samples, lists and moments before the scores


def scores_of(device: EmulatedQda) -> np.ndarray:
    """(1000, 10) scores that the blocks of the latest run left in shared memory: class by query in each block."""
    machine = device.machines[-1]
    start = machine.kernel.shared.get("scores", FUSED_SCORES)
    blocks = machine.shared.data.reshape(32, machine.shared.stride)[:, start : start + 4 * 320]
    return np.ascontiguousarray(blocks).view(np.float32).reshape(32, 10, 32).transpose(0, 2, 1).reshape(-1, 10)[:1000]


def part_of_difference(device: EmulatedQda, problem: Problem) -> float:
    """Largest error of (best - other) over that difference, over all queries and all other classes."""
    predict(device, problem)
    exact = classifier.scores(classifier.train(problem.x, problem.labels), problem.q)
    found = scores_of(device).astype(np.float64)
    best = exact.argmax(axis=1)[:, None]
    difference = np.take_along_axis(exact, best, 1) - exact
    error = np.abs(np.take_along_axis(found, best, 1) - found - difference)
    others = np.arange(10) != best
    return float((error[others] / difference[others]).max())


@pytest.mark.parametrize("variant", VARIANTS)
def test_score_differences_are_right_within_five_per_cent(variant):
    device = shared_device(variant)
    worst = max(part_of_difference(device, draw(index)[0]) for index in range(11))
    assert 0 < worst < LARGEST_PART


def uncentred_record() -> EmulatedQda:
    """The record variant on raw moments: every subtraction of the centre becomes a copy."""
    kernels = load_kernels(variant="record")
    stats, score = kernels.texts
    subtraction = r"sub\.rn\.f32 (%f\d+), (%f\d+), %f\d+;"
    for _ in range(len(re.findall(subtraction, stats))):
        stats, _ = substitute(stats, subtraction, r"mov.f32 \1, \2;")
    for _ in range(9):  # the query's nine; the nine after them subtract the class mean
        score, _ = substitute(score, subtraction, r"mov.f32 \1, \2;")
    return EmulatedQda(Qda(), with_texts(kernels, stats, score), check_races=False)


def test_without_centring_the_bound_does_not_hold():
    device = uncentred_record()
    worst = max(part_of_difference(device, draw(index)[0]) for index in range(11))
    assert worst > 4 * LARGEST_PART


@pytest.mark.parametrize("factor", [1, 100])
def test_a_logarithm_as_wrong_as_the_hardware_may_be_changes_no_prediction(factor, monkeypatch):
    """lg2.approx is off by up to 2**-22, absolute in (0.5, 2) and relative elsewhere; and by a hundred times that."""
    rng = np.random.default_rng(9)

    def wrong(values: np.ndarray) -> np.ndarray:
        exact = np.log2(values.astype(np.float64))
        scale = np.where((values > 0.5) & (values < 2), 1.0, np.abs(exact))
        return exact + factor * 2.0**-22 * scale * rng.choice([-1.0, 1.0], values.shape)

    changed = operations.OPERATIONS["lg2.approx.f32"]._replace(function=wrong)
    monkeypatch.setitem(operations.OPERATIONS, "lg2.approx.f32", changed)
    device = EmulatedQda(Qda(), check_races=False)
    for index in range(11):
        problem, frozen = draw(index)
        assert np.array_equal(predict(device, problem), frozen)
