"""A stored part of a run held against itself: everything in it that follows from its readings is computed again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from gpu_tasks.energy.derive import with_figures
from gpu_tasks.energy.telemetry import with_load_figures
from gpu_tasks.records import BadInput, RoundRecord, TelemetryRecord

Part = TypeVar("Part", RoundRecord, TelemetryRecord)

Difference = tuple[str, Any, Any]
"""A field (``$.rounds[3].wall_ms``), what follows from the readings, and what it says."""


def recomputed_round(record: RoundRecord, where: str) -> Iterator[Difference]:
    """Every field of a round, computed again; raises ``BadInput`` where nothing can be."""
    return _fields(record, with_figures, where)


def recomputed_telemetry(record: TelemetryRecord, where: str) -> Iterator[Difference]:
    """The same for a look at the known load."""
    return _fields(record, with_load_figures, where)


def check_part(record: RoundRecord | TelemetryRecord, source: str) -> None:
    """Raise ``BadInput`` (``contradictory_part``) for the first field that does not follow from the readings.

    A figure that somebody or something has changed on its way is no measurement, however well it looks.
    """
    found = recomputed_round(record, "$") if isinstance(record, RoundRecord) else recomputed_telemetry(record, "$")
    refuse_difference(found, source)


def refuse_difference(found: Iterable[Difference], source: str) -> None:
    """Raise ``BadInput`` (``contradictory_part``) for the first difference."""
    for field, expected, said in found:
        if expected != said:
            shown = [repr(value) if len(repr(value)) <= 80 else f"{value!r:.77}..." for value in (expected, said)]
            raise BadInput("contradictory_part", f"{source}: {field}: expected {shown[0]}, found {shown[1]}")


def _fields(record: Part, compute: Callable[[Part], Part], where: str) -> Iterator[Difference]:
    try:
        computed = compute(record)
    except (ArithmeticError, ValueError, IndexError) as error:  # windows of no length, numbers of no size
        message = f"{where}: expected readings that figures can be made of, found {type(error).__name__}: {error}"
        raise BadInput("bad_readings", message) from None
    for field in dataclasses.fields(record):
        yield f"{where}.{field.name}", getattr(computed, field.name), getattr(record, field.name)
