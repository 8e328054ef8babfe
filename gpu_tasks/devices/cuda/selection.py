"""Whether and which GPU is used: the first one that CUDA shows this process, and never a part of one.

The driver is asked first: it answers in milliseconds, and torch is imported only where there is a GPU for it.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

from gpu_tasks.devices.cuda.driver import Driver
from gpu_tasks.devices.cuda.errors import CudaFailure, NoDevice
from gpu_tasks.records import BadInput

VISIBLE = "CUDA_VISIBLE_DEVICES"
_HIDDEN = ("", "-1", "NoDevFiles")  # what hides every GPU on purpose


class TorchMissing(CudaFailure):
    """The environment has no torch at all, as ``cpu`` has none on purpose."""


def find_gpu(library: Any = None) -> Driver:
    """The driver, with at least one whole GPU for this process; ``library`` stands in for libcuda in a test.

    Raises ``BadInput`` for a slice of a GPU (MIG): its figures are not the GPU's. Raises ``NoDevice`` where there is
    no driver or no GPU to be seen, and ``CudaFailure`` where the driver does not work.
    """
    visible = os.environ.get(VISIBLE)
    if visible is not None and "MIG-" in visible.upper():
        _refuse_slice(f"{VISIBLE}: expected a whole GPU (a number or GPU-...), found {visible!r}")
    driver = Driver(library)
    if driver.device_count() == 0:
        shown = f"{VISIBLE}={visible!r}" if visible is not None else f"{VISIBLE} not set"
        raise NoDevice("no_visible_gpu", f"CUDA: expected a GPU for this process, found none ({shown})")
    if " MIG " in f"{driver.device_name()} ":
        _refuse_slice(f"device: expected a whole GPU, found {driver.device_name()}; switch MIG off")
    return driver


def load_torch(name: str = "torch") -> Any:
    """torch, able to use the GPU that the driver has shown; raises ``CudaFailure`` with what is wrong with it.

    Annotated as Any: nothing here needs torch to be installed for being checked.
    """
    try:
        torch = import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            message = "torch: expected in an environment that uses a GPU, found none; make it by `provision`"
            raise TorchMissing("torch_missing", f"{message} --environment a100") from None
        raise _broken(error) from error
    except (ImportError, OSError, RuntimeError) as error:  # a library that is missing or of another version
        raise _broken(error) from error
    if torch.version.cuda is None:
        raise CudaFailure("torch_without_cuda", f"torch {torch.__version__}: expected a CUDA build, found a CPU build")
    if not torch.cuda.is_available():
        message = f"torch {torch.__version__}: expected torch.cuda.is_available() beside a working driver, found False"
        raise CudaFailure("torch_sees_no_gpu", message)
    return torch


def auto_means_cuda(library: Any = None, torch_name: str = "torch") -> bool:
    """Whether ``--device auto`` is the GPU.

    No driver, no GPU, or GPUs hidden on purpose: no. A GPU in an environment without torch: no, and one line says so.
    A GPU that was asked for by name and is not there, a broken driver or a broken torch is an error: a night that was
    meant for the GPU never becomes one of the CPU unnoticed.
    """
    try:
        find_gpu(library)
    except NoDevice as error:
        if error.code == "no_cuda_driver" or os.environ.get(VISIBLE, "") in _HIDDEN:
            return False
        raise
    try:
        load_torch(torch_name)
    except TorchMissing as error:
        print(f"a GPU is here, but it is not used: {error.message}", file=sys.stderr, flush=True)
        return False
    return True


def _refuse_slice(message: str) -> None:
    raise BadInput("mig_not_supported", message)


def _broken(error: Exception) -> CudaFailure:
    line = " ".join(f"{type(error).__name__}: {error}".split())
    return CudaFailure("torch_broken", f"torch: expected to be imported, found {line}")
