"""What a task started from and came to, by hash: the same names as in the original records.

Imports torch: import this module where it is used, not at the head of one that must do without.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gpu_tasks.workloads.learner.task import LearnerTask

GRID = 2.0**24
"""Fine as float32 near 1; absolute, because what is 0 in exact arithmetic is noise after a reconstruction."""


@dataclass(frozen=True)
class StateHashes:
    """sha256 of C-order little-endian bytes. Values are hashed in the dtype of the task, except what was given to it.

    Inputs and initial parameters are float32 in every task. The state vector is all parameters, then all velocities.
    """

    input_hashes: dict[str, str]
    epoch_permutation_sha256: list[str]
    initial_parameter_sha256: dict[str, str]
    final_parameter_sha256: dict[str, str]
    final_velocity_sha256: dict[str, str]
    state_vector_sha256: str
    predictions_sha256: str
    scores_sha256: str


def state_hashes(task: LearnerTask) -> StateHashes:
    """Hashes of ``task`` as it is now; waits for what runs."""
    images = {"train_images": task.raw.float(), "train_labels": task.labels, "test_images": task.raw_query.float()}
    names = task.names
    return StateHashes(
        input_hashes={name: tensor_sha256(tensor) for name, tensor in images.items()},
        epoch_permutation_sha256=[tensor_sha256(order) for order in task.orders],
        initial_parameter_sha256=_by_name(names, [tensor.float() for tensor in task.initial]),
        final_parameter_sha256=_by_name(names, task.parameters),
        final_velocity_sha256=_by_name(names, task.velocities),
        state_vector_sha256=tensor_sha256(state_vector(task)),
        predictions_sha256=tensor_sha256(task.predictions),
        scores_sha256=tensor_sha256(task.scores),
    )


def state_vector(task: LearnerTask) -> Any:
    """All parameters, then all velocities, flat, one after another."""
    return torch.cat([tensor.detach().flatten() for tensor in (*task.parameters, *task.velocities)])


def grid_sha256(task: LearnerTask) -> str:
    """Of the state vector as whole multiples of ``1 / GRID``, int64: what a float64 task has in common on every CPU."""
    return tensor_sha256(torch.round(state_vector(task).double() * GRID).to(torch.int64))


def tensor_sha256(tensor: Any) -> str:
    """sha256 of the C-order little-endian bytes of a tensor."""
    array = tensor.detach().cpu().contiguous().numpy()
    return hashlib.sha256(array.astype(array.dtype.newbyteorder("<")).tobytes()).hexdigest()


def _by_name(names: Sequence[str], tensors: Sequence[Any]) -> dict[str, str]:
    return {name: tensor_sha256(tensor) for name, tensor in zip(names, tensors, strict=True)}


def by_dotted_name(hashes: StateHashes) -> dict[str, str]:
    """Every hash under one name, such as ``final_parameter_sha256.weights.0`` or ``epoch_permutation_sha256.1``."""
    found: dict[str, str] = {}
    for name, value in vars(hashes).items():
        if isinstance(value, str):
            found[name] = value
        else:
            items = value.items() if isinstance(value, dict) else enumerate(value)
            found |= {f"{name}.{key}": sha256 for key, sha256 in items}
    return found
