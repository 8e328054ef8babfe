"""Everything that is said of a round comes from its raw readings, by one function, to the last bit."""

from __future__ import annotations

import dataclasses
import json
import statistics
from pathlib import Path

import pytest

from gpu_tasks.energy.derive import span_s, with_figures
from gpu_tasks.energy.figures import figure_summaries, round_figures, summarise
from gpu_tasks.records import (
    CounterReading,
    IdleWindow,
    RoundRecord,
    RunRecord,
    WindowEdge,
    from_json,
    read_record,
    to_json,
)
from gpu_tasks.sources import ROOT
from tests.unit.gpu_tasks.energy.nights import simulated_night

RECORD = read_record(ROOT / "gpu_tasks/baselines/qda-original-a100.json", RunRecord)
LEARNER = json.loads((Path(__file__).parent / "data/learner-trials.json").read_text(encoding="utf-8"))


def stripped(record: RoundRecord) -> RoundRecord:
    """The raw readings alone: every derived field is overwritten."""
    energy = record.energy
    if energy is not None:
        energy = dataclasses.replace(energy, figures=[], meters=None)
        if energy.sham is not None:
            energy = dataclasses.replace(energy, sham=dataclasses.replace(energy.sham, adjusted_mj=-1.0))
        if energy.audited is not None:
            windows = {name: spoiled(getattr(energy.audited, name)) for name in ("idle_before", "idle_after")}
            energy = dataclasses.replace(energy, audited=dataclasses.replace(energy.audited, **windows))
    return dataclasses.replace(
        record,
        energy=energy,
        wall_ms=None,
        gross_mj=None,
        adjusted_mj=None,
        idle_before_w=None,
        idle_after_w=None,
        average_power_w=None,
        idle_before=spoiled(record.idle_before),
        idle_after=spoiled(record.idle_after),
    )


def spoiled(window: IdleWindow | None) -> IdleWindow | None:
    return None if window is None else dataclasses.replace(window, power_w=-1.0)


@pytest.mark.parametrize("number", range(7))
def test_the_seven_rounds_of_the_record(number: int) -> None:
    assert with_figures(stripped(RECORD.rounds[number])) == RECORD.rounds[number]


def test_the_summary_of_the_record() -> None:
    found = summarise(11, RECORD.validations, 7, [with_figures(stripped(r)) for r in RECORD.rounds])
    assert found == RECORD.summary


@pytest.mark.parametrize("protocol", ["audited", "classic", "interleaved"])
def test_a_stored_round_says_the_same_when_it_is_computed_again(protocol: str) -> None:
    run = simulated_night(protocol=protocol, rounds=2)
    for record in run.rounds:
        stored = from_json(to_json(record), RoundRecord, "round")
        again = with_figures(stripped(stored))
        assert again.energy == record.energy
        assert again == record
    assert figure_summaries(run.rounds, run.summary.reference_joules_per_1e12_operations) == run.summary.energy


def test_a_changed_reading_changes_the_figures() -> None:
    record = simulated_night(rounds=2).rounds[1]
    assert record.measurement_end is not None
    assert record.measurement_end.energy_mj is not None
    end = dataclasses.replace(record.measurement_end, energy_mj=record.measurement_end.energy_mj + 1000)
    again = with_figures(dataclasses.replace(record, measurement_end=end))
    assert again.adjusted_mj != record.adjusted_mj


def trial(values: dict[str, list[float]]) -> IdleWindow:
    start, end = (CounterReading(int(e), t, d) for e, t, d in (values["start"], values["end"]))
    return IdleWindow(start, end, 0.0)


@pytest.mark.parametrize("record", sorted(LEARNER))
@pytest.mark.parametrize("number", range(3))
def test_the_six_trials_of_the_learner(record: str, number: int) -> None:
    """The same formula; the original's order of operations is another one, so that the last bits may differ."""
    found = LEARNER[record]["trials"][number]
    active = [WindowEdge(int(e), t, d) for e, t, d in (found["active"]["start"], found["active"]["end"])]
    figures = round_figures(found["invocations"], *active, trial(found["idle_before"]), trial(found["idle_after"]))
    assert figures.adjusted_mj == pytest.approx(found["idle_adjusted_mj"], rel=1e-12)
    assert figures.gross_mj == found["unadjusted_mj"]
    assert figures.wall_ms == found["wall_ms"]
    assert figures.idle_before_w == found["idle_before_w"]
    assert figures.idle_after_w == found["idle_after_w"]
    assert figures.average_power_w == found["active_w"]


@pytest.mark.parametrize("record", sorted(LEARNER))
@pytest.mark.parametrize(
    ("field", "summary"),
    [
        ("idle_adjusted_mj", "idle_adjusted_mj_per_task"),
        ("unadjusted_mj", "unadjusted_mj_per_task"),
        ("cuda_ms", "cuda_ms_per_task"),
        ("wall_ms", "wall_ms_per_task"),
    ],
)
def test_the_summaries_of_the_trials(record: str, field: str, summary: str) -> None:
    values = [found[field] for found in LEARNER[record]["trials"]]
    assert statistics.mean(values) == LEARNER[record]["summary"][summary]["mean"]
    assert statistics.stdev(values) == LEARNER[record]["summary"][summary]["sample_sd"]


def test_a_round_without_readings_has_no_span() -> None:
    energy = simulated_night(rounds=2).rounds[1].energy
    assert energy is not None
    with pytest.raises(ValueError, match="no span"):
        span_s(dataclasses.replace(energy, aligned=None))
