"""One contestant of the learner's benchmark in a process of its own: its memory or its times, as one JSON object.

    python -m tests.benchmarks.learner_contestants KIND DEPTH REPEATS

``REPEATS`` 0 measures memory, else it is the number of timed tasks. One thread: the products are too small for more.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from gpu_tasks.workloads.learner.config import RECORDED, LearnerConfig
from gpu_tasks.workloads.learner.core_checks import saved_by
from gpu_tasks.workloads.learner.initial import draw_parameters, epoch_orders
from gpu_tasks.workloads.learner.inputs import Inputs
from gpu_tasks.workloads.learner.ordinary import OrdinaryLearner, normalise, optimiser
from gpu_tasks.workloads.learner.task import QUERY_ROWS, LearnerTask
from gpu_tasks.workloads.learner.torch_settings import set_repeatable

KINDS = ("reversible", "ordinary", "compiled")
SAMPLES, PIXELS = 10_000, 81
STATUS, CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RESET_PEAK = "5"
KIB = 1024


def generated() -> Inputs:
    """Data of the recorded size: noise, and a brighter pixel that tells the class."""
    rng = np.random.default_rng(9)
    labels = rng.integers(0, 10, SAMPLES)
    x, q = rng.random((2, SAMPLES, PIXELS), dtype=np.float32) / 2
    x[np.arange(SAMPLES), labels] += 0.5
    return Inputs(x, labels, q)


class Contestant:
    """The network in one way: whole tasks, and the loss of one batch."""

    def __init__(self, kind: str, config: LearnerConfig, inputs: Inputs) -> None:
        self.config, self.inputs = config, inputs
        initial = draw_parameters(config, PIXELS + 1)
        self.states, self.labels = normalise(torch.tensor(inputs.x)), torch.tensor(inputs.labels)
        if kind == "reversible":
            set_repeatable()
            self.task = LearnerTask(config, inputs, initial)
            self.task.run_reset()
            self.parameters, self.run = self.task.parameters, self.task.run
            self._scores: Callable[[Any], Any] = self.task.forward
            self.loss: Callable[[Any, Any], Any] = lambda states, labels: cross_entropy(self._scores(states), labels)
            return
        network = OrdinaryLearner(config, PIXELS + 1)
        network.start_from(initial)
        self.initial = {name: value.clone() for name, value in network.state_dict().items()}
        self.network, self.parameters, self.run = network, list(network.parameters()), self._ordinary_task
        self.orders = torch.tensor(epoch_orders(config, SAMPLES))
        self.pixels, self.queries = torch.tensor(inputs.x), torch.tensor(inputs.q)
        self._scores = network

        def loss(states: Any, labels: Any) -> Any:
            return cross_entropy(network(states), labels)

        self.loss = torch.compile(loss) if kind == "compiled" else loss

    def _ordinary_task(self) -> None:
        """Reset, normalise, train, predict: the steps of ``LearnerTask.run``."""
        self.network.load_state_dict(self.initial)
        states, queries = normalise(self.pixels), normalise(self.queries)
        sgd = optimiser(self.network, self.config)
        for order in self.orders:
            for batch in torch.split(order, self.config.batch_size):
                sgd.zero_grad()
                self.loss(states[batch], self.labels[batch]).backward()
                sgd.step()
        with torch.no_grad():
            torch.cat([self._scores(rows) for rows in torch.split(queries, QUERY_ROWS)]).argmax(dim=1)


def task_times(contestant: Contestant, repeats: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each task, of the CPU and of the clock on the wall, after one that is not counted."""
    contestant.run()
    cpu, wall = [], []
    for _ in range(repeats):
        wall_started, cpu_started = perf_counter(), process_time()
        contestant.run()
        cpu.append(1000 * (process_time() - cpu_started))
        wall.append(1000 * (perf_counter() - wall_started))
    return cpu, wall


def saved_bytes(contestant: Contestant) -> int:
    """What the forward pass keeps for its backward pass, parameters and what was given left out."""
    given = (contestant.states, contestant.labels)
    _, saved = saved_by(lambda: contestant.loss(*given), [*contestant.parameters, *given])
    return saved.bytes


def peak_of_step(contestant: Contestant) -> int:
    """Growth of the resident peak of this process over one step on all samples, in bytes."""

    def step() -> None:
        torch.autograd.grad(contestant.loss(contestant.states, contestant.labels), contestant.parameters)

    step()
    ctypes.CDLL(None).malloc_trim(0)
    CLEAR_REFS.write_text(RESET_PEAK, encoding="ascii")
    before = resident("VmRSS")
    step()
    return resident("VmHWM") - before


def resident(field: str) -> int:
    """``VmRSS`` (now) or ``VmHWM`` (the most so far) of this process, in bytes."""
    lines = STATUS.read_text(encoding="ascii").splitlines()
    return next(KIB * int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def main() -> None:
    """Measure one and print it."""
    kind, depth, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    started = perf_counter()
    contestant = Contestant(kind, dataclasses.replace(RECORDED, depth=depth), generated())
    found: dict[str, Any] = {"kind": kind, "depth": depth}
    if repeats:
        cpu, wall = task_times(contestant, repeats)
        found |= {
            "task_cpu_ms": statistics.median(cpu),
            "lowest_cpu_ms": min(cpu),
            "task_wall_ms": statistics.median(wall),
        }
    else:
        found["peak_bytes"] = peak_of_step(contestant)
        found["saved_bytes_per_sample"] = saved_bytes(contestant) / SAMPLES
    print(json.dumps(found | {"process_s": perf_counter() - started}))


if __name__ == "__main__":
    main()
