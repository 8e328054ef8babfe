"""Codes of the CUDA driver as errors of this project.

Names and numbers are those of ``CUresult`` in cuda.h; cuda.h also says what each means. A code that names the text or
the launch is bad input; every other one, known or not, is a failure of the machine, so that a lost or busy device can
never look like a regression.
"""

from __future__ import annotations

from gpu_tasks.records import BadInput, InfrastructureFailure, TaskError


class CudaFailure(InfrastructureFailure):
    """The driver, the device or the host failed; says nothing about the kernel."""


class NoDevice(CudaFailure):
    """No GPU that could be used is visible to this process."""


class DeviceBusy(CudaFailure):
    """The GPU is there and does not take this process's work: another process, or a limit in time."""


class DeviceLost(CudaFailure):
    """The GPU or its context is gone or no longer to be trusted."""


class OutOfDeviceMemory(CudaFailure):
    """The GPU has too little free memory, usually because other processes use it."""


class CaptureFailed(CudaFailure):
    """The launches could not be recorded as a graph; nothing is run eagerly instead."""


class RefusedKernel(BadInput):
    """PTX text, entry or launch that the driver does not accept."""


class KernelFault(BadInput):
    """A kernel did what no correct kernel does (an address out of bounds, say); the context is lost with it."""


SUCCESS = 0

CODES: dict[int, tuple[str, type[TaskError]]] = {
    1: ("CUDA_ERROR_INVALID_VALUE", RefusedKernel),
    2: ("CUDA_ERROR_OUT_OF_MEMORY", OutOfDeviceMemory),
    3: ("CUDA_ERROR_NOT_INITIALIZED", CudaFailure),
    4: ("CUDA_ERROR_DEINITIALIZED", DeviceLost),
    34: ("CUDA_ERROR_STUB_LIBRARY", NoDevice),
    46: ("CUDA_ERROR_DEVICE_UNAVAILABLE", DeviceBusy),
    100: ("CUDA_ERROR_NO_DEVICE", NoDevice),
    101: ("CUDA_ERROR_INVALID_DEVICE", NoDevice),
    200: ("CUDA_ERROR_INVALID_IMAGE", RefusedKernel),
    201: ("CUDA_ERROR_INVALID_CONTEXT", CudaFailure),
    209: ("CUDA_ERROR_NO_BINARY_FOR_GPU", RefusedKernel),
    214: ("CUDA_ERROR_ECC_UNCORRECTABLE", DeviceLost),
    218: ("CUDA_ERROR_INVALID_PTX", RefusedKernel),
    220: ("CUDA_ERROR_NVLINK_UNCORRECTABLE", DeviceLost),
    221: ("CUDA_ERROR_JIT_COMPILER_NOT_FOUND", CudaFailure),
    222: ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", RefusedKernel),
    300: ("CUDA_ERROR_INVALID_SOURCE", RefusedKernel),
    304: ("CUDA_ERROR_OPERATING_SYSTEM", CudaFailure),
    400: ("CUDA_ERROR_INVALID_HANDLE", CudaFailure),
    500: ("CUDA_ERROR_NOT_FOUND", RefusedKernel),
    700: ("CUDA_ERROR_ILLEGAL_ADDRESS", KernelFault),
    701: ("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", RefusedKernel),
    702: ("CUDA_ERROR_LAUNCH_TIMEOUT", DeviceBusy),
    709: ("CUDA_ERROR_CONTEXT_IS_DESTROYED", DeviceLost),
    710: ("CUDA_ERROR_ASSERT", KernelFault),
    714: ("CUDA_ERROR_HARDWARE_STACK_ERROR", KernelFault),
    715: ("CUDA_ERROR_ILLEGAL_INSTRUCTION", KernelFault),
    716: ("CUDA_ERROR_MISALIGNED_ADDRESS", KernelFault),
    717: ("CUDA_ERROR_INVALID_ADDRESS_SPACE", KernelFault),
    718: ("CUDA_ERROR_INVALID_PC", KernelFault),
    719: ("CUDA_ERROR_LAUNCH_FAILED", KernelFault),
    802: ("CUDA_ERROR_SYSTEM_NOT_READY", CudaFailure),
    803: ("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", CudaFailure),
    900: ("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", CaptureFailed),
    901: ("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", CaptureFailed),
    906: ("CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", CaptureFailed),
    999: ("CUDA_ERROR_UNKNOWN", DeviceLost),
}
"""Code of the driver to its name and the error it becomes; the codes that mean something to a user."""


def cuda_error(code: int, name: str, what: str, detail: str) -> TaskError:
    """The error for ``code`` in the step ``what``; its own code is ``name`` in lower case.

    ``name`` is what the driver calls the code, so that a code newer than the table has its name too; ``detail`` is
    the driver's text, or the compiler's log.
    """
    _, error = CODES.get(code, (name, CudaFailure))
    return error(name.lower(), f"{what}: expected success, found {name} ({code}): {detail}")
