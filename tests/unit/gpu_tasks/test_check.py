"""A stored run is computed again: what does not follow from its readings is found, field by field."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from gpu_tasks.convert.own import check_run
from gpu_tasks.programs.cli import main
from gpu_tasks.records import (
    BadInput,
    IdleWindow,
    ReferenceLoad,
    RoundRecord,
    RunRecord,
    read_record,
    record_files,
    record_name,
    write_record,
)
from gpu_tasks.sources import ROOT
from tests.unit.gpu_tasks.energy.nights import simulated_night

BASELINES = record_files(ROOT / "gpu_tasks/baselines")


@pytest.mark.parametrize("path", BASELINES, ids=record_name)
def test_what_ships_follows_from_its_readings(path: Path) -> None:
    check_run(read_record(path, RunRecord), "shipped")


@pytest.mark.parametrize("name", ["learner-measure-a100.json", "learner-simulated-a100-healthy.json.gz"])
@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda trial: {"adjusted_mj": math.nextafter(trial.adjusted_mj, 0)}, "adjusted_mj"),
        (lambda trial: {"gross_mj": math.nextafter(trial.gross_mj, 0)}, "gross_mj"),
        (lambda trial: {"repeats": trial.repeats - 1}, "(wall_ms|repeats)"),
        (lambda trial: {"idle_after": later_by_a_millijoule(trial.idle_after)}, "adjusted_mj"),
    ],
)
def test_a_trial_follows_from_its_counters(
    name: str, change: Callable[[RoundRecord], dict[str, object]], field: str
) -> None:
    """By one unit in the last place of a figure, one task, one millijoule of the counter."""
    run = read_record(ROOT / "gpu_tasks/baselines" / name, RunRecord)
    changed = first_round(**change(run.rounds[0]))(run)
    with pytest.raises(BadInput, match=rf"run.json: \$\.rounds\[0\]\.{field}: expected"):
        check_run(changed, "run.json")


def later_by_a_millijoule(window: IdleWindow | None) -> IdleWindow:
    assert window is not None
    return dataclasses.replace(window, end=dataclasses.replace(window.end, energy_mj=window.end.energy_mj + 1))


@pytest.mark.parametrize("inject", [None, "throttle", "faulty_sensor", "no_counter", "lost_gpu"])
def test_what_a_night_writes_follows_from_its_readings(inject: str | None) -> None:
    check_run(simulated_night(inject), "night")


def first_round(**changes: object) -> Callable[[RunRecord], RunRecord]:
    def change(run: RunRecord) -> RunRecord:
        rounds = [dataclasses.replace(run.rounds[0], **changes), *run.rounds[1:]]  # type: ignore[arg-type]
        return dataclasses.replace(run, rounds=rounds)

    return change


def summary(**changes: object) -> Callable[[RunRecord], RunRecord]:
    return lambda run: dataclasses.replace(run, summary=dataclasses.replace(run.summary, **changes))  # type: ignore[arg-type]


def lying_load(run: RunRecord) -> RunRecord:
    """The reference load of a dead sensor, its gates as they were."""
    load = run.telemetry[0].reference_load
    assert isinstance(load, ReferenceLoad)
    load = dataclasses.replace(load, joules_per_1e12_operations=0.07)
    return dataclasses.replace(
        run, telemetry=[dataclasses.replace(run.telemetry[0], reference_load=load), run.telemetry[1]]
    )


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (first_round(adjusted_mj=0.01), "$.rounds[0].adjusted_mj"),
        (first_round(wall_ms=1.0), "$.rounds[0].wall_ms"),
        (first_round(idle_before_w=1.0), "$.rounds[0].idle_before_w"),
        (first_round(measurement_start=None), "$.rounds[0]."),
        (summary(adjusted_mj_median=0.01), "$.summary.adjusted_mj_median"),
        (summary(energy=[]), "$.summary.energy"),
        (summary(agreed=999), "$.summary.agreed"),
        (lambda run: dataclasses.replace(run, gates=run.gates[1:]), "$.gates"),
        (lambda run: dataclasses.replace(run, telemetry=[]), "$.summary"),
        (lying_load, "$."),
    ],
)
def test_a_changed_field_is_named(change: Callable[[RunRecord], RunRecord], field: str) -> None:
    with pytest.raises(BadInput) as caught:
        check_run(change(simulated_night()), "run.json")
    assert caught.value.code == "record_contradicts_itself"
    assert caught.value.message.startswith(f"run.json: {field}")


def test_trust_without_gates_is_found() -> None:
    """A record that calls its energy verified and brings no gate with it."""
    run = dataclasses.replace(simulated_night(), telemetry=[], gates=[])
    run = dataclasses.replace(
        run,
        summary=dataclasses.replace(
            run.summary,
            reference_joules_per_1e12_operations=None,
            energy=[dataclasses.replace(f, per_reference_load=None) for f in run.summary.energy],
        ),
    )
    with pytest.raises(BadInput, match=r"\$\.energy_trust: expected 'unverified', found 'verified'"):
        check_run(run, "run.json")


def test_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_record(simulated_night(), tmp_path / "run.json")
    assert main(["check", str(tmp_path / "run.json")]) == 0
    assert "1 draw and 3 rounds say the same again" in capsys.readouterr().err
    write_record(first_round(adjusted_mj=0.01)(simulated_night()), tmp_path / "run.json")
    assert main(["check", str(tmp_path / "run.json")]) == 2
    assert "record_contradicts_itself" in capsys.readouterr().err


def test_the_record_of_a_part_is_told_by_its_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "round.json"
    write_record(simulated_night().rounds[0], path)
    assert main(["check", str(path)]) == 2
    assert capsys.readouterr().err.endswith(f"bad_record: {path}: $.kind: expected 'run', found 'round'\n")
