"""From the options of a task to the record that is written for a program that left none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_tasks.records import DEFAULT_WORKLOAD, Outcome, Reason, failure_record

NUMBERS = ("draw", "round")
INTEGERS = (*NUMBERS, "repeats")
DEFAULTS = {"workload": DEFAULT_WORKLOAD, "arm": "candidate"}  # the programs' own


def record_for(program: str, options: Mapping[str, str], outcome: Outcome, reason: Reason) -> Any | None:
    """The failure record of a program started with ``options``; None where there is none, or a number is no number."""
    if not all(given.isdecimal() for name, given in options.items() if name in INTEGERS):
        return None
    given = {name: int(text) if name in INTEGERS else text for name, text in options.items()}
    return failure_record(program, DEFAULTS | given, outcome, reason)
