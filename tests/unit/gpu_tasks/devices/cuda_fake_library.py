"""libcuda over the state of a fake GPU: the functions that ``driver`` calls, called as ctypes calls them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from tests.unit.gpu_tasks.devices.cuda_fakes import CODES, FakeGpu

LARGEST_DYNAMIC_SHARED_BYTES = 166_912


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

    def _cuDeviceGetPCIBusId(self, text: Any, size: int, device: int) -> None:
        assert size > len("0000:07:00.0")
        text.value = b"0000:07:00.0"

    def _cuDeviceTotalMem_v2(self, size: Any, device: int) -> None:
        size._obj.value = 42405855232

    def _cuDeviceGetAttribute(self, value: Any, attribute: int, device: int) -> None:
        value._obj.value = {16: 108, 38: 41943040, 75: 8, 76: 0}[attribute]

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
        values = [ctypes.c_uint64.from_address(pointer).value for pointer in parameters]
        arguments = [self._gpu.buffers.get(value, value) for value in values]
        entry = self._gpu.functions[function]
        self._gpu.launches.append((entry, tuple(geometry), shared))
        self._gpu.streams[stream].put(lambda: self._gpu.execute(entry, arguments, geometry, shared))

    def _cuStreamIsCapturing(self, stream: int, status: Any) -> None:
        status._obj.value = int(stream in self._gpu.capturing)

    def _cuStreamEndCapture(self, stream: int, graph: Any) -> None:
        del self._gpu.capturing[stream]

    def _cuGraphDestroy(self, graph: Any) -> None: ...
