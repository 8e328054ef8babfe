"""NVML's return codes as errors of this project, one class a code.

Names and numbers are those of ``nvmlReturn_t`` in nvml.h, which never change. What a code means for the caller is its
base class: the GPU or the driver has not got it (``NvmlUnavailable``), ask again (``NvmlTransient``), or the machine
has failed (``NvmlFailure``, also for codes newer than this table).
"""

from __future__ import annotations

from gpu_tasks.records import InfrastructureFailure, InvalidMeasurement, TaskError


class NvmlError(TaskError):
    """An NVML call that did not succeed; ``what`` names the call.

    ``value`` is NVML's number, ``words`` its meaning. ``transient``: the same call may succeed a little later.
    """

    value = 999
    name = "NVML_ERROR_UNKNOWN"
    words = "unknown error"
    transient = False

    def __init__(self, what: str) -> None:
        code = self.name.lower().replace("nvml_error_", "nvml_")
        super().__init__(code, f"{what}: expected success, found {self.name} ({self.value}): {self.words}")


class NvmlUnavailable(NvmlError, InvalidMeasurement):
    """This GPU, driver or process cannot have this value; others may be had."""


class NvmlTransient(NvmlError, InvalidMeasurement):
    """Not now: what was measured meanwhile is not valid, and a retry may be."""

    transient = True


class NvmlFailure(NvmlError, InfrastructureFailure):
    """The machine, the driver or the GPU failed."""


class NvmlUninitialized(NvmlFailure):
    value, name, words = 1, "NVML_ERROR_UNINITIALIZED", "NVML was not initialised, or shut down before"


class NvmlInvalidArgument(NvmlFailure):
    value, name, words = 2, "NVML_ERROR_INVALID_ARGUMENT", "an argument is not valid"


class NvmlNotSupported(NvmlUnavailable):
    value, name, words = 3, "NVML_ERROR_NOT_SUPPORTED", "not supported by this GPU"


class NvmlNoPermission(NvmlUnavailable):
    value, name, words = 4, "NVML_ERROR_NO_PERMISSION", "this user may not do that"


class NvmlAlreadyInitialized(NvmlFailure):
    value, name, words = 5, "NVML_ERROR_ALREADY_INITIALIZED", "initialised before"


class NvmlNotFound(NvmlFailure):
    value, name, words = 6, "NVML_ERROR_NOT_FOUND", "nothing of that name or number"


class NvmlInsufficientSize(NvmlTransient):
    """A list grew between asking for its length and for itself."""

    value, name, words = 7, "NVML_ERROR_INSUFFICIENT_SIZE", "the buffer is too small"


class NvmlInsufficientPower(NvmlFailure):
    value, name, words = 8, "NVML_ERROR_INSUFFICIENT_POWER", "the power cables of the GPU are not attached properly"


class NvmlDriverNotLoaded(NvmlFailure):
    value, name, words = 9, "NVML_ERROR_DRIVER_NOT_LOADED", "the NVIDIA driver is not loaded"


class NvmlTimeout(NvmlTransient):
    value, name, words = 10, "NVML_ERROR_TIMEOUT", "the driver gave up waiting"


class NvmlIrqIssue(NvmlFailure):
    value, name, words = 11, "NVML_ERROR_IRQ_ISSUE", "the kernel has seen an interrupt problem of a GPU"


class NvmlLibraryNotFound(NvmlFailure):
    value, name, words = 12, "NVML_ERROR_LIBRARY_NOT_FOUND", "libnvidia-ml.so.1 cannot be loaded"


class NvmlFunctionNotFound(NvmlUnavailable):
    value, name, words = 13, "NVML_ERROR_FUNCTION_NOT_FOUND", "the driver, or nvidia-ml-py, is too old for this"


class NvmlCorruptedInforom(NvmlFailure):
    value, name, words = 14, "NVML_ERROR_CORRUPTED_INFOROM", "the infoROM of the GPU is corrupted"


class NvmlGpuIsLost(NvmlFailure):
    value, name, words = 15, "NVML_ERROR_GPU_IS_LOST", "the GPU has fallen off the bus or is inaccessible"


class NvmlResetRequired(NvmlFailure):
    value, name, words = 16, "NVML_ERROR_RESET_REQUIRED", "the GPU has to be reset"


class NvmlOperatingSystem(NvmlFailure):
    value, name, words = 17, "NVML_ERROR_OPERATING_SYSTEM", "the operating system blocks the GPU's control device"


class NvmlLibRmVersionMismatch(NvmlFailure):
    value, name, words = 18, "NVML_ERROR_LIB_RM_VERSION_MISMATCH", "library and kernel module are of different drivers"


class NvmlInUse(NvmlFailure):
    value, name, words = 19, "NVML_ERROR_IN_USE", "the GPU is in use"


class NvmlMemory(NvmlFailure):
    value, name, words = 20, "NVML_ERROR_MEMORY", "out of memory"


class NvmlNoData(NvmlUnavailable):
    value, name, words = 21, "NVML_ERROR_NO_DATA", "no data"


class NvmlVgpuEccNotSupported(NvmlUnavailable):
    value, name, words = 22, "NVML_ERROR_VGPU_ECC_NOT_SUPPORTED", "not possible on a virtual GPU with ECC"


class NvmlInsufficientResources(NvmlFailure):
    value, name, words = 23, "NVML_ERROR_INSUFFICIENT_RESOURCES", "out of resources other than memory"


class NvmlFreqNotSupported(NvmlUnavailable):
    value, name, words = 24, "NVML_ERROR_FREQ_NOT_SUPPORTED", "this clock frequency is not supported"


class NvmlArgumentVersionMismatch(NvmlUnavailable):
    value, name, words = 25, "NVML_ERROR_ARGUMENT_VERSION_MISMATCH", "the driver knows no such version of the structure"


class NvmlDeprecated(NvmlUnavailable):
    value, name, words = 26, "NVML_ERROR_DEPRECATED", "the driver offers this no more"


class NvmlNotReady(NvmlTransient):
    value, name, words = 27, "NVML_ERROR_NOT_READY", "the system is not ready"


class NvmlGpuNotFound(NvmlFailure):
    value, name, words = 28, "NVML_ERROR_GPU_NOT_FOUND", "no GPUs were found"


class NvmlInvalidState(NvmlTransient):
    value, name, words = 29, "NVML_ERROR_INVALID_STATE", "the GPU is not in a state for this"


class NvmlResetTypeNotSupported(NvmlUnavailable):
    value, name, words = 30, "NVML_ERROR_RESET_TYPE_NOT_SUPPORTED", "this kind of reset is not supported"


class NvmlUnknown(NvmlFailure):
    value, name, words = 999, "NVML_ERROR_UNKNOWN", "an error inside the driver"


class NvmlNewerCode(NvmlFailure):
    """A code that is not in this table."""

    words = "a code that this version does not know"

    def __init__(self, value: int, what: str) -> None:
        self.value, self.name = value, f"NVML_ERROR_{value}"
        super().__init__(what)


class NvmlHung(NvmlTimeout):
    """A call that has not returned within this project's own time limit, or would wait behind such a call."""

    def __init__(self, what: str, timeout_s: float) -> None:
        TaskError.__init__(self, "nvml_hung", f"{what}: expected an answer within {timeout_s:g} s, found none")


class NvmlBlankValue(NvmlUnavailable):
    """A call that succeeded with something that stands for no value: text such as "[N/A]", or all bits set."""

    def __init__(self, what: str, found: object) -> None:
        TaskError.__init__(self, "nvml_blank_value", f"{what}: expected a value, found {str(found)[:80]!r}")


SUCCESS = 0

CODES: dict[int, type[NvmlError]] = {
    error.value: error
    for error in (
        NvmlUninitialized,
        NvmlInvalidArgument,
        NvmlNotSupported,
        NvmlNoPermission,
        NvmlAlreadyInitialized,
        NvmlNotFound,
        NvmlInsufficientSize,
        NvmlInsufficientPower,
        NvmlDriverNotLoaded,
        NvmlTimeout,
        NvmlIrqIssue,
        NvmlLibraryNotFound,
        NvmlFunctionNotFound,
        NvmlCorruptedInforom,
        NvmlGpuIsLost,
        NvmlResetRequired,
        NvmlOperatingSystem,
        NvmlLibRmVersionMismatch,
        NvmlInUse,
        NvmlMemory,
        NvmlNoData,
        NvmlVgpuEccNotSupported,
        NvmlInsufficientResources,
        NvmlFreqNotSupported,
        NvmlArgumentVersionMismatch,
        NvmlDeprecated,
        NvmlNotReady,
        NvmlGpuNotFound,
        NvmlInvalidState,
        NvmlResetTypeNotSupported,
        NvmlUnknown,
    )
}


def nvml_error(value: int, what: str) -> NvmlError:
    """The error for NVML's code ``value`` from the call ``what``."""
    error = CODES.get(value)
    return error(what) if error else NvmlNewerCode(value, what)
