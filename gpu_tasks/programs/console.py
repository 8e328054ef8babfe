"""Lines for people, on standard error: the record has standard output to itself."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence

from gpu_tasks.records import Outcome, Reason


def progress(text: str) -> None:
    """One line about what is being done."""
    print(text, file=sys.stderr, flush=True)


def complain(program: str, outcome: Outcome, reason: Reason) -> None:
    """The one line of a program that did not end well: class, code and message."""
    message = " ".join(reason.message.split())
    progress(f"gpu_tasks {program}: {outcome.value}: {reason.code}: {message}")


def in_short(names: Sequence[str]) -> str:
    """``names`` with commas; three and more whose numbers follow one another as the first to the last of them."""
    found: list[list[str]] = []
    for name in names:
        if found and _follows(found[-1][-1], name):
            found[-1].append(name)
        else:
            found.append([name])
    return ", ".join(f"{row[0]} to {row[-1]}" if len(row) > 2 else ", ".join(row) for row in found)


def _follows(earlier: str, later: str) -> bool:
    (kind, _, number), (other, _, next_number) = earlier.rpartition("-"), later.rpartition("-")
    numbers = number.isdigit() and next_number.isdigit()
    return numbers and kind == other and int(next_number) == int(number) + 1


class Phases:
    """Progress of long work: a line a phase in logs; on a terminal one line, brought up to date every second.

    Use as a context; call it with what begins and the seconds that it will take. The refresh is a thread that only
    prints: nothing is measured in it.
    """

    def __init__(self, title: str) -> None:
        self._title, self._text, self._began, self._seconds = title, "", 0.0, 0.0
        self._ended = threading.Event()
        self.refreshed = threading.Event()
        self._thread = threading.Thread(target=self._refresh, daemon=True) if sys.stderr.isatty() else None

    def __enter__(self) -> Phases:
        if self._thread:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread:
            self._thread.join()
            print(f"\r\033[K{self._title}: done", file=sys.stderr, flush=True)

    def __call__(self, text: str, seconds: float) -> None:
        """``text`` begins and takes about ``seconds``."""
        self._text, self._began, self._seconds = text, time.monotonic(), seconds
        if not self._thread:
            progress(f"{self._title}: {text}, {seconds:.1f} s")

    def _refresh(self) -> None:
        while not self._ended.wait(1.0):
            gone = time.monotonic() - self._began
            line = f"{self._title}: {self._text} {gone:.0f} of {self._seconds:.0f} s"
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
            self.refreshed.set()
