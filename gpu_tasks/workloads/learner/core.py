"""The reversible core: blocks that can be run backwards, so that training keeps one state instead of one a layer.

A state (n, width) has two halves, left and right. A block with matrices A and B and the scale alpha is
``left += alpha * A relu(right)``, then ``right += alpha * B relu(left)`` with the new left; its inverse subtracts in
the opposite order. (Gomez, Ren, Urtasun and Grosse, "The Reversible Residual Network: Backpropagation Without Storing
Activations", 2017.)

Imports torch: import this module where it is used, not at the head of one that must do without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

from gpu_tasks.records import BadInput
from gpu_tasks.workloads.learner.inputs import check_width


def run_core(state: Any, weights: Sequence[Any], alpha: float) -> Any:
    """The state (n, width) after ``len(weights) / 2`` blocks; differentiable once, keeping this one state.

    Raises ``BadInput``: ``odd_width``, ``bad_shape``.
    """
    _check(state, weights)
    return _Core.apply(state, alpha, *weights)


def invert_core(state: Any, weights: Sequence[Any], alpha: float) -> Any:
    """The state that ``run_core`` made ``state`` of, up to rounding. Not differentiable."""
    _check(state, weights)
    with torch.no_grad():
        left, right = state.chunk(2, dim=1)
        for first, second in reversed(_blocks(weights)):
            right = right - alpha * linear(left.relu(), second)
            left = left - alpha * linear(right.relu(), first)
        return torch.cat([left, right], dim=1)


def _blocks(weights: Sequence[Any]) -> list[tuple[Any, Any]]:
    return list(zip(weights[::2], weights[1::2], strict=True))


def _check(state: Any, weights: Sequence[Any]) -> None:
    if state.dim() != 2:
        raise BadInput("bad_shape", f"state: shape: expected (n, width), found {tuple(state.shape)}")
    check_width(state.shape[1], "state: width")
    if not weights or len(weights) % 2:
        raise BadInput("bad_shape", f"weights: expected two matrices a block, found {len(weights)}")
    half = state.shape[1] // 2
    for number, weight in enumerate(weights):
        if tuple(weight.shape) != (half, half):
            found = tuple(weight.shape)
            raise BadInput("bad_shape", f"weights.{number}: shape: expected {(half, half)}, found {found}")


class _Core(torch.autograd.Function):  # type: ignore[misc]  # torch is read as Any
    @staticmethod
    def forward(ctx: Any, state: Any, alpha: float, *weights: Any) -> Any:
        left, right = state.chunk(2, dim=1)
        for first, second in _blocks(weights):
            left = left + alpha * linear(right.relu(), first)
            right = right + alpha * linear(left.relu(), second)
        final = torch.cat([left, right], dim=1)
        ctx.alpha = alpha
        ctx.save_for_backward(final, *weights)
        return final

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Any) -> tuple[Any, ...]:
        """Undo block after block; the gradients are those of ordinary autograd, in its order of operations."""
        final, *weights = ctx.saved_tensors
        alpha = ctx.alpha
        (left, right), (to_left, to_right) = final.chunk(2, dim=1), gradient.chunk(2, dim=1)
        of_weights: list[Any] = []
        for first, second in reversed(_blocks(weights)):
            positive, scaled = left.relu(), alpha * to_right
            right = right - alpha * linear(positive, second)
            of_second = scaled.t() @ positive
            to_left = to_left + (scaled @ second) * (left > 0)
            positive, scaled = right.relu(), alpha * to_left
            left = left - alpha * linear(positive, first)
            of_weights = [scaled.t() @ positive, of_second, *of_weights]
            to_right = to_right + (scaled @ first) * (right > 0)
        to_state = torch.cat([to_left, to_right], dim=1) if ctx.needs_input_grad[0] else None
        return (to_state, None, *of_weights)
