"""Lines for people, on standard error: the record has standard output to itself."""

from __future__ import annotations

import sys

from gpu_tasks.records import Outcome, Reason


def progress(text: str) -> None:
    """One line about what is being done."""
    print(text, file=sys.stderr, flush=True)


def complain(program: str, outcome: Outcome, reason: Reason) -> None:
    """The one line of a program that did not end well: class, code and message."""
    message = " ".join(reason.message.split())
    progress(f"gpu_tasks {program}: {outcome.value}: {reason.code}: {message}")
