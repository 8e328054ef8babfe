"""A run record of this project, held against itself: what was derived is derived again."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import starmap

from gpu_tasks.comparison.recheck import recomputed_comparison
from gpu_tasks.convert.checking import Fact, check
from gpu_tasks.convert.own_parts import recomputed_memory, recomputed_qualification, recomputed_validation
from gpu_tasks.energy.figures import summarise
from gpu_tasks.energy.recheck import recomputed_round, recomputed_telemetry
from gpu_tasks.energy.trust import comparison_trust, energy_trust
from gpu_tasks.records import ComparisonRecord, RunRecord

TRUSTED = "verified"


def check_run(record: RunRecord, source: str) -> None:
    """Raise ``BadInput`` for a figure, summary, gate or trust that does not follow from the readings in the record.

    A record from before the gates existed has none, which is no contradiction; trust that nothing in it bears out is.
    """
    check(source, _facts(record))


def _facts(record: RunRecord) -> Iterator[Fact]:
    for index, measured in enumerate(record.rounds):
        yield from starmap(Fact, recomputed_round(measured, f"$.rounds[{index}]"))
    for index, look in enumerate(record.telemetry):
        yield from starmap(Fact, recomputed_telemetry(look, f"$.telemetry[{index}]"))
    for index, validation in enumerate(record.validations):
        yield from starmap(Fact, recomputed_validation(validation, f"$.validations[{index}]"))
    if record.qualification is not None:
        yield from starmap(Fact, recomputed_qualification(record.qualification, "$.qualification"))
    if record.memory is not None:
        yield from starmap(Fact, recomputed_memory(record.memory, "$.memory"))
    request = record.request
    computed = summarise(
        len(request.draws), record.validations, record.rounds_expected, record.rounds, record.telemetry
    )
    for field in dataclasses.fields(computed):
        yield Fact(f"$.summary.{field.name}", getattr(computed, field.name), getattr(record.summary, field.name))
    gates, trust, _ = energy_trust(record.provision, record.telemetry, record.rounds, request.reference_bands)
    if record.comparison is not None:
        yield from _of_comparison(record, record.comparison)
    if record.gates:
        yield Fact("$.gates", gates, record.gates)
    if TRUSTED in (record.energy_trust, trust):
        yield Fact("$.energy_trust", trust, record.energy_trust)


def _of_comparison(record: RunRecord, compared: ComparisonRecord) -> Iterator[Fact]:
    where = "$.comparison"
    yield Fact(f"{where}.validations", [], compared.validations)  # they are the run's own
    yield from starmap(Fact, recomputed_comparison(compared, record.validations, where))
    device = record.provision.device if record.provision else None
    bands = record.request.reference_bands
    trust, _ = comparison_trust(device, record.telemetry, compared.rounds, bands, compared.not_measured)
    if TRUSTED in (compared.energy_trust, trust):
        yield Fact(f"{where}.energy_trust", trust, compared.energy_trust)
