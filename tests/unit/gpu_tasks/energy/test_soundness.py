"""Rounds whose readings cannot bear their figure, though every one of them would say the same."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from gpu_tasks.energy.simulation.faults import ENERGY, Fault, FaultyNvml
from gpu_tasks.energy.simulation.nvml import FakeNvml
from gpu_tasks.energy.soundness import unsound_reasons
from gpu_tasks.energy.trace import Sample, read_samples
from gpu_tasks.programs.cli import main
from gpu_tasks.records import EnergyMeasurement, Outcome, RoundRecord, read_record
from tests.unit.gpu_tasks.energy.nights import simulated_night

PROTOCOLS = ("audited", "classic", "interleaved")


def measured(path: Path, *options: str) -> RoundRecord:
    main(["measure", "--device", "simulated", "--round", "5", *options, "--out", str(path)])
    return read_record(path, RoundRecord)


def stored(protocol: str) -> tuple[RoundRecord, EnergyMeasurement, list[Sample]]:
    record = simulated_night(protocol=protocol).rounds[0]
    assert record.energy is not None
    assert record.energy.trace is not None
    return record, record.energy, read_samples(record.energy.trace)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_healthy_round_bears_its_figure(protocol: str) -> None:
    record, energy, samples = stored(protocol)
    assert unsound_reasons(record, energy, samples) == []


@pytest.mark.parametrize(
    ("protocol", "settled", "not_settled"),
    [("audited", 1.0, 1.5), ("classic", 0.5, 0.8), ("interleaved", 0.4, 0.6)],
)
def test_power_that_has_not_settled_is_no_idle_power(
    tmp_path: Path, protocol: str, settled: float, not_settled: float
) -> None:
    """What of the tail is left would be missing from the work, and be taken for idle power besides."""
    for tail_s, code in ((settled, None), (not_settled, "power_not_settled"), (10.0, "power_not_settled")):
        record = measured(tmp_path / "r.json", "--protocol", protocol, "--inject", f"slow_tail={tail_s:g}")
        codes = record.reason.code if record.reason else None
        assert codes == code
        assert record.valid is (code is None)
    assert record.reason is not None
    assert " s after the work: expected at most " in record.reason.message


def test_what_is_left_is_compared_with_the_power_of_the_work() -> None:
    """Half a watt may be left of any work: idle power wanders by as much."""
    record, energy, samples = stored("audited")
    assert energy.aligned is not None
    settled_s = energy.aligned.active_end.after_s

    def raised(by_w: float) -> list[str]:
        changed = [
            dataclasses.replace(s, power_w=s.power_w + by_w)
            if s.power_w is not None and settled_s - 0.4 < s.time_s < settled_s
            else s
            for s in samples
        ]
        return [reason.code for reason in unsound_reasons(record, energy, changed)]

    assert raised(3.0) == []
    assert raised(4.0) == ["power_not_settled"]
    quiet = [dataclasses.replace(s, power_w=38.6) for s in samples]
    assert unsound_reasons(record, energy, quiet) == []


def test_work_that_is_short_beside_the_tail_is_no_measurement(tmp_path: Path) -> None:
    """Two seconds of work: plain figures around 0.48 mJ where a replay costs 0.586, and all rounds agree with that."""
    record = measured(tmp_path / "r.json", "--repeats", "120000")
    assert record.adjusted_mj is not None
    assert record.adjusted_mj < 0.95 * 0.586
    assert record.outcome is Outcome.INVALID_MEASUREMENT
    assert record.reason is not None
    assert record.reason.code == "bias_too_large"
    assert "audited figure: expected to read at most 10% too little" in record.reason.message


def test_the_bias_of_the_protocols_own_figure_counts_and_that_of_the_others_does_not() -> None:
    record, energy, samples = stored("audited")

    def biased(figure: str, by_mj: float) -> list[str]:
        figures = [
            dataclasses.replace(f, uncertainty=dataclasses.replace(f.uncertainty, bias_mj=by_mj))
            if f.figure == figure
            else f
            for f in energy.figures
        ]
        return [r.code for r in unsound_reasons(record, dataclasses.replace(energy, figures=figures), samples)]

    assert biased("audited", -0.06) == []
    assert biased("audited", -0.08) == ["bias_too_large"]
    assert biased("classic", -0.3) == []


def test_a_sensor_that_shows_next_to_nothing_has_no_tail_to_judge() -> None:
    """The record's sensor is found by the known load; whether its rounds are valid is no matter of chance."""
    run = simulated_night("faulty_sensor")
    assert all(record.valid for record in run.rounds)


@pytest.mark.parametrize("number", [60, 100, 140, 180])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_reading_that_took_long_is_of_an_unknown_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, number: int
) -> None:
    """A host that stops the process within a call: the counter was read two seconds before its time says."""

    def stopped(gpu: Any) -> Fault:
        def outcome(_: Any, real: Any) -> Any:
            value = real()
            gpu.clock.sleep(2.0)
            return value

        return Fault(ENERGY, outcome, after=after, times=1)

    def faulty(gpu: Any) -> Any:
        return FaultyNvml(FakeNvml(gpu), stopped(gpu))

    after = 10**9
    monkeypatch.setattr("gpu_tasks.energy.simulation.instruments.FakeNvml", faulty)
    assert measured(tmp_path / "r.json", "--protocol", protocol).valid
    after = number
    record = measured(tmp_path / "r.json", "--protocol", protocol)
    assert record.reason is not None
    assert record.reason.code in ("slow_reading", "counter_not_advancing")
