"""The reference load on a GPU: a dense float32 matrix product by torch, TF32 off, checked against float64.

What such an operation costs is known for a model of GPU, so that a sensor that sees a part of the power is found
out, however well its readings agree with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from gpu_tasks.energy.instruments import Clock, Gpu, LoadRun
from gpu_tasks.float32 import Float32Array
from gpu_tasks.records import CounterReading

SEED = 20261201
SETTLE_S = 3.0
CHECKED = 16  # rows and columns of the result, which cross in 256 elements
WARM_UP_S = 1.0  # the last of ever longer loops, so that it is two in all: power comes up more slowly than clocks


class TorchKnownLoad:
    """``gpu_tasks.energy.instruments.KnownLoad``: products of two matrices of seeded normal numbers.

    ``size`` n of the n x n x n product. ``translated`` gives a context in which torch's errors become this project's.
    """

    def __init__(
        self,
        torch: Any,
        gpu: Gpu,
        clock: Clock,
        size: int = 4096,
        *,
        translated: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._torch, self._gpu, self._clock, self._size = torch, gpu, clock, size
        self._translated = translated

    def run(self, seconds: float, duty: float = 1.0) -> LoadRun:
        """Products for about ``seconds``, warmed up, between two readings of the counter.

        Back to back, or with pauses after each so that they run ``duty`` of the time. Each writes into the same output.
        ``largest_error`` is the largest relative error of 256 elements of the last one against float64: in float32
        5e-5 (the smallest of them is a hundredth of the others), in TF32 5e-2.
        """
        rng = np.random.default_rng(SEED)
        left, right = (rng.standard_normal((self._size, self._size), dtype=np.float32) for _ in range(2))
        with self._translated(), _in_float32(self._torch):
            repeats, start, end, product = self._products(left, right, seconds, duty)
            self._torch.cuda.empty_cache()  # what stays in it would hide what is allocated later from NVML
        rows, columns = (np.sort(rng.permutation(self._size)[:CHECKED]) for _ in range(2))
        exact = left[rows].astype(np.float64) @ right[:, columns].astype(np.float64)
        error = np.abs(product[np.ix_(rows, columns)] - exact) / np.abs(exact)
        return LoadRun(self._size, repeats, start, end, float(error.max()))

    def _products(
        self, left: Float32Array, right: Float32Array, seconds: float, duty: float
    ) -> tuple[int, CounterReading, CounterReading, Float32Array]:
        """Repeats, the readings around them, and the last product."""
        inputs = [self._on_gpu(values) for values in (left, right)]
        output = self._torch.zeros([self._size, self._size], dtype=self._torch.float32, device="cuda")

        def work(repeats: int) -> None:
            for _ in range(repeats):
                self._torch.matmul(*inputs, out=output)
            self._torch.cuda.synchronize()

        each_s = self._seconds_each(work)
        repeats = max(1, round(seconds * duty / each_s))
        if duty < 1:
            self._clock.sleep(SETTLE_S)  # of the warm-up at full power
        start = self._gpu.read_counter()
        if duty < 1:
            for _ in range(repeats):
                work(1)
                self._clock.sleep(each_s * (1 - duty) / duty)
        else:
            work(repeats)
        end = self._gpu.read_counter()
        product: Float32Array = output.cpu().numpy().copy()
        return repeats, start, end, product

    def _on_gpu(self, values: Float32Array) -> Any:
        tensor = self._torch.zeros([self._size, self._size], dtype=self._torch.float32, device="cuda")
        tensor.copy_(self._torch.from_numpy(values))
        return tensor

    def _seconds_each(self, work: Callable[[int], None]) -> float:
        """Seconds a product, from ever longer loops that also bring clocks and power up."""
        work(1)  # the first one loads the library
        repeats = 1
        while True:
            start = self._clock.now()
            work(repeats)
            elapsed = self._clock.now() - start
            if elapsed >= WARM_UP_S:
                return elapsed / repeats
            repeats *= 2


@contextmanager
def _in_float32(torch: Any) -> Iterator[None]:
    """Products of float32 in float32, whatever the process has chosen; its choice is back afterwards."""
    matmul = torch.backends.cuda.matmul
    allowed, precision = matmul.allow_tf32, torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    matmul.allow_tf32 = False
    try:
        yield
    finally:
        matmul.allow_tf32 = allowed
        torch.set_float32_matmul_precision(precision)  # last: setting the other one changes this one too
