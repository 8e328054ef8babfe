"""Which kernels the arguments ask for."""

from __future__ import annotations

from argparse import Namespace

from gpu_tasks.devices.manifest import COMMITTED
from gpu_tasks.devices.registry import KernelChoice


def kernel_choice(arguments: Namespace) -> KernelChoice:
    """``--variant``, ``--manifest``, ``--ptx`` and ``--check races`` as the registry takes them."""
    return KernelChoice(
        variant=arguments.variant,
        manifest=arguments.manifest or COMMITTED,
        ptx=tuple(arguments.ptx),
        check_races=getattr(arguments, "check", None) == "races",
    )
