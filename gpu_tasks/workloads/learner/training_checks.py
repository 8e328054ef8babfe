"""Whole tasks against an independent run: every gradient, update and velocity, scores, replay and reset.

Imports torch: import this module where it is used, not at the head of one that must do without.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from gpu_tasks.workloads.learner.config import LearnerConfig
from gpu_tasks.workloads.learner.core import run_core
from gpu_tasks.workloads.learner.core_checks import saved_by
from gpu_tasks.workloads.learner.initial import draw_parameters, epoch_orders
from gpu_tasks.workloads.learner.inputs import CLASSES, Inputs
from gpu_tasks.workloads.learner.ordinary import Moment, OrdinaryLearner, normalise, train
from gpu_tasks.workloads.learner.task import LearnerTask

ATOL, RTOL = 2e-5, 3e-3
SAMPLES, QUERIES, PIXELS = 19, 19, 81
STATE_SAMPLES = 3
CONFIG = LearnerConfig(
    depth=1, alpha=0.5, seed=781, epochs=2, learning_rate=0.1, batch_size=8, momentum=0.9, weight_decay=0.0
)


@dataclasses.dataclass(frozen=True)
class TrainingCase:
    """One depth; the names are those of the original records. ``failures`` names what did not hold."""

    depth: int
    config: LearnerConfig
    passed: bool
    checks: int
    failures: list[str]
    maximum_abs_error: float
    epochs: int
    batch_sizes: list[int]
    complete_replay_byte_repeatable: bool
    predictions_match_independent_eager: bool
    saved_core_activation_storages: int
    saved_core_activation_bytes: int
    saved_parameter_references: int


class Tally:
    """Counts checks and keeps the names of those that failed."""

    def __init__(self) -> None:
        self.checks, self.maximum_abs_error = 0, 0.0
        self.failures: list[str] = []

    def holds(self, name: str, found: bool) -> bool:
        """One check that holds or does not."""
        self.checks += 1
        if not found:
            self.failures.append(name)
        return found

    def close(self, name: str, found: Any, expected: Any) -> bool:
        """One check within the tolerance; NaN is not."""
        difference = (found - expected).detach().abs()
        self.maximum_abs_error = max(self.maximum_abs_error, float(difference.max()))
        return self.holds(name, bool((difference <= ATOL + RTOL * expected.detach().abs()).all()))


def check_training(depth: int, device: str, *, captured: bool) -> TrainingCase:
    """Train on generated data, traced, and beside it the same network as anybody would write it."""
    config = dataclasses.replace(CONFIG, depth=depth)
    inputs = generated_inputs(config.seed)
    initial = draw_parameters(config, PIXELS + 1)
    task = LearnerTask(config, inputs, initial, device=device, captured=captured, traced=True)
    tally = Tally()
    network = OrdinaryLearner(config, PIXELS + 1).to(device)
    network.start_from(initial)
    moments = list(train(network, config, *_placed(inputs, config, device)))
    _check_steps(task, moments, tally)
    matched = _check_scores(task, network, inputs, tally)
    _check_reset(task, tally)
    repeatable = _check_replay(task, tally)
    *weights, _, _ = task.parameters
    states = task.x[:STATE_SAMPLES]
    final, saved = saved_by(lambda: run_core(states, weights, config.alpha), weights)
    tally.holds("core: one activation storage kept", saved.storages == 1)
    tally.holds("core: the bytes of one state kept", saved.bytes == final.numel() * final.element_size())
    return TrainingCase(
        depth=depth,
        config=config,
        passed=not tally.failures,
        checks=tally.checks,
        failures=tally.failures,
        maximum_abs_error=tally.maximum_abs_error,
        epochs=config.epochs,
        batch_sizes=[len(batch) for batch in torch.split(task.order, config.batch_size)],
        complete_replay_byte_repeatable=repeatable,
        predictions_match_independent_eager=matched,
        saved_core_activation_storages=saved.storages,
        saved_core_activation_bytes=saved.bytes,
        saved_parameter_references=saved.parameter_references,
    )


def generated_inputs(seed: int) -> Inputs:
    """Grey noise with labels and queries."""
    rng = np.random.default_rng(seed)
    x = rng.random((SAMPLES, PIXELS), dtype=np.float32)
    return Inputs(x, rng.integers(0, CLASSES, SAMPLES), rng.random((QUERIES, PIXELS), dtype=np.float32))


def _placed(inputs: Inputs, config: LearnerConfig, device: str) -> tuple[Any, Any, Any]:
    """States, labels and orders as the ordinary run takes them."""
    states = normalise(torch.tensor(inputs.x, device=device))
    labels = torch.tensor(inputs.labels, device=device)
    return states, labels, torch.tensor(epoch_orders(config, len(inputs.x)), device=device)


def _check_steps(task: LearnerTask, moments: Sequence[Moment], tally: Tally) -> None:
    """Run the task's own steps, epoch by epoch, and hold every tensor after each batch against the other run."""
    task.run_reset()
    batches = len(task.trace)
    for epoch in range(task.config.epochs):
        task.run_epoch(epoch)
        for batch, (gradients, parameters, velocities) in enumerate(task.trace):
            moment = moments[epoch * batches + batch]
            for kind, found, expected in (
                ("gradient", gradients, moment.gradients),
                ("parameter", parameters, moment.parameters),
                ("velocity", velocities, moment.velocities),
            ):
                for name, mine, other in zip(task.names, found, expected, strict=True):
                    tally.close(f"epoch {epoch}, batch {batch}: {kind} {name}", mine, other)
    task.run_predict()


def _check_scores(task: LearnerTask, network: Any, inputs: Inputs, tally: Tally) -> bool:
    with torch.no_grad():
        scores = network(normalise(torch.tensor(inputs.q, device=task.device)))
    tally.close("scores", task.scores, scores)
    return tally.holds("predictions", bool(torch.equal(task.predictions, scores.argmax(dim=1))))


def _check_reset(task: LearnerTask, tally: Tally) -> None:
    """What was trained, and NaN in its place, goes with the next reset."""
    with torch.no_grad():
        for tensor in (*task.parameters, *task.gradients, *task.velocities, task.x, task.q):
            tensor.fill_(float("nan"))
    task.run_reset()
    for name, parameter, first, velocity, gradient in zip(
        task.names, task.parameters, task.initial, task.velocities, task.gradients, strict=True
    ):
        tally.holds(f"reset: parameter {name}", bool(torch.equal(parameter, first)))
        tally.holds(f"reset: momentum and gradient {name}", not bool(velocity.any()) and not bool(gradient.any()))


def _check_replay(task: LearnerTask, tally: Tally) -> bool:
    """Two complete runs, the second after everything was poisoned, give the same bytes."""
    ends = []
    for _ in range(2):
        task.run()
        ends.append([t.detach().clone() for t in (*task.parameters, *task.velocities, task.scores, task.predictions)])
        with torch.no_grad():
            for tensor in (*task.parameters, *task.velocities, task.scores):
                tensor.fill_(float("nan"))
            task.predictions.fill_(-1)
    *states, scores, predictions = (bool(torch.equal(first, second)) for first, second in zip(*ends, strict=True))
    found = [
        tally.holds("replay: parameters and velocities", all(states)),
        tally.holds("replay: scores and predictions", scores and predictions),
    ]
    return all(found)
