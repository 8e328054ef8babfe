"""The learner on a GPU, in a process of its own: one JSON object with qualification, memory, hashes and times.

Started with ``CUBLAS_WORKSPACE_CONFIG`` set: cuBLAS looks at it once, when it is first used.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable

import numpy as np
import torch

from gpu_tasks.workloads.learner import frozen
from gpu_tasks.workloads.learner.config import RECORDED
from gpu_tasks.workloads.learner.hashes import state_hashes
from gpu_tasks.workloads.learner.inputs import Inputs
from gpu_tasks.workloads.learner.memory import inventory_of, measure_device_memory
from gpu_tasks.workloads.learner.qualification import qualify
from gpu_tasks.workloads.learner.task import LearnerTask
from gpu_tasks.workloads.learner.torch_settings import set_repeatable

RUNS = 5


def inputs() -> Inputs:
    """Data of the recorded size, generated: a GPU machine need not have MNIST."""
    rng = np.random.default_rng(9)
    labels = rng.integers(0, 10, 10_000)
    x, q = rng.random((2, 10_000, 81), dtype=np.float32) / 2
    x[np.arange(10_000), labels] += 0.5
    return Inputs(x, labels, q)


def task_ms(task: LearnerTask) -> float:
    """Time of one task, the mean of a few after one that warms up."""
    task.run()
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(RUNS):
        task.run()
    torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - started) / RUNS


def main() -> None:
    """Print what was found."""
    set_repeatable()
    given, initial = inputs(), frozen.initial_parameters()

    def prepare(captured: bool = True) -> Callable[[], LearnerTask]:
        return lambda: LearnerTask(RECORDED, given, initial, device="cuda", captured=captured)

    task, memory = measure_device_memory(prepare(), "cuda")
    inventory, first = inventory_of(task), state_hashes(task)
    task.run()
    repeated = state_hashes(task) == first
    eager = prepare(captured=False)()
    eager.run()
    on_cpu = LearnerTask(RECORDED, given, initial)
    on_cpu.run()
    found = {
        "qualification": dataclasses.asdict(qualify("cuda")),
        "memory": dataclasses.asdict(memory),
        "named_bytes": inventory.unique_named_storage_bytes,
        "unnamed_bytes": inventory.allocated_bytes_without_named_storage_reference,
        "repeated": repeated,
        "captured_equals_eager": state_hashes(eager) == first,
        "agreeing_with_cpu": int(np.sum(task.classes() == on_cpu.classes())),
        "captured_ms": task_ms(task),
        "eager_ms": task_ms(eager),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
