"""Each gate at its bounds, and unchecked where there is nothing to check."""

from __future__ import annotations

import dataclasses

import pytest

from gpu_tasks.energy.bands import band_for
from gpu_tasks.energy.conditions import same_conditions
from gpu_tasks.energy.derive import with_figures
from gpu_tasks.energy.gates import failed, reference_gate, run_gates, unchecked
from gpu_tasks.energy.trace import HEADER, csv_text, read_samples
from gpu_tasks.records import (
    GATES,
    GateResult,
    GpuProcess,
    Reason,
    ReferenceLoad,
    RoundRecord,
    RunRecord,
    TelemetryRecord,
)
from tests.unit.gpu_tasks.energy.nights import simulated_night

A100 = "NVIDIA A100-SXM4-40GB"


@pytest.fixture(scope="module")
def run() -> RunRecord:
    return simulated_night()


def load(joules: float, speed: float = 19.0, error: float = 1e-6) -> ReferenceLoad:
    return ReferenceLoad(4096, 700, 1e14, 5.0, 1000.0, 38.6, 160.0, joules, speed, error, error <= 1e-3)


def gate(run: RunRecord, name: str, rounds: list[RoundRecord] | None = None) -> GateResult:
    (found,) = [g for g in run_gates([], run.rounds if rounds is None else rounds, A100, {}) if g.gate == name]
    return found


def with_energy(record: RoundRecord, **changes: object) -> RoundRecord:
    assert record.energy is not None
    return dataclasses.replace(record, energy=dataclasses.replace(record.energy, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("joules", "speed", "error", "passed"),
    [
        (8.36, 19.0, 1e-6, True),
        (6.0, 15.0, 1e-6, True),
        (11.0, 23.0, 1e-6, True),
        (5.99, 19.0, 1e-6, False),
        (11.1, 19.0, 1e-6, False),
        (4.2, 19.0, 1e-6, False),  # half scale: 80 W above idle, which a threshold of 20 W would have passed
        (0.07, 19.0, 1e-6, False),  # the record's sensor
        (8.36, 14.9, 1e-6, False),
        (8.36, 120.0, 1e-6, False),  # TF32 was on
        (8.36, 19.0, 1e-2, False),
        (-1.0, 19.0, 1e-6, False),
    ],
)
def test_the_reference_load_of_an_a100(joules: float, speed: float, error: float, passed: bool) -> None:
    found = reference_gate(load(joules, speed, error), band_for(A100, {}), A100, "before")
    assert found.passed is passed
    assert (found.value, found.low, found.high, found.where) == (joules, 6.0, 11.0, "before")
    assert (found.reason is None) is passed


def test_an_unknown_model_is_unchecked_until_its_band_is_learnt() -> None:
    h200 = "NVIDIA H200"
    found = reference_gate(load(5.0), band_for(h200, {}), h200, "after")
    assert found.passed is None
    assert found.reason is not None
    assert found.reason.code == "no_reference_band"
    learnt = band_for(h200, {h200: [4.0, 6.0, 40.0, 60.0]})
    assert reference_gate(load(5.0, speed=50.0), learnt, h200, "after").passed is True
    assert reference_gate(load(6.5, speed=50.0), learnt, h200, "after").passed is False
    assert reference_gate(load(5.0, speed=90.0), learnt, h200, "after").passed is False


def test_a_shipped_band_cannot_be_learnt_away() -> None:
    band = band_for(A100, {A100: [0.01, 0.1, 1.0, 99.0]})
    assert reference_gate(load(0.07), band, A100, "before").passed is False


def test_without_telemetry_the_reference_load_is_unchecked(run: RunRecord) -> None:
    found = [g for g in run_gates([], run.rounds, A100, {}) if g.gate == "reference_load"]
    assert [(g.where, g.passed) for g in found] == [("before", None), ("after", None)]
    assert [g.passed for g in run_gates(run.telemetry, run.rounds, A100, {}) if g.gate == "reference_load"] == [
        True,
        True,
        True,
    ]


def test_nothing_passes_for_lack_of_data() -> None:
    found = run_gates([], [], A100, {})
    assert {g.gate for g in found} == set(GATES)
    assert len(unchecked(found)) == len(found)
    assert failed(found) == []


@pytest.mark.parametrize(("difference", "passed"), [(0.03, True), (-0.03, True), (0.031, False), (-0.031, False)])
def test_meters(run: RunRecord, difference: float, passed: bool) -> None:
    first = run.rounds[0]
    assert first.energy is not None
    assert first.energy.meters is not None
    meters = dataclasses.replace(first.energy.meters, relative_difference=difference)
    rounds = [with_energy(first, meters=meters), *run.rounds[1:]]
    assert gate(run, "meters_agree", rounds).passed is passed


def test_one_round_without_a_comparison_is_unchecked(run: RunRecord) -> None:
    assert gate(run, "meters_agree", [with_energy(run.rounds[0], meters=None), *run.rounds[1:]]).passed is None
    assert gate(run, "sampling", [with_energy(run.rounds[0], trace=None), *run.rounds[1:]]).passed is None


@pytest.mark.parametrize(("share", "passed"), [(0.04, True), (-0.04, True), (0.06, False), (-0.06, False)])
def test_sham(run: RunRecord, share: float, passed: bool) -> None:
    first = run.rounds[0]
    assert first.energy is not None
    assert first.energy.sham is not None
    sham = dataclasses.replace(first.energy.sham, adjusted_mj=share * 0.58)
    assert gate(run, "sham_window", [with_energy(first, sham=sham), *run.rounds[2:]]).passed is passed
    assert gate(run, "sham_window", run.rounds[2:]).passed is None


@pytest.mark.parametrize(
    ("values", "passed"),
    [
        ([1.0, 1.0, 1.09], True),
        ([1.0, 1.0, 1.11], False),
        ([0.0, 0.0, 0.0], False),  # nothing to be a share of
        ([-1.0, 0.0, 1.0], False),
        ([1.0, 1.0], None),
    ],
)
def test_spread(run: RunRecord, values: list[float], passed: bool | None) -> None:
    rounds = [dataclasses.replace(r, adjusted_mj=v) for r, v in zip(run.rounds, values, strict=False)]
    assert gate(run, "round_spread", rounds).passed is passed


@pytest.mark.parametrize(("name", "allowed"), [("round_spread", 0.18), ("sham_window", 0.12)])
def test_what_short_windows_read_by_themselves_is_allowed_of_trials(run: RunRecord, name: str, allowed: float) -> None:
    """Standard uncertainties of 3 % of the median; a longer protocol with the same ones is not let off."""

    def rounds(protocol: str, found: float) -> list[RoundRecord]:
        made = []
        for record, value in zip(run.rounds, (1.0, 1.0, 1.0 + found), strict=True):
            assert record.energy is not None
            figure = record.energy.figures[0]
            sigma = dataclasses.replace(figure.uncertainty, combined_mj=0.03)
            figures = [dataclasses.replace(figure, figure=protocol, uncertainty=sigma)]
            sham = record.energy.sham and dataclasses.replace(record.energy.sham, adjusted_mj=found)
            changed = with_energy(record, figures=figures, sham=sham)
            made.append(dataclasses.replace(changed, protocol=protocol, adjusted_mj=value))
        return made

    for found, passed in ((0.99 * allowed, True), (1.01 * allowed, False)):
        judged = gate(run, name, rounds("trial", found))
        assert (judged.passed, judged.high) == (passed, pytest.approx(allowed))
    assert gate(run, name, rounds("audited", 0.99 * allowed)).passed is False


def test_invalid_rounds_do_not_count(run: RunRecord) -> None:
    wild = dataclasses.replace(run.rounds[0], valid=False, adjusted_mj=9.0)
    found = gate(run, "round_spread", [*run.rounds, wild])
    assert found == gate(run, "round_spread")


def test_a_sampler_that_failed(run: RunRecord) -> None:
    first = run.rounds[0]
    assert first.energy is not None
    assert first.energy.trace is not None
    broken = dataclasses.replace(first.energy.trace, error=Reason("sampler_died", "the sampler died"))
    found = gate(run, "sampling", [with_energy(first, trace=broken), *run.rounds[1:]])
    assert (found.passed, found.reason) == (False, Reason("sampler_died", "the sampler died"))
    empty = dataclasses.replace(first.energy.trace, csv=HEADER + "\n")
    assert gate(run, "sampling", [with_energy(first, trace=empty)]).passed is False


def test_another_process(run: RunRecord) -> None:
    first = run.rounds[0]
    assert first.energy is not None
    assert first.energy.state_after.processes is not None
    more = [*first.energy.state_after.processes, GpuProcess(4711, None)]
    state = dataclasses.replace(first.energy.state_after, processes=more)
    assert gate(run, "exclusive", [with_energy(first, state_after=state)]).passed is False
    hidden = dataclasses.replace(state, processes=None)
    found = gate(run, "exclusive", [with_energy(first, state_after=hidden)])
    assert (found.passed, found.reason) == (None, reason_of("exclusive: the processes on the GPU could not be listed"))
    found = gate(run, "exclusive", [])
    assert (found.passed, found.reason) == (None, reason_of("exclusive: no valid round has an energy"))


def reason_of(message: str) -> Reason:
    return Reason("gate_not_made", message)


def test_another_process_beside_the_known_load(run: RunRecord) -> None:
    """It costs energy there too: what a replay costs in units of the load would be too little."""
    before, after = run.telemetry
    assert before.state_after is not None
    assert before.state_after.processes is not None
    assert before.trace is not None

    def exclusive(changed: TelemetryRecord) -> bool | None:
        found = run_gates([changed, after], run.rounds, A100, {})
        return next(g.passed for g in found if g.gate == "exclusive")

    more = [*before.state_after.processes, GpuProcess(4711, None)]
    state = dataclasses.replace(before.state_after, processes=more)
    assert exclusive(before) is True
    assert exclusive(dataclasses.replace(before, state_after=state)) is False
    assert exclusive(dataclasses.replace(before, state_after=dataclasses.replace(state, processes=None))) is None
    samples = read_samples(before.trace)
    assert samples[0].processes == 1
    passing = [dataclasses.replace(samples[0], processes=2), *samples[1:]]
    trace = dataclasses.replace(before.trace, csv=csv_text(passing))
    assert exclusive(dataclasses.replace(before, trace=trace)) is False


def test_an_error_of_the_driver_beside_the_known_load(run: RunRecord) -> None:
    before, after = run.telemetry
    assert before.trace is not None
    broken = dataclasses.replace(before.trace, error=Reason("xid", "Xid 74"))
    found = run_gates([dataclasses.replace(before, trace=broken), after], run.rounds, A100, {})
    assert [(g.gate, g.reason) for g in failed(found)] == [("sampling", Reason("xid", "Xid 74"))]


@pytest.mark.parametrize("protocol", ["audited", "classic"])
def test_a_meter_that_is_wrong_while_the_gpu_idles(protocol: str) -> None:
    """A counter that misses a second of an idle window: while the GPU works both meters agree to the last bit."""
    run = simulated_night(protocol=protocol)
    assert gate(run, "meters_agree", run.rounds).passed is True
    record = run.rounds[0]
    assert record.energy is not None
    assert record.energy.aligned is not None
    aligned = record.energy.aligned
    *edges, last = aligned.idle_before
    lacking = [*(dataclasses.replace(e, energy_mj=e.energy_mj + 38_600) for e in edges), last]
    energy = dataclasses.replace(record.energy, aligned=dataclasses.replace(aligned, idle_before=lacking))
    wrong = with_figures(dataclasses.replace(record, energy=energy))
    assert wrong.energy is not None
    assert record.energy.meters is not None
    assert wrong.energy.meters == record.energy.meters
    found = gate(run, "meters_agree", [wrong, *run.rounds[1:]])
    assert found.passed is False
    assert found.value is not None
    assert found.value < -0.05
    assert (found.low, found.high) == (-0.05, 0.05)
    assert found.reason is not None
    assert "energy above idle by counter and by sampled power" in found.reason.message


def test_wrong_output_fails_though_its_round_is_invalid(run: RunRecord) -> None:
    wrong = dataclasses.replace(run.rounds[0], valid=False, reason=Reason("output_not_verified", "3 of 1000"))
    assert gate(run, "output_verified", [wrong, *run.rounds[1:]]).passed is False


@pytest.mark.parametrize(("low", "passed"), [(8.4, True), (6.8, True), (6.6, False), (0.5, False), (26.0, False)])
def test_the_load_with_pauses_finds_a_sensor_that_is_wrong_near_idle(low: float, passed: bool) -> None:
    found = reference_gate(
        dataclasses.replace(load(8.4), low_duty_joules_per_1e12_operations=low), band_for(A100, {}), A100, "before"
    )
    assert found.passed is passed
    if not passed:
        assert found.reason is not None
        assert "wrong near idle" in found.reason.message


def test_the_load_is_judged_by_its_figures_whatever_its_record_says(run: RunRecord) -> None:
    """A telemetry record with a bad load and no gate, or a passed one, is not believed."""
    bad = [dataclasses.replace(t, reference_load=load(0.07), gates=[]) for t in run.telemetry]
    found = [g for g in run_gates(bad, run.rounds, A100, {}) if g.gate == "reference_load"]
    assert [g.passed for g in found] == [False, False, True]


@pytest.mark.parametrize(("after", "passed"), [(9.0, True), (9.2, True), (9.5, False), (7.4, False)])
def test_loads_before_and_after_agree(run: RunRecord, after: float, passed: bool) -> None:
    loads = [load(8.4), load(after)]
    telemetry = [dataclasses.replace(t, reference_load=x) for t, x in zip(run.telemetry, loads, strict=True)]
    (found,) = [
        g for g in run_gates(telemetry, run.rounds, A100, {}) if g.gate == "reference_load" and g.where == "run"
    ]
    assert found.passed is passed


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("driver", "1.2.3", "driver: "),
        ("power_limit_w", 300.0, "power limit: 400.0, 300.0"),
        ("power_kind", "average", "kind of power: "),
        ("uuid", "GPU-other", "GPU: "),
        ("memory_clock_mhz", 405, "memory clock: "),
    ],
)
def test_rounds_under_other_conditions_are_not_one_run(run: RunRecord, field: str, value: object, words: str) -> None:
    last = run.rounds[-1]
    assert last.energy is not None
    state = dataclasses.replace(last.energy.state_before, **{field: value})  # type: ignore[arg-type]
    found = same_conditions(run.telemetry, [*run.rounds[:-1], with_energy(last, state_before=state)])
    assert found.passed is False
    assert found.reason is not None
    assert words in found.reason.message
    silent = dataclasses.replace(last.energy.state_before, **{field: None})  # type: ignore[arg-type]
    assert same_conditions(run.telemetry, [*run.rounds[:-1], with_energy(last, state_before=silent)]).passed


@pytest.mark.parametrize(
    ("field", "value"),
    [("protocol", "classic"), ("kernel_ptx_sha256", "0" * 64), ("inject", "energy+1%"), ("arm", "other")],
)
def test_rounds_of_another_kind_are_not_one_run(run: RunRecord, field: str, value: str) -> None:
    other = dataclasses.replace(run.rounds[-1], **{field: value})  # type: ignore[arg-type]
    assert same_conditions(run.telemetry, run.rounds).passed
    assert same_conditions(run.telemetry, [*run.rounds[:-1], other]).passed is False


def test_another_counter_is_known_by_its_period(run: RunRecord) -> None:
    other = with_energy(run.rounds[-1], tick_period_s=0.05)
    assert same_conditions(run.telemetry, [*run.rounds[:-1], other]).passed is False
