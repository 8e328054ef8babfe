"""Versions that only a machine with a GPU has: the driver's release and torch's CUDA."""

from __future__ import annotations

from importlib import import_module


def driver_release() -> str | None:
    """Release of the NVIDIA driver as nvidia-smi shows it, such as ``580.105.08``; None where NVML cannot tell."""
    try:
        nvml = import_module("pynvml")
        nvml.nvmlInit()
    except Exception:  # nvidia-ml-py is missing, or NVML's own error classes, which exist only where it was imported
        return None
    try:
        release: str | bytes = nvml.nvmlSystemGetDriverVersion()
    except nvml.NVMLError:
        return None
    finally:
        nvml.nvmlShutdown()
    return release.decode() if isinstance(release, bytes) else release


def torch_version() -> str:
    """torch's version with its build, such as ``2.5.1+cu124``: the package's metadata leave the build out."""
    return str(import_module("torch").__version__)


def torch_cuda() -> str | None:
    """The CUDA version that torch was built for, such as ``12.4``."""
    version: str | None = import_module("torch").version.cuda
    return version
