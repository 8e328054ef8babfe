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
    came: list[int] = []  # a mask would not do: numpy has threads, and a signal that one of them takes is ours as well
    signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        for first in came[:1]:
            signal.raise_signal(first)
