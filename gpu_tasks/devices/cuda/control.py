"""The control: the control kernel in a graph of the task's shape, which spins as long as the task takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from gpu_tasks.devices.base import ReplayTiming
from gpu_tasks.devices.cuda.driver import Driver
from gpu_tasks.devices.cuda.stream import Stream
from gpu_tasks.devices.manifest import load_control
from gpu_tasks.records import BadInput, InfrastructureFailure, InvalidMeasurement, TaskError

LANES = 32
MOST_ITERATIONS = 2**31 - 1
ITERATION_S = 10e-9
"""First guess: three operations that wait for each other, and the loop, are some 13 cycles at 1.4 GHz."""

TOLERANCE = 0.05
STEPS = 20  # a straight line takes three, one that begins flat some ten
WARM_UP_S = 0.5
MEASURED_S = 0.05
FEWEST_REPLAYS, MOST_REPLAYS = 3, 100_000


class ControlFailed(InvalidMeasurement):
    """A control of the wished length cannot be had; says nothing about the task's kernels."""


class Spins:
    """Graphs of ``launches`` launches of the control kernel, one for each length that was asked for.

    Raises what the driver says of the kernel, and ``BadInput`` or ``VerificationMismatch`` of its file.
    """

    def __init__(self, driver: Driver, torch: Any, stream: Stream, launches: int) -> None:
        control, text = load_control()
        self._driver, self._stream, self._launches, self._entry = driver, stream, launches, control.entry
        self._graphs: list[Any] = []
        with stream.entered():
            self._result = torch.zeros([LANES], dtype=torch.float32, device="cuda")
        self._module = driver.load_module(text, control.ptx)
        try:
            self._function = driver.function(self._module, control.entry)
        except BaseException:
            self.close()
            raise

    def calibrated(self, replay_s: float) -> Callable[[int], ReplayTiming]:
        """``replay`` of a graph that takes ``replay_s`` within 5 %, by events.

        Each step of the calibration records a graph, because a graph keeps the number of iterations that it was
        recorded with. Raises ``ControlFailed`` where the launches alone take longer, or after ``STEPS`` steps.
        """
        if not (math.isfinite(replay_s) and replay_s > 0):
            raise BadInput("bad_replay_s", f"replay_s: expected a time over 0 s, found {replay_s!r}")
        wanted = f"control of {_us(replay_s)}"
        search, iterations, found_s = _Search(ITERATION_S * self._launches), 0, math.nan
        for step in range(STEPS):
            graph = self._record(iterations)
            found_s = self._seconds(graph, replay_s, WARM_UP_S if step == 0 else MEASURED_S)
            if abs(found_s - replay_s) <= TOLERANCE * replay_s:
                self._graphs.append(graph)
                return partial(self._replay, graph)
            graph.reset()
            if iterations == 0 and found_s > replay_s:
                message = f"{wanted}: expected {self._launches} idle launches to take less, found {_us(found_s)}"
                raise ControlFailed("control_too_short", message)
            iterations = min(search.next(iterations, found_s - replay_s), MOST_ITERATIONS)
        message = f"{wanted}: expected a replay within {TOLERANCE:.0%} of it, found {_us(found_s)} after {STEPS} steps"
        raise ControlFailed("control_not_calibrated", message)

    def close(self) -> None:
        """Free graphs, module and buffer; safe to call twice. What fails here has failed before."""
        graphs, self._graphs = self._graphs, []
        for graph in graphs:
            with suppress(RuntimeError):
                graph.reset()
        module, self._module = self._module, 0
        if module:
            with suppress(TaskError):
                self._driver.unload(module)
        self._result = None

    def _record(self, iterations: int) -> Any:
        def launch_all() -> None:
            for _ in range(self._launches):
                self._driver.launch(
                    self._function,
                    [self._result.data_ptr(), iterations],
                    grid=(1, 1, 1),
                    block=(LANES, 1, 1),
                    shared_bytes=0,
                    stream=self._stream.handle,
                    name=self._entry,
                )

        with self._stream.entered():
            launch_all()  # once outside: a kernel's first launch may load code, which a capture does not allow
            self._stream.synchronize()
            return self._stream.record(launch_all, self._launches)

    def _seconds(self, graph: Any, replay_s: float, warm_up_s: float) -> float:
        """Seconds a replay, after ``warm_up_s`` of replays of the wished length."""
        warm_up, repeats = (
            max(FEWEST_REPLAYS, math.ceil(min(seconds / replay_s, MOST_REPLAYS))) for seconds in (warm_up_s, MEASURED_S)
        )
        self._stream.replay(graph, warm_up)
        return self._stream.replay(graph, repeats) / 1000 / repeats

    def _replay(self, graph: Any, repeats: int) -> ReplayTiming:
        if graph not in self._graphs:
            raise InfrastructureFailure("no_graph", "control: expected an open device, found a closed one")
        return ReplayTiming(device_ms_per_replay=self._stream.replay(graph, repeats) / repeats, reason=None)


class _Search:
    """Where the time of a replay, which rises with the iterations, meets the wished one.

    Leaps until it is passed, at least twofold, because a short spin vanishes behind the launch. Between the bounds it
    interpolates and halves in turn: the one finds it at once on a straight line, the other soon on any.
    """

    def __init__(self, iteration_s: float) -> None:
        self._iteration_s = iteration_s
        self._low, self._high = (0, -math.inf), (0, math.inf)  # iterations, and seconds over the wished time
        self._halves = True

    def next(self, iterations: int, excess_s: float) -> int:
        """Iterations to try after those that were found to take ``excess_s`` too long."""
        if excess_s < 0:
            self._low = iterations, excess_s
        else:
            self._high = iterations, excess_s
        (low, under_s), (high, over_s) = self._low, self._high
        if over_s == math.inf:
            return max(iterations + math.ceil(-excess_s / self._iteration_s), 2 * iterations)
        self._halves = not self._halves
        share = 0.5 if self._halves else under_s / (under_s - over_s)
        return low + round(share * (high - low))


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} us"
