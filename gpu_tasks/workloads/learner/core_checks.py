"""The reversible core against ordinary autograd: values, gradients, inverse, and what each keeps in between.

Imports torch: import this module where it is used, not at the head of one that must do without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gpu_tasks.workloads.learner.config import RECORDED
from gpu_tasks.workloads.learner.core import invert_core, run_core
from gpu_tasks.workloads.learner.ordinary import OrdinaryLearner

PIXELS = 81
BATCH = 3
SEED = 781
TOLERANCE_EPSILONS = 64
"""Of the largest value: what is rebuilt differs from what was there in a few last bits, not in more."""


@dataclass(frozen=True)
class CoreCheck:
    """One precision and depth; the names are those of the original records.

    ``saved_activation_storages`` and ``_bytes`` are what the core keeps for its backward pass beside the weights,
    which it refers to ``saved_parameter_references`` times; ``ordinary_activation_bytes`` is what autograd would keep.
    """

    dtype: str
    depth: int
    passed: bool
    forward_bitwise_equal: bool
    maximum_gradient_abs_error: float
    inverse_max_abs_error: float
    saved_activation_storages: int
    saved_activation_bytes: int
    saved_parameter_references: int
    ordinary_activation_bytes: int


@dataclass(frozen=True)
class Saved:
    """What a forward pass keeps for its backward pass."""

    storages: int
    bytes: int
    parameter_references: int


def check_core(dtype: str, depth: int) -> CoreCheck:
    """Compare both on a generated batch of three, on the CPU, as the original did on every device.

    The appended zero is no datum, and where it stood the reconstruction has noise: gradients are taken of the pixels.
    """
    config = RECORDED
    kind = {"float32": torch.float32, "float64": torch.float64}[dtype]
    rng = np.random.default_rng(SEED)
    half = (PIXELS + 1) // 2

    def leaf(array: Any) -> Any:
        return torch.tensor(array, dtype=kind).requires_grad_()

    pixels = leaf(4 * rng.random((BATCH, PIXELS)) - 0.5)
    weights = [leaf(rng.normal(0, 0.05 / half**0.5, (half, half))) for _ in range(2 * depth)]
    probe = torch.tensor(rng.normal(0, 1 / (PIXELS + 1), (BATCH, PIXELS + 1)), dtype=kind)
    zero = torch.zeros((BATCH, 1), dtype=kind)
    network = OrdinaryLearner(config, PIXELS + 1)
    network.weights = torch.nn.ParameterList(weights)
    leaves = [pixels, *weights]

    def state() -> Any:
        return torch.cat([pixels, zero], dim=1)

    final, saved = saved_by(lambda: run_core(state(), weights, config.alpha), weights)
    ordinary, ordinary_saved = saved_by(lambda: network.core(state()), list(network.weights))
    mine = torch.autograd.grad((final * probe).sum(), leaves)
    expected = torch.autograd.grad((ordinary * probe).sum(), [pixels, *network.weights])
    equal = bool(torch.equal(final, ordinary))
    gradient_error, gradient_limit = _error(mine, expected)
    inverse_error, inverse_limit = _error([invert_core(final, weights, config.alpha)], [state().detach()])
    state_bytes = final.untyped_storage().nbytes()
    return CoreCheck(
        dtype=f"torch.{dtype}",
        depth=depth,
        passed=equal
        and gradient_error <= gradient_limit
        and inverse_error <= inverse_limit
        and (saved.storages, saved.bytes) == (1, state_bytes),
        forward_bitwise_equal=equal,
        maximum_gradient_abs_error=gradient_error,
        inverse_max_abs_error=inverse_error,
        saved_activation_storages=saved.storages,
        saved_activation_bytes=saved.bytes,
        saved_parameter_references=saved.parameter_references,
        ordinary_activation_bytes=ordinary_saved.bytes,
    )


def _error(found: Sequence[Any], expected: Sequence[Any]) -> tuple[float, float]:
    """The largest difference, NaN where any is, and how large it may be."""
    differences = [(mine - other).abs().max() for mine, other in zip(found, expected, strict=True)]
    scale = max(float(other.abs().max()) for other in expected)
    return float(torch.stack(differences).max()), TOLERANCE_EPSILONS * torch.finfo(expected[0].dtype).eps * scale


def saved_by(compute: Callable[[], Any], parameters: Sequence[Any]) -> tuple[Any, Saved]:
    """The result of ``compute`` and what it keeps for a backward pass; a storage is counted once."""
    kept: list[Any] = []

    def pack(tensor: Any) -> Any:
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = compute()
    own = {parameter.untyped_storage().data_ptr() for parameter in parameters}
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage() for tensor in kept}
    activations = [storage for address, storage in storages.items() if address not in own]
    references = sum(tensor.untyped_storage().data_ptr() in own for tensor in kept)
    return result, Saved(len(activations), sum(storage.nbytes() for storage in activations), references)
