"""The learner's place in the frame: torch on a CPU and on a GPU, and a simulated board that is asked more of."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from gpu_tasks.energy.simulation.profiles import A100_HEALTHY
from gpu_tasks.workloads.declaration import Declaration
from gpu_tasks.workloads.learner import frozen
from gpu_tasks.workloads.learner.torch_settings import require_torch
from gpu_tasks.workloads.learner.workload import Learner

if TYPE_CHECKING:
    from gpu_tasks.devices.base import Device
    from gpu_tasks.devices.registry import Wanted

BOARD = dataclasses.replace(
    A100_HEALTHY,
    key="a100_learner",
    idle_w=62.0,
    idle_sd_w=0.8,
    replay_s=38.4e-3,
    replay_mj=1130.0,
    pci_bus_id="00000000:0F:00.0",
)
"""That of the original records, which read 1,020 to 1,100 mJ a task: their windows see no tail, 6 % of it."""


def _reference(wanted: Wanted) -> Device:
    require_torch()
    from gpu_tasks.workloads.learner.devices import ReferenceLearner

    return ReferenceLearner(wanted.workload)


def _cuda(wanted: Wanted) -> Device:
    require_torch()
    from gpu_tasks.workloads.learner.cuda_device import CudaLearner

    return CudaLearner(wanted.workload)


def _simulated(wanted: Wanted) -> Device:
    require_torch()
    from gpu_tasks.workloads.learner.devices import SimulatedLearner

    return SimulatedLearner(wanted.workload, wanted.simulation.gpu)


DECLARATION = Declaration(
    name=Learner.name,
    make=Learner,
    payload=frozen.PINNED.name,
    devices={"cuda": _cuda, "reference": _reference, "simulated": _simulated},
    board=BOARD,
)
