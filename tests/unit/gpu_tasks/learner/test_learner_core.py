"""The reversible core: the forward pass, the gradients, the inverse, and what is kept in between."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_tasks.records import BadInput

torch = pytest.importorskip("torch")

from gpu_tasks.workloads.learner.core import invert_core, run_core  # noqa: E402 - after the skip


def written_out(state: Any, weights: list[Any], alpha: float) -> Any:
    """The formula, one sample and one number at a time."""
    half = state.shape[1] // 2
    rows = []
    for sample in state:
        left, right = list(sample[:half]), list(sample[half:])
        for first, second in zip(weights[::2], weights[1::2], strict=True):
            left = [left[i] + alpha * sum(first[i, k] * right[k].relu() for k in range(half)) for i in range(half)]
            right = [right[i] + alpha * sum(second[i, k] * left[k].relu() for k in range(half)) for i in range(half)]
        rows.append(torch.stack(left + right))
    return torch.stack(rows)


def case(rows: int, half: int, depth: int, seed: int) -> tuple[Any, list[Any]]:
    generator = torch.Generator().manual_seed(seed)
    state = torch.randn(rows, 2 * half, dtype=torch.float64, generator=generator)
    weights = [0.4 * torch.randn(half, half, dtype=torch.float64, generator=generator) for _ in range(2 * depth)]
    return state, weights


@settings(deadline=None, max_examples=25)
@given(
    rows=st.integers(1, 3),
    half=st.integers(1, 4),
    depth=st.integers(1, 3),
    seed=st.integers(0, 2**31),
    alpha=st.sampled_from([0.5, -0.25, 1.0]),
)
def test_values_and_gradients_are_those_of_the_formula(
    rows: int, half: int, depth: int, seed: int, alpha: float
) -> None:
    state, weights = case(rows, half, depth, seed)
    leaves = [state.requires_grad_(), *(weight.requires_grad_() for weight in weights)]
    expected, found = written_out(state, weights, alpha), run_core(state, weights, alpha)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    probe = torch.randn(expected.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for mine, ordinary in zip(
        torch.autograd.grad((found * probe).sum(), leaves),
        torch.autograd.grad((expected * probe).sum(), leaves, materialize_grads=True),
        strict=True,
    ):
        torch.testing.assert_close(mine, ordinary, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(invert_core(found, weights, alpha), state.detach(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("depth", [1, 8])
def test_one_state_is_kept_whatever_the_depth(depth: int) -> None:
    state, weights = case(3, 5, depth, 0)
    kept: list[Any] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda t: t):
        final = run_core(state, [weight.requires_grad_() for weight in weights], 0.5)
    own = {weight.data_ptr() for weight in weights}
    (activation,) = [tensor for tensor in kept if tensor.data_ptr() not in own]
    assert activation.data_ptr() == final.data_ptr()


def test_a_state_that_needs_no_gradient_gets_none() -> None:
    state, weights = case(2, 3, 1, 0)
    run_core(state, [weight.requires_grad_() for weight in weights], 0.5).sum().backward()
    assert state.grad is None
    assert weights[0].grad is not None


@pytest.mark.parametrize(
    ("state", "weights", "code", "words"),
    [
        (torch.zeros(2, 5), [torch.zeros(2, 2)] * 2, "odd_width", "state: width: expected an even number.*found 5"),
        (torch.zeros(2, 0), [torch.zeros(0, 0)] * 2, "odd_width", "found 0"),
        (torch.zeros(4), [torch.zeros(2, 2)] * 2, "bad_shape", r"state: shape: expected \(n, width\)"),
        (torch.zeros(2, 4), [], "bad_shape", "two matrices a block, found 0"),
        (torch.zeros(2, 4), [torch.zeros(2, 2)] * 3, "bad_shape", "two matrices a block, found 3"),
        (torch.zeros(2, 4), [torch.zeros(2, 2), torch.zeros(2, 3)], "bad_shape", r"weights.1: .*found \(2, 3\)"),
    ],
)
def test_what_is_no_state_or_no_block(state: Any, weights: list[Any], code: str, words: str) -> None:
    for function in (run_core, invert_core):
        with pytest.raises(BadInput, match=words) as caught:
            function(state, weights, 0.5)
        assert caught.value.code == code
