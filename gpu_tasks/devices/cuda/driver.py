"""The CUDA driver API through ctypes: load PTX, find an entry, launch it, and name what went wrong.

Only what a launch needs that torch does not offer. Contexts, memory, streams and graphs are torch's: the driver works
in the context that torch made current. Signatures are those of cuda.h; symbols with ``_v2`` are what the header maps
the plain names to.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

from gpu_tasks.devices.cuda.errors import CODES, SUCCESS, CudaFailure, NoDevice, cuda_error
from gpu_tasks.energy.nvml.values import bus_id
from gpu_tasks.records import TaskError

LIBRARY = "libcuda.so.1"
STATIC_LIMIT_BYTES = 48 * 1024
"""Shared memory of a block that needs no opting in (CUDA C++ Programming Guide, compute capabilities)."""

_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8  # CU_FUNC_ATTRIBUTE_...
_MULTIPROCESSOR_COUNT, _L2_CACHE_SIZE, _CAPABILITY_MAJOR, _CAPABILITY_MINOR = 16, 38, 75, 76  # CU_DEVICE_ATTRIBUTE_...
_ERROR_LOG_BUFFER, _ERROR_LOG_BUFFER_SIZE_BYTES = 5, 6  # CU_JIT_...
_NOT_CAPTURING = 0  # CU_STREAM_CAPTURE_STATUS_NONE
_LOG_BYTES = 8192
_SYMBOLS: dict[str, list[Any]] = {
    "cuInit": [c_uint],
    "cuGetErrorName": [c_int, POINTER(c_char_p)],
    "cuGetErrorString": [c_int, POINTER(c_char_p)],
    "cuDriverGetVersion": [POINTER(c_int)],
    "cuDeviceGetCount": [POINTER(c_int)],
    "cuDeviceGet": [POINTER(c_int), c_int],
    "cuDeviceGetName": [c_char_p, c_int, c_int],
    "cuDeviceGetUuid": [c_void_p, c_int],
    "cuDeviceGetPCIBusId": [c_char_p, c_int, c_int],
    "cuDeviceTotalMem_v2": [POINTER(c_size_t), c_int],
    "cuDeviceGetAttribute": [POINTER(c_int), c_int, c_int],
    "cuModuleLoadData": [POINTER(c_void_p), c_char_p],
    "cuModuleLoadDataEx": [POINTER(c_void_p), c_char_p, c_uint, POINTER(c_int), POINTER(c_void_p)],
    "cuModuleGetFunction": [POINTER(c_void_p), c_void_p, c_char_p],
    "cuModuleUnload": [c_void_p],
    "cuFuncSetAttribute": [c_void_p, c_int, c_int],
    "cuLaunchKernel": [c_void_p, *[c_uint] * 7, c_void_p, POINTER(c_void_p), POINTER(c_void_p)],
    "cuStreamIsCapturing": [c_void_p, POINTER(c_int)],
    "cuStreamEndCapture": [c_void_p, POINTER(c_void_p)],
    "cuGraphDestroy": [c_void_p],
}
_initialised_in: int | None = None
"""Pid of the process that initialised CUDA. A forked child inherits it, and may not use what it inherited."""


class Driver:
    """The driver of this machine, initialised. ``library`` is libcuda, or what stands in for it in a test.

    Raises ``NoDevice`` where there is no driver or no visible GPU, ``CudaFailure`` on anything else that ``cuInit``
    says and in a forked child of a process that has used CUDA.
    """

    def __init__(self, library: Any = None) -> None:
        global _initialised_in  # noqa: PLW0603 - a fact about the process, as CUDA's own state is
        self._library = library or _open_library()
        for name, arguments in _SYMBOLS.items():
            try:
                getattr(self._library, name).argtypes = arguments
            except AttributeError:
                message = f"{LIBRARY}: expected the function {name}, found none: the driver is too old"
                raise CudaFailure("driver_too_old", message) from None
        self.check_process()
        self._check(self._library.cuInit(0), "cuInit")
        _initialised_in = os.getpid()

    @staticmethod
    def check_process() -> None:
        """Raise ``CudaFailure`` in a forked child of the process that initialised CUDA."""
        if _initialised_in not in (None, os.getpid()):
            message = f"CUDA was initialised in process {_initialised_in}: expected a fresh process, found a fork of it"
            raise CudaFailure("cuda_after_fork", message)

    def device_count(self) -> int:
        """GPUs that this process may use."""
        count = c_int()
        self._check(self._library.cuDeviceGetCount(byref(count)), "cuDeviceGetCount")
        return count.value

    def version(self) -> str:
        """Newest CUDA version that the driver supports, as ``12.4``."""
        version = c_int()
        self._check(self._library.cuDriverGetVersion(byref(version)), "cuDriverGetVersion")
        return f"{version.value // 1000}.{version.value % 1000 // 10}"

    def device_name(self, ordinal: int = 0) -> str:
        """Name of the GPU, such as ``NVIDIA A100-SXM4-40GB``."""
        name = ctypes.create_string_buffer(256)
        self._check(self._library.cuDeviceGetName(name, len(name), self._device(ordinal)), "cuDeviceGetName")
        return name.value.decode()

    def device_uuid(self, ordinal: int = 0) -> str:
        """uuid of the board as nvidia-smi writes it, ``GPU-`` and 32 hexadecimal digits in five groups."""
        uuid = ctypes.create_string_buffer(16)
        self._check(self._library.cuDeviceGetUuid(uuid, self._device(ordinal)), "cuDeviceGetUuid")
        digits = uuid.raw.hex()
        return "GPU-" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def device_pci_bus_id(self, ordinal: int = 0) -> str:
        """PCI bus id of the board as NVML spells it, ``00000000:50:00.0``."""
        found = ctypes.create_string_buffer(32)
        self._check(self._library.cuDeviceGetPCIBusId(found, len(found), self._device(ordinal)), "cuDeviceGetPCIBusId")
        return bus_id(found.value)

    def device_memory_bytes(self, ordinal: int = 0) -> int:
        """Memory of the GPU that programs can use, free or not."""
        size = c_size_t()
        self._check(self._library.cuDeviceTotalMem_v2(byref(size), self._device(ordinal)), "cuDeviceTotalMem")
        return size.value

    def multiprocessors(self, ordinal: int = 0) -> int:
        """Number of streaming multiprocessors."""
        return self._attribute(_MULTIPROCESSOR_COUNT, ordinal)

    def l2_cache_bytes(self, ordinal: int = 0) -> int:
        """Size of the L2 cache."""
        return self._attribute(_L2_CACHE_SIZE, ordinal)

    def compute_capability(self, ordinal: int = 0) -> list[int]:
        """Major and minor compute capability."""
        return [self._attribute(_CAPABILITY_MAJOR, ordinal), self._attribute(_CAPABILITY_MINOR, ordinal)]

    def load_module(self, text: str, name: str) -> int:
        """Compile PTX into the current context; returns the module's handle.

        Raises ``RefusedKernel`` with the compiler's log where the text is at fault; ``name`` says whose text it is.
        """
        module, image = c_void_p(), text.encode() + b"\0"
        status = self._library.cuModuleLoadData(byref(module), image)
        if status != SUCCESS:
            raise self._error(status, f"{name}: cuModuleLoadData", self._compiler_log(image))
        return module.value or 0

    def function(self, module: int, entry: str) -> int:
        """Handle of an entry of a module; raises ``RefusedKernel`` where the module has none of that name."""
        function = c_void_p()
        status = self._library.cuModuleGetFunction(byref(function), module, entry.encode())
        self._check(status, f"{entry}: cuModuleGetFunction")
        return function.value or 0

    def allow_dynamic_shared(self, function: int, size: int, name: str) -> None:
        """Opt in to ``size`` bytes of dynamic shared memory a block; raises ``RefusedKernel`` over the GPU's limit."""
        status = self._library.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED_SIZE_BYTES, size)
        self._check(status, f"{name}: cuFuncSetAttribute: {size} bytes of dynamic shared memory")

    def launch(
        self,
        function: int,
        values: Sequence[int],
        *,
        grid: Sequence[int],
        block: Sequence[int],
        shared_bytes: int,
        stream: int,
        name: str,
    ) -> None:
        """Launch on ``stream`` with 64 bits a parameter, an address or a number; returns before the kernel has run.

        The number of ``values`` has to be that of the entry's parameters: the driver reads as many as it expects.
        """
        held = [c_uint64(value) for value in values]
        parameters = (c_void_p * len(held))(*(ctypes.addressof(value) for value in held))
        status = self._library.cuLaunchKernel(function, *grid, *block, shared_bytes, stream, parameters, None)
        self._check(status, f"{name}: cuLaunchKernel")

    def end_capture(self, stream: int) -> None:
        """End a capture that is still open on ``stream`` and throw away what it holds; never raises."""
        capturing, graph = c_int(), c_void_p()
        self._library.cuStreamIsCapturing(stream, byref(capturing))
        if capturing.value != _NOT_CAPTURING:
            self._library.cuStreamEndCapture(stream, byref(graph))
        if graph.value:
            self._library.cuGraphDestroy(graph)

    def unload(self, module: int) -> None:
        """Unload a module."""
        self._check(self._library.cuModuleUnload(module), "cuModuleUnload")

    def code_in(self, text: str) -> int | None:
        """The code whose text, as the driver words it, occurs in a message of torch's; None where none does.

        torch hands on the runtime's messages, whose texts are the driver's, and not always their number.
        """
        found = {code: words for code in CODES if (words := self.describe(code)) and words in text}
        return max(found, key=lambda code: len(found[code]), default=None)

    def describe(self, code: int) -> str:
        """The driver's text for a code; empty where it has none."""
        return self._text(self._library.cuGetErrorString, code)

    def error(self, code: int, what: str) -> TaskError:
        """The typed error for a code, worded by the driver."""
        return self._error(code, what, self.describe(code))

    def _error(self, code: int, what: str, detail: str) -> TaskError:
        known, _ = CODES.get(code, (f"CUDA_ERROR_{code}", None))
        name = self._text(self._library.cuGetErrorName, code) or known
        return cuda_error(code, name, what, detail or self.describe(code))

    def _check(self, status: int, what: str) -> None:
        if status != SUCCESS:
            raise self.error(status, what)

    def _device(self, ordinal: int) -> int:
        device = c_int()
        self._check(self._library.cuDeviceGet(byref(device), ordinal), f"cuDeviceGet: {ordinal}")
        return device.value

    def _attribute(self, attribute: int, ordinal: int) -> int:
        value = c_int()
        status = self._library.cuDeviceGetAttribute(byref(value), attribute, self._device(ordinal))
        self._check(status, f"cuDeviceGetAttribute: {attribute}")
        return value.value

    def _compiler_log(self, image: bytes) -> str:
        """What the compiler says of text that it refused, on one line; compiles it once more to have it."""
        module, log = c_void_p(), ctypes.create_string_buffer(_LOG_BYTES)
        options = (c_int * 2)(_ERROR_LOG_BUFFER, _ERROR_LOG_BUFFER_SIZE_BYTES)
        values = (c_void_p * 2)(ctypes.addressof(log), _LOG_BYTES)
        self._library.cuModuleLoadDataEx(byref(module), image, len(options), options, values)
        if module.value:
            self._library.cuModuleUnload(module)
        return " ".join(log.value.decode(errors="replace").split())

    @staticmethod
    def _text(function: Any, code: int) -> str:
        text = c_char_p()
        status = function(code, byref(text))
        return text.value.decode() if status == SUCCESS and text.value else ""


def _open_library() -> Any:
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError:
        message = f"{LIBRARY}: expected the NVIDIA driver's library, found none: no NVIDIA GPU can be used here"
        raise NoDevice("no_cuda_driver", message) from None
