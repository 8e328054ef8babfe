"""Bounds of what measuring programs are told, each with its option, and of a telemetry record that they are handed."""

from __future__ import annotations

import math
from argparse import Namespace
from pathlib import Path

from gpu_tasks.records import BadInput, TelemetryRecord

MOST_BLOCKS = 100
"""Most of an hour with four arms."""

MOST_ROUND = 9999
"""Numbers of rounds have four digits at most wherever they are named."""

TICK_S = (1e-3, 1.0)
"""A counter that steps more seldom counts as standing still."""

LARGEST_WALK = 1e3

Rule = tuple[str, bool, str, object]
"""What is told, whether it may be so, what was expected, what was found."""


def check_limits(arguments: Namespace) -> None:
    """Raise ``BadInput`` (``bad_limit``) for a power limit or a clock floor that is no number above 0."""
    for name in ("power_limit", "sm_clock_floor"):
        value = getattr(arguments, name, None)
        if value is not None and not 0 < value < math.inf:
            option = f"--{name.replace('_', '-')}"
            raise BadInput("bad_limit", f"{option}: expected a number above 0, found {value}")


def check_blocks(blocks: int) -> None:
    """Raise ``BadInput`` (``bad_blocks``)."""
    if not 1 <= blocks <= MOST_BLOCKS:
        raise BadInput("bad_blocks", f"--blocks: expected 1 to {MOST_BLOCKS}, found {blocks}")


def check_telemetry(record: TelemetryRecord, path: Path) -> None:
    """Raise ``BadInput`` (``bad_telemetry``) for what no look at a counter can have found: rounds wait by it."""
    low, high = TICK_S
    tick, wander = record.tick_period_s, record.wander
    rules: list[Rule] = [
        ("kind", record.kind == "telemetry", "'telemetry'", record.kind),
        ("tick_period_s", tick is None or low <= tick <= high, f"{low:g} to {high:g}", tick),
    ]
    if wander is not None:
        walk, freedom = wander.walk_w_per_sqrt_s, wander.degrees_of_freedom
        rules += [
            ("wander.walk_w_per_sqrt_s", 0 <= walk <= LARGEST_WALK, f"0 to {LARGEST_WALK:g}", walk),
            ("wander.degrees_of_freedom", freedom > 0, "more than 0", freedom),
        ]
    for field, holds, expected, found in rules:
        if not holds:
            raise BadInput("bad_telemetry", f"{path}: $.{field}: expected {expected}, found {found!r}")
