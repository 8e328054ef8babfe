"""What a workload says of itself, in ``DECLARATION`` of the module ``gpu_tasks.workloads.NAME.declaration``.

Nothing else has to know of it: everything that is looked up by a workload's name is looked up here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu_tasks.energy.simulation.profiles import A100_HEALTHY, Profile
from gpu_tasks.workloads.base import Workload

if TYPE_CHECKING:
    from gpu_tasks.devices.base import Device
    from gpu_tasks.devices.registry import Wanted

Opener = Callable[["Wanted"], "Device"]
"""Opens a device of one kind. What is heavy is imported when it is called: torch, a driver."""


@dataclass(frozen=True)
class Declaration:
    """A workload by its parts.

    ``make`` gives the workload itself. ``payload`` is the set of draws that is meant where none is named, ``devices``
    opens each kind of device that there is (``gpu_tasks.records.DEVICE_KINDS``), and ``without_gpu`` is the kind that
    ``auto`` stands for on a machine without a GPU. Devices of the kinds in ``ptx_kinds`` run kernels that can be chosen
    and changed; of all others a choice is refused. ``board`` is the simulated GPU, with what a task costs on it.
    """

    name: str
    make: Callable[[], Workload]
    payload: str
    devices: Mapping[str, Opener]
    without_gpu: str = "reference"
    ptx_kinds: frozenset[str] = frozenset()
    board: Profile = A100_HEALTHY
