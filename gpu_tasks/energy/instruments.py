"""What a protocol measures with: a clock, the counter, the GPU's state, a sampler beside it, a known load.

A device hands out one bundle of them (``Device.instruments``): over NVML on a GPU, over the fake NVML and a virtual
clock on the simulated device. Protocols know nothing else, so that the same code runs on both.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from gpu_tasks.records import CounterReading, GpuState, PowerTrace


class Clock(Protocol):
    """Monotonic time in s, and waiting. The real one waits; the virtual one of a simulation moves on at once."""

    def now(self) -> float:
        """Monotonic seconds."""

    def sleep(self, seconds: float) -> None:
        """Return ``seconds`` later."""


class Gpu(Protocol):
    """One GPU by NVML. Errors are ``TaskError``s of ``gpu_tasks.energy.nvml.errors``, one class a code."""

    def read_counter(self) -> CounterReading:
        """The energy counter, with the middle of the call and its duration on the monotonic clock."""

    def state(self) -> GpuState:
        """Clocks, power, limits, processes and so on; what this GPU cannot say is null with its reason."""

    def process_memory(self) -> dict[int, int | None]:
        """Compute processes on the GPU: pid to used bytes."""


class Sampler(Protocol):
    """Samples power beside the measuring process."""

    def start(self) -> None:
        """Begin; returns once the first sample was taken. Raises ``InvalidMeasurement`` where none can be."""

    def stop(self) -> PowerTrace:
        """End, and what was sampled."""


@dataclass(frozen=True)
class LoadRun:
    """One stretch of the reference load: n x n x n products, back to back, between two counter readings."""

    size: int
    repeats: int
    start: CounterReading
    end: CounterReading
    largest_error: float


class KnownLoad(Protocol):
    """The matrix product that says what an operation costs (float32, TF32 off)."""

    def run(self, seconds: float, duty: float = 1.0) -> LoadRun:
        """Work for about ``seconds``, with the result checked against float64 on some elements.

        ``duty`` is the part of the time that products run: after each one it pauses for the rest.
        """


@dataclass(frozen=True)
class Instruments:
    """Everything a protocol needs of one GPU.

    ``hold_memory`` allocates that many bytes on the GPU while its context is open: how a process that a container
    shows under another number is proved to be this one. ``sampler`` makes a new sampler.
    """

    clock: Clock
    gpu: Gpu
    sampler: Callable[[], Sampler]
    known_load: KnownLoad
    hold_memory: Callable[[int], AbstractContextManager[None]]
    own_pid: int
