"""``pin``: accept the sources as they are."""

from __future__ import annotations

from argparse import Namespace

from gpu_tasks.programs.console import progress
from gpu_tasks.sources import PINS, ROOT, write_pins


def run(_: Namespace) -> None:
    """Rewrite the pins."""
    progress(f"{PINS}: {write_pins(ROOT)} files pinned")
