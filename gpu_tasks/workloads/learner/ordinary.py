"""The same network as anybody would write it: ordinary autograd, torch's own SGD. What the learner is held against.

Shares no computation with ``core`` and ``task``, on purpose.

Imports torch: import this module where it is used, not at the head of one that must do without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from gpu_tasks.float32 import Float32Array
from gpu_tasks.workloads.learner.config import LearnerConfig
from gpu_tasks.workloads.learner.inputs import CLASSES


class OrdinaryLearner(nn.Module):  # type: ignore[misc]  # torch is read as Any
    """The learner as a module; its parameters have the learner's names and order."""

    def __init__(self, config: LearnerConfig, width: int) -> None:
        super().__init__()
        half = width // 2
        self.alpha = config.alpha
        self.weights = nn.ParameterList([torch.zeros(half, half) for _ in range(2 * config.depth)])
        self.head = nn.Linear(width, CLASSES)

    def core(self, states: Any) -> Any:
        """The states after the last block."""
        half = states.shape[1] // 2
        left, right = states[:, :half], states[:, half:]
        for number in range(0, len(self.weights), 2):
            left = left + self.alpha * nn.functional.linear(torch.relu(right), self.weights[number])
            right = right + self.alpha * nn.functional.linear(torch.relu(left), self.weights[number + 1])
        return torch.cat((left, right), 1)

    def forward(self, states: Any) -> Any:
        """Scores of normalised samples."""
        return self.head(self.core(states))

    def start_from(self, initial: Mapping[str, Float32Array]) -> None:
        """Take the values of the parameters from ``initial``."""
        self.load_state_dict({name: torch.tensor(value) for name, value in initial.items()})


def optimiser(network: Any, config: LearnerConfig) -> Any:
    """torch's SGD with the settings of ``config``."""
    return torch.optim.SGD(
        network.parameters(), lr=config.learning_rate, momentum=config.momentum, weight_decay=config.weight_decay
    )


def normalise(pixels: Any) -> Any:
    """Pixels 0..1 as the network takes them."""
    return nn.functional.pad(pixels * 4 - 0.5, (0, 1))


@dataclass(frozen=True)
class Moment:
    """Everything after one step, in the order of the parameters."""

    gradients: list[Any]
    parameters: list[Any]
    velocities: list[Any]


def train(network: Any, config: LearnerConfig, states: Any, labels: Any, orders: Any) -> Iterator[Moment]:
    """Train ``network`` in the given orders; one ``Moment`` a step, of copies."""
    sgd = optimiser(network, config)
    for order in orders:
        for batch in torch.split(order, config.batch_size):
            sgd.zero_grad()
            nn.functional.cross_entropy(network(states[batch]), labels[batch]).backward()
            decayed = [p.grad + config.weight_decay * p.detach() for p in network.parameters()]
            sgd.step()
            yield Moment(
                decayed,
                [p.detach().clone() for p in network.parameters()],
                [sgd.state[p]["momentum_buffer"].clone() for p in network.parameters()],
            )
