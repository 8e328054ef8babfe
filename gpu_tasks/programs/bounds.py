"""Bounds of what measuring programs are told, each with its option, and of a telemetry record that they are handed."""

from __future__ import annotations

import math
from argparse import Namespace
from pathlib import Path

from gpu_tasks.records import MAX_BLOCKS, MAX_REPEATS, MAX_ROUND, MAX_SEED, BadInput, TelemetryRecord

TICK_S = (1e-3, 1.0)
"""A counter that steps more seldom counts as standing still."""

LARGEST_WALK = 1e3
MOST_QUOTED = 80

Rule = tuple[str, bool, str, object]
"""What is told, whether it may be so, what was expected, what was found."""


def check_limits(arguments: Namespace) -> None:
    """Raise ``BadInput`` (``bad_limit``) for a power limit or a clock floor that is no number above 0."""
    for name in ("power_limit", "sm_clock_floor"):
        value = getattr(arguments, name, None)
        if value is not None and not 0 < value < math.inf:
            option = f"--{name.replace('_', '-')}"
            raise BadInput("bad_limit", f"{option}: expected a number above 0, found {value}")


def check_round(number: int) -> None:
    """Raise ``BadInput`` (``bad_round``) for the number of a round that no run has."""
    if not 0 <= number <= MAX_ROUND:
        raise BadInput("bad_round", _outside("--round", 0, MAX_ROUND, number))


def check_replays(repeats: int | None) -> None:
    """Raise ``BadInput`` (``bad_repeats``); null leaves them to the device."""
    if repeats is not None and not 1 <= repeats <= MAX_REPEATS:
        raise BadInput("bad_repeats", _outside("--repeats", 1, MAX_REPEATS, repeats))


def check_blocks(blocks: int, fewest: int = 1) -> None:
    """Raise ``BadInput`` (``bad_blocks``)."""
    if not fewest <= blocks <= MAX_BLOCKS:
        raise BadInput("bad_blocks", _outside("--blocks", fewest, MAX_BLOCKS, blocks))


def check_seed(seed: int | None) -> None:
    """Raise ``BadInput`` (``bad_seed``); null leaves it to the program."""
    if seed is not None and not 0 <= seed <= MAX_SEED:
        raise BadInput("bad_seed", _outside("--seed", 0, MAX_SEED, seed))


def _outside(option: str, low: int, high: int, found: int) -> str:
    return f"{option}: expected {low} to {high}, found {shortened(found)}"


def shortened(value: object) -> str:
    """A value in an error, however long somebody made it."""
    text = str(value)
    return text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}..."


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
