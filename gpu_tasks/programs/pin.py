"""``pin``: accept the sources as they are; with ``--build`` the kernels that they make, once the emulator has."""

from __future__ import annotations

import signal
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpu_tasks.programs.console import progress
from gpu_tasks.records import write_text_atomically
from gpu_tasks.sources import PINS, ROOT, pinnable, write_pins


def run(arguments: Namespace) -> None:
    """Rewrite the pins; raises ``Regression``, with nothing written, for kernels that are wrong."""
    new: dict[Path, str] = {}
    pinnable(ROOT)  # refused before anything is built or written
    if arguments.build:
        from gpu_tasks.programs.pin_kernels import tried_kernels  # needs numpy, which hashing does not

        new = tried_kernels()
    with _whole():
        for path, text in new.items():
            write_text_atomically(text, path)
            progress(f"{path}: written")
        progress(f"{PINS}: {write_pins(ROOT)} files pinned")


@contextmanager
def _whole() -> Iterator[None]:
    """Whoever ends the program gets all of what is written here or nothing: text, manifest and pins are one."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
