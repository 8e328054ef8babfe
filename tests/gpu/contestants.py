"""What is raced against each other: the kernel variants, and torch eagerly, in a CUDA graph and compiled.

Each runs the whole task, training and prediction, on inputs that are on the device already. One that cannot be had on
a host (no compiler for torch.compile, say) says why and does not stop the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gpu_tasks.devices.cuda.device import CudaQda
from gpu_tasks.devices.emulated.device import EmulatedQda
from gpu_tasks.devices.manifest import load_kernels
from gpu_tasks.payload.draws import Draw
from gpu_tasks.workloads.registry import get_workload

VARIANTS = ("class_blocks", "record", "fused")


@dataclass(frozen=True)
class Contestant:
    """``run(n)`` runs the task n times back to back and returns milliseconds for all of them together."""

    name: str
    run: Callable[[int], float]
    predictions: Callable[[], np.ndarray]
    close: Callable[[], None]


def kernel_variant(variant: str, draw: Draw, device_kind: str) -> Contestant:
    """A variant of the committed kernels as a replayed graph, on the GPU by its events; emulated by the clock."""
    workload, kernels = get_workload("qda"), load_kernels(variant=variant)
    device = CudaQda(workload, kernels) if device_kind == "cuda" else EmulatedQda(workload, kernels, check_races=False)
    device.load(draw.x, draw.labels, draw.q)
    device.capture()
    device.poison_scratch()

    def run(repeats: int) -> float:
        start = time.perf_counter()
        timing = device.replay(repeats)
        if timing.device_ms_per_replay is not None:
            return timing.device_ms_per_replay * repeats
        return (time.perf_counter() - start) * 1000

    return Contestant(f"{variant}, graph", run, device.predictions, device.close)


class TorchRun:
    """torch's version of the task, prepared in one of its ways of being run."""

    def __init__(self, draw: Draw, dtype: str, device_kind: str) -> None:
        import torch

        from tests.gpu.torch_qda import predict

        self.torch, self.predict, self.on_gpu = torch, predict, device_kind == "cuda"
        precision = getattr(torch, dtype)
        self.inputs = (
            torch.from_numpy(draw.x.copy()).to(device_kind, precision),
            torch.from_numpy(draw.labels.copy()).to(device_kind),
            torch.from_numpy(draw.q.copy()).to(device_kind, precision),
        )
        self.output: Any = None
        self.step: Callable[[], None] = self.eager

    def eager(self) -> None:
        self.output = self.predict(*self.inputs)

    def compiled(self) -> None:
        """Compile, and run once, which is when it compiles."""
        function = self.torch.compile(self.predict)

        def step() -> None:
            self.output = function(*self.inputs)

        step()
        self.step = step

    def captured(self) -> None:
        """Warm up on a stream of its own, then record one run as a graph."""
        torch = self.torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.eager()
        torch.cuda.current_stream().wait_stream(side)
        graph, before = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        try:
            with torch.cuda.graph(graph):
                self.eager()
        finally:
            torch.cuda.set_stream(before)  # a capture that fails leaves its own stream behind as the current one
        self.step = graph.replay

    def run(self, repeats: int) -> float:
        """Milliseconds for all repeats: by events on the GPU, by the clock on the CPU."""
        if not self.on_gpu:
            begin = time.perf_counter()
            for _ in range(repeats):
                self.step()
            return (time.perf_counter() - begin) * 1000
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(repeats):
            self.step()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end))

    def predictions(self) -> np.ndarray:
        return np.asarray(self.output.cpu().numpy())


def torch_contestant(name: str, way: str | None, dtype: str, draw: Draw, device_kind: str) -> Contestant:
    """torch in one way: None is eager, else ``captured`` or ``compiled``."""
    contestant = TorchRun(draw, dtype, device_kind)
    if way is not None:
        getattr(contestant, way)()
    return Contestant(name, contestant.run, contestant.predictions, lambda: None)


def makers(draw: Draw, device_kind: str, *, compile_too: bool) -> dict[str, Callable[[], Contestant]]:
    """Name to what makes the contestant; the first is what the others are compared with."""
    ways: list[tuple[str, str | None, str]] = [
        ("torch float32, eager", None, "float32"),
        ("torch float64, eager", None, "float64"),
    ]
    if compile_too:
        ways.append(("torch float32, compiled", "compiled", "float32"))
    if device_kind == "cuda":  # last: a capture that fails can disturb what is prepared after it
        ways += [("torch float32, graph", "captured", "float32"), ("torch float64, graph", "captured", "float64")]
    made: dict[str, Callable[[], Contestant]] = {
        f"{variant}, graph": partial(kernel_variant, variant, draw, device_kind) for variant in VARIANTS
    }
    return made | {name: partial(torch_contestant, name, way, dtype, draw, device_kind) for name, way, dtype in ways}
