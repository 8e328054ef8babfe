"""What was measured is held against itself before it counts: in a run's parts, and in the run."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_tasks.convert.own import check_run
from gpu_tasks.energy.recheck import check_part
from gpu_tasks.programs.parts import read_parts
from gpu_tasks.programs.summarise import run_record
from gpu_tasks.records import (
    BadInput,
    Outcome,
    ReferenceLoad,
    RoundRecord,
    RunRecord,
    TelemetryRecord,
    from_json,
    to_json,
    write_record,
)
from tests.unit.gpu_tasks.energy.nights import simulated_night

PROTOCOLS = (None, "classic", "interleaved")
EXTREMES = (0, -1, 1, 10**30, 10**400, 1e308, -1e308, 5e-324, 2**63, None)


def parts_of(run: RunRecord, folder: Path) -> None:
    assert run.provision is not None
    write_record(run.provision, folder / "provision.json")
    for measured in run.rounds:
        write_record(measured, folder / f"round-{measured.round:02d}.json")
    for look in run.telemetry:
        write_record(look, folder / f"telemetry-{look.when}.json")


def load_with(**changes: Any) -> Callable[[TelemetryRecord], TelemetryRecord]:
    def change(record: TelemetryRecord) -> TelemetryRecord:
        assert isinstance(record.reference_load, ReferenceLoad)
        return dataclasses.replace(record, reference_load=dataclasses.replace(record.reference_load, **changes))

    return change


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("inject", [None, "throttle", "lost_gpu", "no_counter", "stuck_counter"])
def test_what_was_measured_follows_from_its_readings(protocol: str | None, inject: str | None) -> None:
    run = simulated_night(inject, protocol=protocol)
    for part in (*run.rounds, *run.telemetry):
        check_part(part, "part")


@pytest.mark.parametrize("field", ["adjusted_mj", "gross_mj", "wall_ms", "average_power_w"])
def test_a_figure_that_was_changed_on_its_way_is_no_measurement(tmp_path: Path, field: str) -> None:
    """In the last bit or by a half: the run says which part it was, and no median is made of it."""
    run = simulated_night()
    parts_of(run, tmp_path)
    measured = run.rounds[1]
    changed = dataclasses.replace(measured, **{field: getattr(measured, field) * (1 + 2e-16)})  # type: ignore[arg-type]
    assert changed != measured
    write_record(changed, tmp_path / "round-01.json")
    (part,) = [p for p in read_parts(run.request, tmp_path) if p.name == "round-01"]
    assert part.outcome is Outcome.BAD_INPUT
    assert part.reason is not None
    assert part.reason.code == "contradictory_part"
    assert f"round-01.json: $.{field}: expected {getattr(measured, field)!r}, found" in part.reason.message
    found = run_record(run.request, read_parts(run.request, tmp_path))
    assert found.outcome is Outcome.BAD_INPUT
    assert found.summary.rounds_valid == 2


def test_a_trace_that_was_damaged_costs_its_round_and_no_other(tmp_path: Path) -> None:
    run = simulated_night()
    parts_of(run, tmp_path)
    energy = run.rounds[2].energy
    assert energy is not None
    assert energy.trace is not None
    trace = dataclasses.replace(energy.trace, csv=energy.trace.csv[:-3])
    broken = dataclasses.replace(run.rounds[2], energy=dataclasses.replace(energy, trace=trace))
    write_record(broken, tmp_path / "round-02.json")
    parts = {part.name: part for part in read_parts(run.request, tmp_path)}
    assert parts["round-02"].outcome is Outcome.BAD_INPUT
    assert parts["round-01"].outcome is Outcome.OK


@pytest.mark.parametrize(
    "change",
    [
        load_with(joules_per_1e12_operations=8.4),
        load_with(tera_operations_per_s=19.0),
        load_with(energy_j=900.0),
        load_with(idle_w=38.0),
        load_with(operations=1e14),
        load_with(result_verified=False),
        lambda record: dataclasses.replace(record, wander=None),
        lambda record: dataclasses.replace(record, idle_edges=record.idle_edges[:-1]),
    ],
)
def test_the_known_load_follows_from_its_energies(
    tmp_path: Path, change: Callable[[TelemetryRecord], TelemetryRecord]
) -> None:
    run = simulated_night()
    look = change(run.telemetry[0])
    with pytest.raises(BadInput, match=r"^telemetry-before\.json: \$\.") as caught:
        check_part(look, "telemetry-before.json")
    assert caught.value.code == "contradictory_part"
    parts_of(run, tmp_path)
    write_record(look, tmp_path / "telemetry-before.json")
    found = run_record(run.request, read_parts(run.request, tmp_path))
    assert found.outcome is Outcome.BAD_INPUT
    assert found.energy_trust != "verified"
    with pytest.raises(BadInput, match=r"\$\.telemetry\[0\]\."):
        check_run(dataclasses.replace(run, telemetry=[look, run.telemetry[1]]), "run.json")


def numbers(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where the numbers of a JSON value are."""
    if isinstance(value, dict):
        return [found for key in value for found in numbers(value[key], (*at, key))]
    if isinstance(value, list):
        return [found for index, item in enumerate(value) for found in numbers(item, (*at, index))]
    return [at] if isinstance(value, int | float) and not isinstance(value, bool) else []


PARTS = [json.loads(to_json(part)) for p in PROTOCOLS for part in simulated_night(protocol=p).rounds[:1]]
PARTS += [json.loads(to_json(look)) for look in simulated_night().telemetry]
PLACES = [(number, place) for number, part in enumerate(PARTS) for place in numbers(part)]


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(PLACES), st.sampled_from(EXTREMES))
def test_whatever_a_number_is_changed_to_the_part_is_refused_in_one_line_or_still_follows(
    where: tuple[int, tuple[Any, ...]], extreme: Any
) -> None:
    """Windows of no length, counters of no size: never an error that nobody has thought of."""
    number, place = where
    changed = json.loads(json.dumps(PARTS[number]))
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = extreme
    cls: type[Any] = RoundRecord if changed["kind"] == "round" else TelemetryRecord
    try:
        check_part(from_json(json.dumps(changed), cls, "part"), "part")
    except BadInput as error:
        assert ": expected " in error.message or "found" in error.message
        assert "\n" not in error.message
