"""``pin``: accept the sources as they are; with ``--build`` the kernels that they make, once the emulator has."""

from __future__ import annotations

from argparse import Namespace

from gpu_tasks.programs.console import progress
from gpu_tasks.sources import PINS, ROOT, write_pins


def run(arguments: Namespace) -> None:
    """Rewrite the pins; raises ``Regression``, with nothing written, for kernels that are wrong."""
    if arguments.build:
        from gpu_tasks.programs.pin_kernels import build_kernels  # needs numpy, which hashing does not

        build_kernels()
    progress(f"{PINS}: {write_pins(ROOT)} files pinned")
