"""What the arguments ask of the simulated device."""

from __future__ import annotations

import hashlib
from argparse import Namespace

from gpu_tasks.devices.registry import Simulation
from gpu_tasks.programs.bounds import check_seed

DEFAULT_SEED = 0


def simulation(arguments: Namespace, part: str) -> Simulation:
    """``--inject`` and ``--seed``; ``part`` keeps the noise of a run's programs apart, each its own and repeatable.

    Raises ``BadInput`` (``bad_seed``) for a seed that no run can have; a real device refuses any.
    """
    check_seed(arguments.seed)
    seed = DEFAULT_SEED if arguments.seed is None else arguments.seed
    digest = hashlib.sha256(f"{seed}/{part}".encode()).digest()
    return Simulation(
        arguments.inject, int.from_bytes(digest[:8], "big"), workload=arguments.workload, told_seed=arguments.seed
    )
