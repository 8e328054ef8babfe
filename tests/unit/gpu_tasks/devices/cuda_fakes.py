"""A GPU that is not there: fakes of libcuda and of the part of torch that the device uses, over one shared state.

Work is asynchronous as on a GPU: what is put on a stream runs when the stream is waited for, a capturing stream keeps
what is put on it for its graph, and waiting in a capture is an error. "Kernels" are Python functions on the buffers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from gpu_tasks.devices.emulated.findings import PtxError
from gpu_tasks.devices.emulated.machine import Machine
from gpu_tasks.devices.emulated.memory import Buffer, GlobalMemory
from gpu_tasks.devices.emulated.parser import Kernel, parse
from gpu_tasks.devices.manifest import COMMITTED, read_manifest

LARGEST_DYNAMIC_SHARED_BYTES = 166_912
_ACCESS = {
    (launch.entry, len(launch.parameters)): [parameter.access for parameter in launch.parameters]
    for variant in read_manifest(COMMITTED).variants.values()
    for launch in variant.launches
}
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
        self.buffers: dict[int, FakeTensor] = {}
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

    def launch(self, entry: str, tensors: list[FakeTensor], geometry: list[int], shared: int) -> None:
        if entry not in self.skipped:
            KERNELS[entry](*(tensor.array for tensor in tensors))


class EmulatingGpu(FakeGpu):
    """Runs the PTX itself, through the emulator: as near to a GPU as a machine without one comes."""

    def __init__(self, after: Callable[[str, list[np.ndarray]], None] | None = None) -> None:
        super().__init__()
        self.after = after
        self.kernels: dict[str, Kernel] = {}
        self.machines: dict[str, tuple[Machine, list[Buffer], GlobalMemory]] = {}

    def compile(self, text: str) -> int:
        try:
            kernel = parse(text)
            Machine(
                kernel, GlobalMemory(), (1, 1, 1), tuple(kernel.block_required or (32, 1, 1)), 0
            )  # knows the instructions
        except PtxError as error:
            self.log = str(error).encode()
            return 218
        self.kernels[kernel.name] = kernel
        self.machines.pop(kernel.name, None)
        return 0

    def launch(self, entry: str, tensors: list[FakeTensor], geometry: list[int], shared: int) -> None:
        if entry not in self.machines:
            memory = GlobalMemory()
            buffers = [memory.allocate(f"p{i}", tensor.array.nbytes) for i, tensor in enumerate(tensors)]
            machine = Machine(
                self.kernels[entry], memory, tuple(geometry[:3]), tuple(geometry[3:]), shared, check_races=False
            )
            self.machines[entry] = machine, buffers, memory
        machine, buffers, memory = self.machines[entry]
        addresses = [buffer.address for buffer in buffers]
        for buffer, tensor in zip(buffers, tensors, strict=True):
            memory.copy_in(buffer, tensor.array)
        access = _ACCESS[entry, len(tensors)]
        machine.run(addresses, {address for address, how in zip(addresses, access, strict=True) if how == "write"})
        for buffer, tensor in zip(buffers, tensors, strict=True):
            tensor.array[...] = memory.copy_out(buffer, tensor.array.dtype)[0].reshape(tensor.array.shape)
        if self.after is not None:
            self.after(entry, [tensor.array for tensor in tensors])


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


def nearest_mean(x: np.ndarray, labels: np.ndarray, q: np.ndarray) -> np.ndarray:
    """What the fake kernels predict: the class with the nearest mean."""
    model, status, predictions = np.zeros((10, 64), np.float32), np.zeros(10, np.int32), np.zeros(len(q), np.int32)
    _train(x, labels, model, status)
    _score(model, q, predictions)
    return predictions


KERNELS: dict[str, Callable[..., None]] = {"train": _train, "score": _score}


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
    """Time as the number of launches before it, in ms."""

    def __init__(self, gpu: FakeGpu, enable_timing: bool) -> None:
        assert enable_timing
        self.gpu = gpu

    def record(self) -> None:
        self.stream, self.at = self.gpu.current, self.gpu.calls.count("replay")

    def synchronize(self) -> None:
        self.stream.synchronize()

    def elapsed_time(self, end: FakeEvent) -> float:
        return float(end.at - self.at)


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
        return FakeTensor(gpu, np.zeros(shape, dtype))

    cuda = SimpleNamespace(
        init=lambda: gpu.called("init"),
        is_available=lambda: True,
        Stream=lambda: FakeStream(gpu),
        Event=lambda enable_timing: FakeEvent(gpu, enable_timing),
        CUDAGraph=lambda: FakeGraph(gpu),
        current_stream=lambda: gpu.current,
        stream=on,
    )
    return SimpleNamespace(
        __version__="2.5.1+cu124",
        version=SimpleNamespace(cuda="12.4"),
        cuda=cuda,
        float32=np.dtype(np.float32),
        int32=np.dtype(np.int32),
        from_numpy=from_numpy,
        zeros=zeros,
    )


class _Function:
    """A function of a C library: callable, and its ``argtypes`` can be set."""

    def __init__(self, gpu: FakeGpu, name: str, body: Callable[..., int | None]) -> None:
        self.gpu, self.name, self.body = gpu, name, body
        self.argtypes: list[Any] = []

    def __call__(self, *arguments: Any) -> int:
        assert len(arguments) == len(self.argtypes), self.name
        self.gpu.called(self.name)
        code = self.gpu.failing.get(self.name, 0)
        if code == 0 or self.name == "cuModuleLoadDataEx":  # a compiler writes its log when it fails
            return self.body(*arguments) or code
        return code


class FakeLibrary:
    """libcuda: only what ``driver`` calls, by the same names."""

    def __init__(self, gpu: FakeGpu) -> None:
        self._gpu = gpu
        for name in dir(type(self)):
            if name.startswith("_cu"):
                setattr(self, name[1:], _Function(gpu, name[1:], getattr(self, name)))

    def _cuInit(self, flags: int) -> None: ...

    def _cuGetErrorName(self, code: int, text: Any) -> None:
        text._obj.value = CODES[code][0].encode() if code in CODES else None

    def _cuGetErrorString(self, code: int, text: Any) -> None:
        text._obj.value = CODES[code][1].encode() if code in CODES else None

    def _cuDriverGetVersion(self, version: Any) -> None:
        version._obj.value = 12040

    def _cuDeviceGetCount(self, count: Any) -> None:
        count._obj.value = self._gpu.count

    def _cuDeviceGet(self, device: Any, ordinal: int) -> None:
        device._obj.value = ordinal

    def _cuDeviceGetName(self, name: Any, size: int, device: int) -> None:
        name.value = self._gpu.name.encode()

    def _cuDeviceGetUuid(self, uuid: Any, device: int) -> None:
        uuid.raw = bytes(range(16))

    def _cuDeviceTotalMem_v2(self, size: Any, device: int) -> None:
        size._obj.value = 42405855232

    def _cuDeviceGetAttribute(self, value: Any, attribute: int, device: int) -> None:
        value._obj.value = {16: 108, 75: 8, 76: 0}[attribute]

    def _cuModuleLoadData(self, module: Any, image: bytes) -> int:
        assert image.endswith(b"\0")
        code = self._gpu.compile(image.rstrip(b"\0").decode())
        if code == 0:
            module._obj.value = 1000 + self._gpu.calls.count("cuModuleLoadData")
            self._gpu.modules.add(module._obj.value)
        return code

    def _cuModuleLoadDataEx(self, module: Any, image: bytes, count: int, options: Any, values: Any) -> None:
        assert (count, list(options)) == (2, [5, 6])
        ctypes.memmove(values[0], self._gpu.log, min(len(self._gpu.log), values[1] - 1))

    def _cuModuleGetFunction(self, function: Any, module: int, entry: bytes) -> None:
        assert module in self._gpu.modules
        function._obj.value = 2000 + len(self._gpu.functions)
        self._gpu.functions[function._obj.value] = entry.decode()

    def _cuModuleUnload(self, module: int) -> None:
        self._gpu.modules.remove(module)

    def _cuFuncSetAttribute(self, function: int, attribute: int, value: int) -> int:
        assert attribute == 8
        if value > LARGEST_DYNAMIC_SHARED_BYTES:
            return 1
        self._gpu.dynamic_shared[self._gpu.functions[function]] = value
        return 0

    def _cuLaunchKernel(self, function: int, *arguments: Any) -> None:
        *geometry, shared, stream, parameters, extra = arguments
        assert extra is None
        addresses = [ctypes.c_void_p.from_address(pointer).value for pointer in parameters]
        tensors = [self._gpu.buffers[address] for address in addresses]
        entry = self._gpu.functions[function]
        self._gpu.launches.append((entry, tuple(geometry), shared))
        self._gpu.streams[stream].put(lambda: self._gpu.launch(entry, tensors, geometry, shared))

    def _cuStreamIsCapturing(self, stream: int, status: Any) -> None:
        status._obj.value = int(stream in self._gpu.capturing)

    def _cuStreamEndCapture(self, stream: int, graph: Any) -> None:
        del self._gpu.capturing[stream]

    def _cuGraphDestroy(self, graph: Any) -> None: ...
