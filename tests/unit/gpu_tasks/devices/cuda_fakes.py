"""A GPU that is not there: its state, and the part of torch that the device uses (libcuda is in the file beside).

Work is asynchronous as on a GPU: what is put on a stream runs when the stream is waited for, a capturing stream keeps
what is put on it for its graph, and waiting in a capture is an error. "Kernels" are Python functions on the buffers.
Time passes when work runs. Memory that is freed stays the process's until the cache is emptied, and is used again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from weakref import WeakValueDictionary, finalize

import numpy as np

CODES = {
    1: ("CUDA_ERROR_INVALID_VALUE", "invalid argument"),
    2: ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
    46: ("CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"),
    100: ("CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"),
    218: ("CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"),
    700: ("CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"),
    900: ("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"),
    901: ("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"),
}


class FakeStream:
    """Work in order, run when waited for."""

    def __init__(self, gpu: FakeGpu) -> None:
        self.gpu = gpu
        self.cuda_stream = len(gpu.streams)
        self.pending: list[Callable[[], None]] = []
        gpu.streams.append(self)

    def put(self, work: Callable[[], None]) -> None:
        graph = self.gpu.capturing.get(self.cuda_stream)
        (self.pending if graph is None else graph).append(work)

    def run(self) -> None:
        while self.pending:
            self.pending.pop(0)()

    def wait_stream(self, other: FakeStream) -> None:
        if other is not self:
            self.put(other.run)

    def synchronize(self) -> None:
        self.gpu.called("synchronize")
        if self.cuda_stream in self.gpu.capturing:
            raise RuntimeError(f"CUDA error: {CODES[900][1]}\nmore lines of torch's")
        self.run()
        if self.gpu.fault is not None:
            raise RuntimeError(f"CUDA error: {CODES[self.gpu.fault][1]}\nCUDA kernel errors might be reported later")


class FakeGpu:
    """What both fakes share. ``failing`` is driver function to code, ``skipped`` entries do nothing when launched."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.name = "NVIDIA A100-SXM4-40GB"
        self.count = 1
        self.failing: dict[str, int] = {}
        self.skipped: set[str] = set()
        self.fault: int | None = None
        self.log = b""
        self.streams: list[FakeStream] = []
        self.capturing: dict[int, list[Callable[[], None]]] = {}
        self.buffers: WeakValueDictionary[int, FakeTensor] = WeakValueDictionary()
        self.used_bytes = self.cached_bytes = 0
        self.time_ms = 0.0
        self.control_ms: Callable[[int], float] = lambda iterations: 0.002 + 1e-5 * iterations
        self.product_ms, self.loading_ms = 7.0, 3000.0  # of a matrix product, and once of the library for it
        self.functions: dict[int, str] = {}
        self.modules: set[int] = set()
        self.launches: list[tuple[str, tuple[int, ...], int]] = []
        self.dynamic_shared: dict[str, int] = {}
        self.caller = self.current = FakeStream(self)

    def called(self, what: str) -> None:
        self.calls.append(what)

    def compile(self, text: str) -> int:
        """Code of the compiler for PTX text: this one takes any."""
        return 0

    def execute(self, entry: str, arguments: list[Any], geometry: list[int], shared: int) -> None:
        """One launch, when its turn has come; 0.5 ms, but for the control."""
        self.time_ms += self.control_ms(arguments[1]) if entry == "control" else 0.5
        self.launch(entry, arguments, geometry, shared)

    def launch(self, entry: str, arguments: list[Any], geometry: list[int], shared: int) -> None:
        if entry not in self.skipped:
            KERNELS[entry](*(each.array if isinstance(each, FakeTensor) else each for each in arguments))

    @property
    def process_bytes(self) -> int:
        """What NVML would say that the process uses."""
        return self.used_bytes + self.cached_bytes

    def allocated(self, tensor: FakeTensor) -> FakeTensor:
        """Account for a tensor until it is gone; memory in the cache is used first."""
        size = tensor.array.nbytes
        self.cached_bytes -= size if self.cached_bytes >= size else 0
        self.used_bytes += size
        finalize(tensor, self._freed, size)
        return tensor

    def _freed(self, size: int) -> None:
        self.used_bytes -= size
        self.cached_bytes += size

    def empty_cache(self) -> None:
        self.called("empty_cache")
        self.cached_bytes = 0


def _train(x: np.ndarray, labels: np.ndarray, model: np.ndarray, status: np.ndarray) -> None:
    for label in range(10):
        own = x[labels == label]
        model[label] = 0
        model[label, :9] = own.mean(axis=0) if len(own) else np.nan
        singular = len(own) > 0 and (own.std(axis=0) == 0).any()
        status[label] = -len(own) if singular else len(own)


def _score(model: np.ndarray, q: np.ndarray, predictions: np.ndarray) -> None:
    distances = ((q[:, None, :] - model[None, :, :9]) ** 2).sum(axis=2)
    predictions[:] = np.where(np.isnan(distances).any(axis=1), -1, np.argmin(distances, axis=1))


def _control(result: np.ndarray, iterations: int) -> None:
    result[:] = iterations


def nearest_mean(x: np.ndarray, labels: np.ndarray, q: np.ndarray) -> np.ndarray:
    """What the fake kernels predict: the class with the nearest mean."""
    model, status, predictions = np.zeros((10, 64), np.float32), np.zeros(10, np.int32), np.zeros(len(q), np.int32)
    _train(x, labels, model, status)
    _score(model, q, predictions)
    return predictions


KERNELS: dict[str, Callable[..., None]] = {"train": _train, "score": _score, "control": _control}


class FakeTensor:
    """A buffer; every operation is work on the current stream."""

    def __init__(self, gpu: FakeGpu, array: np.ndarray) -> None:
        self.gpu, self.array, self.dtype = gpu, array, array.dtype
        gpu.buffers[self.data_ptr()] = self

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def copy_(self, source: FakeTensor) -> None:
        assert source.array.dtype == self.dtype
        assert source.array.shape == self.array.shape
        self.gpu.current.put(lambda: self.array.__setitem__(..., source.array))

    def fill_(self, value: float) -> None:
        self.gpu.called("fill")
        self.gpu.current.put(lambda: self.array.fill(value))

    def cpu(self) -> FakeTensor:
        self.gpu.current.synchronize()
        return self

    def numpy(self) -> np.ndarray:
        return self.array


class FakeGraph:
    """Launches kept by a capture. Like torch's, ``capture_end`` raises on a capture that was invalidated."""

    def __init__(self, gpu: FakeGpu) -> None:
        self.gpu, self.work = gpu, []

    def capture_begin(self) -> None:
        self.gpu.called("capture_begin")
        self.stream = self.gpu.current
        assert self.stream is not self.gpu.caller, "the default stream cannot be captured"
        self.gpu.capturing[self.stream.cuda_stream] = self.work = []

    def capture_end(self) -> None:
        self.gpu.called("capture_end")
        if "capture_end" in self.gpu.failing:
            raise RuntimeError(f"CUDA error: {CODES[901][1]}")
        del self.gpu.capturing[self.stream.cuda_stream]

    def replay(self) -> None:
        self.gpu.called("replay")
        for work in self.work:
            self.gpu.current.put(work)

    def reset(self) -> None:
        self.gpu.called("reset")
        self.work = []


class FakeEvent:
    """The time when its turn has come, in ms."""

    def __init__(self, gpu: FakeGpu, enable_timing: bool) -> None:
        assert enable_timing
        self.gpu = gpu

    def record(self) -> None:
        self.stream = self.gpu.current
        self.stream.put(lambda: setattr(self, "at", self.gpu.time_ms))

    def synchronize(self) -> None:
        self.stream.synchronize()

    def elapsed_time(self, end: FakeEvent) -> float:
        return float(end.at - self.at)


class FakePrecision:
    """How float32 matrices are multiplied: one setting with two names, as torch has it.

    ``forced``: in TF32 whatever torch says, as NVIDIA_TF32_OVERRIDE=1 in the environment has it.
    """

    def __init__(self, gpu: FakeGpu) -> None:
        self.gpu, self.name, self.forced = gpu, "highest", False

    @property
    def allow_tf32(self) -> bool:
        return self.name != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        self.name = "high" if allowed else "highest"

    def choose(self, name: str) -> None:
        self.name = name

    def matmul(self, left: FakeTensor, right: FakeTensor, *, out: FakeTensor) -> None:
        """Work on the current stream; TF32 keeps ten bits of a factor's significand."""
        bits = 0xFFFFE000 if self.allow_tf32 or self.forced else 0xFFFFFFFF

        def multiply() -> None:
            if "product" not in self.gpu.calls:
                self.gpu.time_ms += self.gpu.loading_ms
            self.gpu.called("product")
            factors = [(each.array.view(np.uint32) & np.uint32(bits)).view(np.float32) for each in (left, right)]
            out.array[...] = factors[0] @ factors[1]
            self.gpu.time_ms += self.gpu.product_ms

        self.gpu.current.put(multiply)


def fake_torch(gpu: FakeGpu) -> Any:
    """The part of torch that the device uses."""

    @contextmanager
    def on(stream: FakeStream) -> Iterator[None]:
        before, gpu.current = gpu.current, stream
        try:
            yield
        finally:
            gpu.current = before

    def from_numpy(array: np.ndarray) -> FakeTensor:
        assert array.flags.writeable, "torch takes no array that is read-only"
        return FakeTensor(gpu, array)

    def zeros(shape: list[int], dtype: Any, device: str) -> FakeTensor:
        assert device == "cuda"
        gpu.called("zeros")
        if gpu.fault == 2:
            raise RuntimeError("CUDA out of memory. Tried to allocate 36.00 KiB.")
        return gpu.allocated(FakeTensor(gpu, np.zeros(shape, dtype)))

    def empty(size: int, dtype: Any, device: str) -> FakeTensor:
        return zeros([size], dtype, device)

    def synchronize() -> None:
        for stream in gpu.streams:
            stream.synchronize()

    cuda = SimpleNamespace(
        init=lambda: gpu.called("init"),
        is_available=lambda: True,
        Stream=lambda: FakeStream(gpu),
        Event=lambda enable_timing: FakeEvent(gpu, enable_timing),
        CUDAGraph=lambda: FakeGraph(gpu),
        current_stream=lambda: gpu.current,
        stream=on,
        synchronize=synchronize,
        empty_cache=gpu.empty_cache,
    )
    precision = FakePrecision(gpu)
    return SimpleNamespace(
        __version__="2.5.1+cu124",
        version=SimpleNamespace(cuda="12.4"),
        cuda=cuda,
        float32=np.dtype(np.float32),
        int32=np.dtype(np.int32),
        uint8=np.dtype(np.uint8),
        from_numpy=from_numpy,
        zeros=zeros,
        empty=empty,
        matmul=precision.matmul,
        backends=SimpleNamespace(cuda=SimpleNamespace(matmul=precision)),
        get_float32_matmul_precision=lambda: precision.name,
        set_float32_matmul_precision=precision.choose,
    )
