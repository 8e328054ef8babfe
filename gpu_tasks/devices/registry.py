"""Devices by kind. A new one is one line in ``_OPENERS``: kind and workload, and the function that opens it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_tasks.devices.base import Device
from gpu_tasks.devices.cuda.selection import auto_means_cuda
from gpu_tasks.devices.manifest import COMMITTED, Kernels, load_kernels
from gpu_tasks.records import DEVICE_KINDS, BadInput, parse_effects
from gpu_tasks.workloads.base import Workload

if TYPE_CHECKING:
    from gpu_tasks.energy.simulation.gpu import SimulatedGpu


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


@dataclass(frozen=True)
class Simulation:
    """The simulated board: what it is told to show, and the seed of its noise.

    All devices that are opened with one object are kernels on one board; the first of them has the effects on time and
    energy (``gpu_tasks.devices.simulated``). What a task costs on it depends on the ``workload``.
    """

    inject: str | None = None
    seed: int = 0
    tick_period_s: float = 0.1
    workload: str = "qda"

    @cached_property
    def gpu(self) -> SimulatedGpu:
        """The board, made when it is first asked for; raises ``BadInput`` (``bad_inject``)."""
        from gpu_tasks.energy.simulation.gpu import SimulatedGpu
        from gpu_tasks.energy.simulation.profiles import A100_HEALTHY, TASKS

        profile, effects = TASKS.get(self.workload, A100_HEALTHY), parse_effects(self.inject)
        return SimulatedGpu(profile, effects, self.seed, tick_period_s=self.tick_period_s)


@dataclass(frozen=True)
class _Wanted:
    """What a device is opened with; each kind takes what it has a use for."""

    workload: Workload
    kernels: KernelChoice
    simulation: Simulation


def _without_ptx(wanted: _Wanted, expected: str) -> None:
    """Refuse kernels that would be ignored; races are looked for where that can be, and nights ask it of any device."""
    kernels = wanted.kernels
    if kernels.variant is not None or kernels.ptx or kernels.manifest != COMMITTED:
        raise BadInput("no_ptx_here", f"--variant, --ptx, --manifest: expected {expected}")


def _open_reference(wanted: _Wanted) -> Device:
    from gpu_tasks.devices.reference import ReferenceQda

    _without_ptx(wanted, "a device that runs PTX, found reference")
    return ReferenceQda(wanted.workload)


def _open_emulated(wanted: _Wanted) -> Device:
    from gpu_tasks.devices.emulated.device import EmulatedQda

    return EmulatedQda(wanted.workload, wanted.kernels.load(), check_races=wanted.kernels.check_races)


def _open_cuda(wanted: _Wanted) -> Device:
    from gpu_tasks.devices.cuda.device import CudaQda

    return CudaQda(wanted.workload, wanted.kernels.load())


def _open_simulated(wanted: _Wanted) -> Device:
    from gpu_tasks.devices.simulated import SimulatedQda

    kernels, gpu = wanted.kernels, wanted.simulation.gpu
    return SimulatedQda(wanted.workload, kernels.load(), gpu=gpu, check_races=kernels.check_races)


def _ready_for_learner(wanted: _Wanted) -> None:
    """Refuse what the learner has no use for, before torch is imported, and then say so where there is none."""
    from gpu_tasks.workloads.learner.torch_settings import require_torch

    _without_ptx(wanted, "a workload that runs PTX, found learner, which computes with torch")
    require_torch()


def _open_reference_learner(wanted: _Wanted) -> Device:
    _ready_for_learner(wanted)
    from gpu_tasks.devices.torch_learner import ReferenceLearner

    return ReferenceLearner(wanted.workload)


def _open_cuda_learner(wanted: _Wanted) -> Device:
    _ready_for_learner(wanted)
    from gpu_tasks.devices.cuda.learner import CudaLearner

    return CudaLearner(wanted.workload)


def _open_simulated_learner(wanted: _Wanted) -> Device:
    _ready_for_learner(wanted)
    from gpu_tasks.devices.torch_learner import SimulatedLearner

    return SimulatedLearner(wanted.workload, wanted.simulation.gpu)


_OPENERS: dict[tuple[str, str], Callable[[_Wanted], Device]] = {
    ("cuda", "learner"): _open_cuda_learner,
    ("cuda", "qda"): _open_cuda,
    ("emulated", "qda"): _open_emulated,
    ("reference", "learner"): _open_reference_learner,
    ("reference", "qda"): _open_reference,
    ("simulated", "learner"): _open_simulated_learner,
    ("simulated", "qda"): _open_simulated,
}

_WITHOUT_GPU = {"qda": "emulated"}
"""What ``auto`` is on a machine without a GPU, by workload; the reference for all others."""


def resolve_kind(requested: str, workload: str) -> str:
    """The kind that ``requested`` stands for: ``auto`` is the GPU where there is one, else what stands in for it.

    Raises ``BadInput``: ``unknown_device``; and what ``auto_means_cuda`` raises of a GPU that does not work.
    """
    kind = requested
    if requested == "auto":
        kind = "cuda" if auto_means_cuda() else _WITHOUT_GPU.get(workload, "reference")
    if kind not in DEVICE_KINDS:
        expected = ", ".join(DEVICE_KINDS)
        raise BadInput("unknown_device", f"--device: expected auto or one of {expected}, found {requested!r}")
    return kind


def check_inject(kind: str, simulation: Simulation | None) -> None:
    """Refuse effects that there are none of, and any on a device that is real.

    Raises ``BadInput`` (``bad_inject``, ``inject_needs_simulated``).
    """
    if simulation is None or not simulation.inject:
        return
    parse_effects(simulation.inject)
    if kind != "simulated":
        message = f"--inject: expected --device simulated with it, found {kind}"
        raise BadInput("inject_needs_simulated", message)


def open_device(
    requested: str,
    workload: Workload,
    kernels: KernelChoice | None = None,
    simulation: Simulation | None = None,
) -> Device:
    """Open a device of the requested kind with the workload's kernels loaded; the caller closes it.

    Raises ``BadInput``: ``unknown_device``, ``device_not_available`` for a kind that this version cannot open, or
    ``inject_needs_simulated`` for effects on one that is real.
    """
    kind = resolve_kind(requested, workload.name)
    opener = _OPENERS.get((kind, workload.name))
    if opener is None:
        available = ", ".join(sorted(k for k, name in _OPENERS if name == workload.name)) or "none"
        raise BadInput(
            "device_not_available",
            f"--device: {kind} is not available for workload {workload.name} in this version; available: {available}",
        )
    check_inject(kind, simulation)
    return opener(_Wanted(workload, kernels or KernelChoice(), simulation or Simulation(workload=workload.name)))
