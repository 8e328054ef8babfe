"""The discriminant's place in the frame: kernels in PTX on a GPU and on the emulator, numpy as the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_tasks.workloads.declaration import Declaration
from gpu_tasks.workloads.qda.original import ORIGINAL
from gpu_tasks.workloads.qda.workload import Qda

if TYPE_CHECKING:
    from gpu_tasks.devices.base import Device
    from gpu_tasks.devices.registry import Wanted


def _reference(wanted: Wanted) -> Device:
    from gpu_tasks.workloads.qda.reference_device import ReferenceQda

    return ReferenceQda(wanted.workload)


def _emulated(wanted: Wanted) -> Device:
    from gpu_tasks.devices.emulated.device import EmulatedQda

    return EmulatedQda(wanted.workload, wanted.kernels.load(), check_races=wanted.kernels.check_races)


def _cuda(wanted: Wanted) -> Device:
    from gpu_tasks.devices.cuda.device import CudaQda

    return CudaQda(wanted.workload, wanted.kernels.load())


def _simulated(wanted: Wanted) -> Device:
    from gpu_tasks.workloads.qda.simulated_device import SimulatedQda

    kernels, gpu = wanted.kernels, wanted.simulation.gpu
    return SimulatedQda(wanted.workload, kernels.load(), gpu=gpu, check_races=kernels.check_races)


DECLARATION = Declaration(
    name=Qda.name,
    make=Qda,
    payload=ORIGINAL.name,
    devices={"cuda": _cuda, "emulated": _emulated, "reference": _reference, "simulated": _simulated},
    without_gpu="emulated",
    ptx_kinds=frozenset({"cuda", "emulated", "simulated"}),
)
