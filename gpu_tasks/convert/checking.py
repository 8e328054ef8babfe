"""How a record is held against itself: one value that follows from others, and the value that it has."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from gpu_tasks.records import BadInput, parse_utc

MOST_MJ = 2**63  # what the results database can hold


@dataclass(frozen=True)
class Fact:
    """One field (``where``, as in ``$.rounds[3].wall_ms``), what follows from the others, and what it says.

    ``relative`` is how far apart two numbers may be: 0 means the very same value.
    """

    where: str
    expected: Any
    found: Any
    relative: float = 0.0

    def holds(self) -> bool:
        """Whether the field says what it must."""
        if self.relative and all(isinstance(value, int | float) for value in (self.expected, self.found)):
            return math.isclose(self.expected, self.found, rel_tol=self.relative)
        return bool(self.expected == self.found)


def rule(where: str, holds: bool, expected: str, found: Any) -> Fact:
    """A fact for what is no equality: ``expected`` says in words what has to hold."""
    return Fact(where, expected, expected if holds else found)


def sha256_rule(where: str, found: str) -> Fact:
    """The field is a sha256."""
    return rule(where, re.fullmatch(r"[0-9a-f]{64}", found) is not None, "64 lower-case hexadecimal digits", found)


def check(source: str, facts: Iterable[Fact]) -> None:
    """Raise ``BadInput`` (``record_contradicts_itself``) for the first fact that does not hold."""
    for fact in facts:
        if not fact.holds():
            message = f"{source}: {fact.where}: expected {_shown(fact.expected)}, found {_shown(fact.found)}"
            raise BadInput("record_contradicts_itself", message)


def readings_in_order(where: str, readings: Sequence[tuple[str, float, int]]) -> Iterator[Fact]:
    """Readings (name, s, mJ) of a counter that only grows, each at a later time than the one before."""
    for name, _, energy_mj in readings:
        yield rule(f"{where}.{name}.energy_mj", 0 <= energy_mj < MOST_MJ, f"0 to {MOST_MJ - 1}", energy_mj)
    for (_, time_s, energy_mj), (name, later_s, later_mj) in pairwise(readings):
        yield rule(f"{where}.{name}.time_s", later_s > time_s, f"more than {time_s}", later_s)
        yield rule(f"{where}.{name}.energy_mj", later_mj >= energy_mj, f"{energy_mj} or more", later_mj)


def times_in_order(source: str, times: Sequence[tuple[str, str]]) -> None:
    """Raise ``BadInput`` unless the times (field, text) have a UTC offset and none is before the one above it."""
    moments = []
    for where, text in times:
        try:
            moments.append(parse_utc(text))
        except BadInput as error:
            raise BadInput(error.code, f"{source}: {where}: {error.message}") from None
    pairs = zip(pairwise(times), pairwise(moments), strict=True)
    check(
        source,
        [
            rule(where, later >= first, f"{before} or later", text)
            for ((_, before), (where, text)), (first, later) in pairs
        ],
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
