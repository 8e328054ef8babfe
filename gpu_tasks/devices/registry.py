"""Devices by kind; which there are of a workload, and what opens them, is the workload's to declare."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_tasks.devices.base import Device
from gpu_tasks.devices.cuda.selection import auto_means_cuda
from gpu_tasks.devices.manifest import COMMITTED, Kernels, load_kernels
from gpu_tasks.records import DEFAULT_WORKLOAD, DEVICE_KINDS, BadInput, parse_effects
from gpu_tasks.workloads.base import Workload
from gpu_tasks.workloads.declaration import Declaration
from gpu_tasks.workloads.registry import declared

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
    energy (``gpu_tasks.devices.simulated``). What a task costs on it depends on the ``workload``. ``told_seed`` is the
    one that somebody gave, which ``seed`` was made from.
    """

    inject: str | None = None
    seed: int = 0
    tick_period_s: float = 0.1
    workload: str = DEFAULT_WORKLOAD
    told_seed: int | None = None

    @cached_property
    def gpu(self) -> SimulatedGpu:
        """The board, made when it is first asked for; raises ``BadInput``: ``bad_inject``, and of the workload."""
        from gpu_tasks.energy.simulation.gpu import SimulatedGpu

        board, effects = declared(self.workload).board, parse_effects(self.inject)
        return SimulatedGpu(board, effects, self.seed, tick_period_s=self.tick_period_s)


@dataclass(frozen=True)
class Wanted:
    """What a device is opened with; each kind takes what it has a use for."""

    workload: Workload
    kernels: KernelChoice
    simulation: Simulation


def _refuse_kernels(declared: Declaration, kind: str, kernels: KernelChoice) -> None:
    """Refuse kernels that would be ignored; races are looked for where that can be, and nights ask it of any device."""
    if kind in declared.ptx_kinds or (kernels.variant is None and not kernels.ptx and kernels.manifest == COMMITTED):
        return
    what = (
        f"device that runs PTX, found {kind}"
        if declared.ptx_kinds
        else f"workload that runs PTX, found {declared.name}"
    )
    raise BadInput("no_ptx_here", f"--variant, --ptx, --manifest: expected a {what}")


def resolve_kind(requested: str, workload: str) -> str:
    """The kind that ``requested`` stands for: ``auto`` is the GPU where there is one, else what stands in for it.

    Raises ``BadInput``: ``unknown_device``, and of the workload as ``declared`` does; and what ``auto_means_cuda``
    raises of a GPU that does not work.
    """
    kind = requested
    if requested == "auto":
        kind = "cuda" if auto_means_cuda() else declared(workload).without_gpu
    if kind not in DEVICE_KINDS:
        expected = ", ".join(DEVICE_KINDS)
        raise BadInput("unknown_device", f"--device: expected auto or one of {expected}, found {requested!r}")
    return kind


def check_simulation(kind: str, simulation: Simulation | None) -> None:
    """Refuse effects that there are none of, and any, or a seed, on a device that is real.

    Raises ``BadInput`` (``bad_inject``, ``inject_needs_simulated``, ``seed_needs_simulated``).
    """
    if simulation is None:
        return
    if simulation.inject:
        parse_effects(simulation.inject)
    if kind != "simulated" and simulation.inject:
        raise BadInput("inject_needs_simulated", f"--inject: expected --device simulated with it, found {kind}")
    if kind != "simulated" and simulation.told_seed is not None:
        raise BadInput("seed_needs_simulated", f"--seed: expected --device simulated with it, found {kind}")


def open_device(
    requested: str,
    workload: Workload,
    kernels: KernelChoice | None = None,
    simulation: Simulation | None = None,
) -> Device:
    """Open a device of the requested kind with the workload's kernels loaded; the caller closes it.

    Raises ``BadInput``: ``unknown_device``, ``device_not_available`` for a kind that this version cannot open, or
    ``inject_needs_simulated`` or ``seed_needs_simulated`` for effects or a seed on one that is real.
    """
    kind = resolve_kind(requested, workload.name)
    found = declared(workload.name)
    opener = found.devices.get(kind)
    if opener is None:
        available = ", ".join(sorted(found.devices)) or "none"
        raise BadInput(
            "device_not_available",
            f"--device: {kind} is not available for workload {workload.name} in this version; available: {available}",
        )
    check_simulation(kind, simulation)
    wanted = Wanted(workload, kernels or KernelChoice(), simulation or Simulation(workload=workload.name))
    _refuse_kernels(found, kind, wanted.kernels)
    return opener(wanted)
