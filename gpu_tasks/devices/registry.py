"""Devices by kind. A new one is one line in ``_OPENERS``: kind and workload, and the function that opens it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpu_tasks.devices.base import Device
from gpu_tasks.devices.cuda.selection import auto_means_cuda
from gpu_tasks.devices.manifest import COMMITTED, Kernels, load_kernels
from gpu_tasks.records import DEVICE_KINDS, BadInput
from gpu_tasks.workloads.base import Workload


@dataclass(frozen=True)
class KernelChoice:
    """Which kernels to run: a variant of a manifest (null: the manifest's default), some of its PTX replaced."""

    variant: str | None = None
    manifest: Path = COMMITTED
    ptx: tuple[Path, ...] = ()
    check_races: bool = False

    def load(self) -> Kernels:
        """The kernels, read and checked against the manifest's hashes."""
        return load_kernels(self.manifest, self.variant, self.ptx)


def _open_reference(workload: Workload, kernels: KernelChoice) -> Device:
    from gpu_tasks.devices.reference import ReferenceQda

    if kernels.variant is not None or kernels.ptx or kernels.manifest != COMMITTED:
        raise BadInput("no_ptx_here", "--variant, --ptx, --manifest: expected a device that runs PTX, found reference")
    return ReferenceQda(workload)


def _open_emulated(workload: Workload, kernels: KernelChoice) -> Device:
    from gpu_tasks.devices.emulated.device import EmulatedQda

    return EmulatedQda(workload, kernels.load(), check_races=kernels.check_races)


def _open_cuda(workload: Workload, kernels: KernelChoice) -> Device:
    from gpu_tasks.devices.cuda.device import CudaQda

    return CudaQda(workload, kernels.load())


_OPENERS: dict[tuple[str, str], Callable[[Workload, KernelChoice], Device]] = {
    ("cuda", "qda"): _open_cuda,
    ("emulated", "qda"): _open_emulated,
    ("reference", "qda"): _open_reference,
}


def resolve_kind(requested: str) -> str:
    """The kind that ``requested`` stands for: ``auto`` is the GPU where there is one, else the emulator.

    Raises ``BadInput``: ``unknown_device``; and what ``auto_means_cuda`` raises of a GPU that does not work.
    """
    kind = requested
    if requested == "auto":
        kind = "cuda" if auto_means_cuda() else "emulated"
    if kind not in DEVICE_KINDS:
        expected = ", ".join(DEVICE_KINDS)
        raise BadInput("unknown_device", f"--device: expected auto or one of {expected}, found {requested!r}")
    return kind


def open_device(requested: str, workload: Workload, kernels: KernelChoice | None = None) -> Device:
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
    return opener(workload, kernels or KernelChoice())
