"""A run record of this project, held against itself: what was derived is derived again."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from gpu_tasks.convert.checking import Fact, check
from gpu_tasks.energy.derive import with_figures
from gpu_tasks.energy.figures import summarise
from gpu_tasks.energy.trust import energy_trust
from gpu_tasks.records import RoundRecord, RunRecord, Summary

TRUSTED = "verified"


def check_run(record: RunRecord, source: str) -> None:
    """Raise ``BadInput`` for a figure, summary, gate or trust that does not follow from the readings in the record.

    A record from before the gates existed has none, which is no contradiction; trust that nothing in it bears out is.
    """
    check(source, _facts(record))


def _facts(record: RunRecord) -> Iterator[Fact]:
    for index, measured in enumerate(record.rounds):
        yield from _differences(f"$.rounds[{index}]", with_figures(measured), measured)
    request = record.request
    computed = summarise(
        len(request.draws), record.validations, record.rounds_expected, record.rounds, record.telemetry
    )
    yield from _differences("$.summary", computed, record.summary)
    gates, trust, _ = energy_trust(record.provision, record.telemetry, record.rounds, request.reference_bands)
    if record.gates:
        yield Fact("$.gates", gates, record.gates)
    if TRUSTED in (record.energy_trust, trust):
        yield Fact("$.energy_trust", trust, record.energy_trust)


def _differences(where: str, expected: RoundRecord | Summary, found: RoundRecord | Summary) -> Iterator[Fact]:
    for field in dataclasses.fields(expected):
        yield Fact(f"{where}.{field.name}", getattr(expected, field.name), getattr(found, field.name))
