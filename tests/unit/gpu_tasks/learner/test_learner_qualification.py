"""Qualification: what the original records have comes out, and a learner that computes otherwise does not pass."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpu_tasks.records import BadInput, from_json, to_json

torch = pytest.importorskip("torch")

from gpu_tasks.workloads.learner import core_checks, training_checks  # noqa: E402 - after the skip
from gpu_tasks.workloads.learner.core import invert_core, run_core  # noqa: E402
from gpu_tasks.workloads.learner.core_checks import check_core  # noqa: E402
from gpu_tasks.workloads.learner.qualification import Qualification, qualify  # noqa: E402
from gpu_tasks.workloads.learner.task import LearnerTask  # noqa: E402
from gpu_tasks.workloads.learner.training_checks import Tally, check_training  # noqa: E402

pytestmark = pytest.mark.usefixtures("repeatable")


def test_a_cpu_qualifies_with_the_figures_of_the_records() -> None:
    found = qualify()
    assert found.passed
    assert found.device == "cpu"
    assert [(check.dtype, check.depth) for check in found.core] == [
        ("torch.float64", 1),
        ("torch.float64", 2),
        ("torch.float32", 1),
        ("torch.float32", 2),
    ]
    for check in found.core:
        double = check.dtype == "torch.float64"
        assert check.forward_bitwise_equal
        assert check.maximum_gradient_abs_error <= (1e-16 if double else 1.5e-8)
        assert check.inverse_max_abs_error <= (5e-16 if double else 2.4e-7)
        assert check.saved_activation_storages == 1
        assert check.saved_activation_bytes == (1968 if double else 984)
        assert check.saved_parameter_references == 2 * check.depth
        assert check.ordinary_activation_bytes == check.depth * check.saved_activation_bytes
    assert found.checks == 212
    assert found.maximum_abs_error < 2e-5
    assert found.tolerance == {"atol": 2e-5, "rtol": 3e-3}
    for case in found.cases:
        assert case.batch_sizes == [8, 8, 3]
        assert (case.config.seed, case.epochs) == (781, 2)
        assert (case.saved_core_activation_storages, case.saved_core_activation_bytes) == (1, 984)
        assert case.saved_parameter_references == 2 * case.depth
    assert from_json(to_json(found), Qualification, "again") == found
    assert json.loads(to_json(found))["cases"][0]["failures"] == []


def wrong_alpha(state: Any, weights: Any, alpha: float) -> Any:
    return run_core(state, weights, alpha * (1 + 1e-6))


def everything_kept(state: Any, weights: Any, alpha: float) -> Any:
    left, right = state.chunk(2, dim=1)
    for first, second in zip(weights[::2], weights[1::2], strict=True):
        left = left + alpha * torch.nn.functional.linear(right.relu(), first)
        right = right + alpha * torch.nn.functional.linear(left.relu(), second)
    return torch.cat([left, right], dim=1)


class WrongGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, state: Any) -> Any:
        return state.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * (1 + 1e-4)


def test_a_core_that_computes_otherwise_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_core("float64", 2).passed
    monkeypatch.setattr(core_checks, "run_core", wrong_alpha)
    assert not check_core("float64", 2).forward_bitwise_equal
    assert not check_core("float64", 2).passed
    monkeypatch.setattr(core_checks, "run_core", everything_kept)
    kept = check_core("float64", 2)
    assert (kept.forward_bitwise_equal, kept.passed) == (True, False)
    assert kept.saved_activation_bytes == kept.ordinary_activation_bytes
    monkeypatch.setattr(core_checks, "run_core", lambda *given: WrongGradient.apply(run_core(*given)))
    wrong = check_core("float64", 2)
    assert (wrong.forward_bitwise_equal, wrong.passed) == (True, False)
    monkeypatch.setattr(core_checks, "run_core", run_core)
    monkeypatch.setattr(core_checks, "invert_core", lambda *given: invert_core(*given) + 1e-12)
    assert not check_core("float64", 2).passed


def test_a_wrong_step_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    train = LearnerTask._train

    def with_more_momentum(task: LearnerTask, batch: Any) -> None:
        train(task, batch)
        task.velocities[1].mul_(1.05)

    monkeypatch.setattr(LearnerTask, "_train", with_more_momentum)
    found = check_training(1, "cpu", captured=False)
    assert not found.passed
    assert found.failures[0] == "epoch 0, batch 0: velocity weights.1"
    assert found.complete_replay_byte_repeatable


def test_a_reset_that_leaves_something_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    reset, resets = LearnerTask.reset, iter(range(100))

    def with_a_rest(task: LearnerTask) -> None:
        reset(task)
        task.velocities[0].fill_(1e-9 * next(resets))

    monkeypatch.setattr(LearnerTask, "reset", with_a_rest)
    found = check_training(1, "cpu", captured=False)
    assert "reset: momentum and gradient weights.0" in found.failures
    assert "replay: parameters and velocities" in found.failures
    assert not found.complete_replay_byte_repeatable


def test_scores_and_predictions_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    predict = LearnerTask.predict

    def upside_down(task: LearnerTask) -> None:
        predict(task)
        task.scores.neg_()
        task.predictions.copy_(task.scores.argmax(dim=1))

    monkeypatch.setattr(LearnerTask, "predict", upside_down)
    found = check_training(2, "cpu", captured=False)
    assert found.failures == ["scores", "predictions"]
    assert not found.predictions_match_independent_eager


def test_a_core_that_keeps_more_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_checks, "run_core", everything_kept)
    assert check_training(2, "cpu", captured=False).failures == [
        "core: one activation storage kept",
        "core: the bytes of one state kept",
    ]


def test_no_number_is_close_to_nan() -> None:
    tally = Tally()
    number, nan = torch.ones(2), torch.tensor([1.0, float("nan")])
    assert not tally.close("found", nan, number)
    assert not tally.close("expected", number, nan)
    assert tally.close("both", number, number + 1e-5)
    assert (tally.checks, tally.failures) == (3, ["found", "expected"])


def test_settings_are_looked_at_first() -> None:
    torch.use_deterministic_algorithms(False)
    with pytest.raises(BadInput, match="repeatability to the bit"):
        qualify()
