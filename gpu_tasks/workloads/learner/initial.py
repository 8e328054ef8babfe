"""Where a learner starts: the values of its parameters, and the order of the samples in each epoch."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from gpu_tasks.float32 import Float32Array
from gpu_tasks.workloads.learner.config import LearnerConfig
from gpu_tasks.workloads.learner.inputs import CLASSES, check_width
from gpu_tasks.workloads.learner.torch_settings import require_torch

HEAD = ("head.weight", "head.bias")


def parameter_shapes(depth: int, width: int) -> dict[str, tuple[int, ...]]:
    """Shape of every parameter of a learner with states of ``width``, in order: two matrices a block, then the head."""
    check_width(width, "state: width")
    matrices: dict[str, tuple[int, ...]] = {f"weights.{n}": (width // 2, width // 2) for n in range(2 * depth)}
    return matrices | {HEAD[0]: (CLASSES, width), HEAD[1]: (CLASSES,)}


def draw_parameters(config: LearnerConfig, width: int) -> dict[str, Float32Array]:
    """Initial float32 parameters from the seed, drawn on the CPU: small normal matrices, torch's own linear head.

    The last bits depend on the instructions that torch finds in the CPU, so the recorded config starts from frozen
    values instead (``frozen.initial_parameters``). torch's own generator is left as it was.
    """
    torch = require_torch()
    shapes = parameter_shapes(config.depth, width)
    half = width // 2
    state = torch.get_rng_state()
    try:
        torch.manual_seed(config.seed)
        branches = [torch.empty(half, half).normal_(0, 0.05 / math.sqrt(half)) for _ in range(2 * config.depth)]
        head = torch.nn.Linear(width, CLASSES)
    finally:
        torch.set_rng_state(state)
    tensors = [*branches, head.weight.detach(), head.bias.detach()]
    return {name: tensor.numpy() for name, tensor in zip(shapes, tensors, strict=True)}


def epoch_orders(config: LearnerConfig, samples: int) -> npt.NDArray[np.int64]:
    """(epochs, samples) int64: one permutation for each epoch, all from one generator."""
    generator = np.random.default_rng(config.seed)
    return np.stack([generator.permutation(samples).astype(np.int64) for _ in range(config.epochs)])
