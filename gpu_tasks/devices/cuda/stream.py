"""The stream that all work of the device runs on, with its graphs and events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from gpu_tasks.devices.cuda.driver import Driver
from gpu_tasks.devices.cuda.errors import CaptureFailed, CudaFailure
from gpu_tasks.records import TaskError


class Stream:
    """A stream of torch's. What torch raises of CUDA in its methods becomes the driver's typed error."""

    def __init__(self, driver: Driver, torch: Any) -> None:
        self._driver, self._torch = driver, torch
        with self.translated():
            torch.cuda.init()
            self._stream = torch.cuda.Stream()
            self._start, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    @property
    def handle(self) -> int:
        """What the driver knows the stream by."""
        return int(self._stream.cuda_stream)

    def synchronize(self) -> None:
        """Wait for everything on the stream."""
        self._stream.synchronize()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Work on the stream, behind what the caller has queued on its own, and wait for the end of it."""
        with self.translated():
            cuda = self._torch.cuda
            # Without this, a graph can start before the caller's copies into its buffers have ended.
            self._stream.wait_stream(cuda.current_stream())
            with cuda.stream(self._stream):
                yield
            self.synchronize()

    @contextmanager
    def translated(self) -> Iterator[None]:
        """What torch raises of CUDA becomes the driver's typed error."""
        self._driver.check_process()
        try:
            yield
        except RuntimeError as error:
            line = first_line(error)
            code = self._driver.code_in(str(error))
            if code is None:
                raise CudaFailure("cuda_runtime_error", f"torch: expected success, found {line}") from error
            raise self._driver.error(code, f"torch: {line}") from error

    def record(self, launch_all: Callable[[], None], launches: int) -> Any:
        """A graph of what ``launch_all`` launches; call it within ``entered``.

        The stream's capture is ended whatever happens in it. Raises ``CaptureFailed``.
        """
        graph = self._torch.cuda.CUDAGraph()
        try:
            graph.capture_begin()
            launch_all()
            graph.capture_end()
        except (TaskError, RuntimeError) as error:
            with suppress(RuntimeError):
                graph.capture_end()  # for torch's own books, where it was not what failed
            self._driver.end_capture(self.handle)
            expected = f"capture: expected a graph of {launches} launches"
            raise CaptureFailed("capture_failed", f"{expected}, found {first_line(error)}") from error
        return graph

    def replay(self, graph: Any, repeats: int) -> float:
        """Replay a graph ``repeats`` times back to back, wait, and return the ms between the events at both ends."""
        with self.entered():
            replay = graph.replay
            self._start.record()
            for _ in range(repeats):
                replay()
            self._end.record()
            self._end.synchronize()
            return float(self._start.elapsed_time(self._end))


def first_line(error: Exception) -> str:
    """What is said of an error in one line."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
