"""Devices by kind. A new one is one line in ``_OPENERS``: kind and workload, and the function that opens it."""

from __future__ import annotations

from collections.abc import Callable

from gpu_tasks.devices.base import Device
from gpu_tasks.devices.cuda.selection import auto_means_cuda
from gpu_tasks.records import BadInput
from gpu_tasks.workloads.base import Workload

KINDS = ("cuda", "emulated", "reference", "simulated")


def _open_reference(workload: Workload) -> Device:
    from gpu_tasks.devices.reference import ReferenceQda

    return ReferenceQda(workload)


def _open_cuda(workload: Workload) -> Device:
    from gpu_tasks.devices.cuda.device import CudaQda

    return CudaQda(workload)


_OPENERS: dict[tuple[str, str], Callable[[Workload], Device]] = {
    ("cuda", "qda"): _open_cuda,
    ("reference", "qda"): _open_reference,
}


def resolve_kind(requested: str) -> str:
    """The kind that ``requested`` stands for: ``auto`` is the GPU where there is one, else the reference.

    Raises ``BadInput``: ``unknown_device``; and what ``auto_means_cuda`` raises of a GPU that does not work.
    """
    kind = requested
    if requested == "auto":
        kind = "cuda" if auto_means_cuda() else "reference"
    if kind not in KINDS:
        raise BadInput("unknown_device", f"--device: expected auto or one of {', '.join(KINDS)}, found {requested!r}")
    return kind


def open_device(requested: str, workload: Workload) -> Device:
    """Open a device of the requested kind with the workload's kernels loaded; the caller closes it.

    Raises ``BadInput``: ``unknown_device``, or ``device_not_available`` for a kind that this version cannot open.
    """
    kind = resolve_kind(requested)
    opener = _OPENERS.get((kind, workload.name))
    if opener is None:
        available = ", ".join(sorted(k for k, name in _OPENERS if name == workload.name))
        raise BadInput(
            "device_not_available",
            f"--device: {kind} is not available for workload {workload.name} in this version; available: {available}",
        )
    return opener(workload)
