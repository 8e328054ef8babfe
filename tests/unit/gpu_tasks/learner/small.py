"""Learners small enough to be trained in a test, on generated data."""

from __future__ import annotations

import dataclasses

import numpy as np

from gpu_tasks.workloads.learner.config import RECORDED, LearnerConfig
from gpu_tasks.workloads.learner.inputs import Inputs


def config(**changes: float) -> LearnerConfig:
    return dataclasses.replace(RECORDED, **({"batch_size": 8} | changes))


def inputs(samples: int = 19, queries: int = 7, features: int = 9) -> Inputs:
    rng = np.random.default_rng(4)
    return Inputs(
        rng.random((samples, features), dtype=np.float32),
        rng.integers(0, 10, samples),
        rng.random((queries, features), dtype=np.float32),
    )
