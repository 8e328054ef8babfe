"""Nights on the simulated device: what is right passes, and everything that is wrong is named."""

from __future__ import annotations

import dataclasses
import statistics
from pathlib import Path

import pytest

from gpu_tasks.energy.gates import failed, unchecked
from gpu_tasks.programs.cli import main
from gpu_tasks.programs.judging import judge
from gpu_tasks.programs.parts import Part, read_parts
from gpu_tasks.records import GATES, Outcome, Reason, RoundRecord, RunRecord, read_record, write_record
from gpu_tasks.sources import ROOT
from tests.unit.gpu_tasks.energy.nights import simulated_night

SHIPPED = ROOT / "gpu_tasks/baselines/qda-simulated-a100-healthy.json.gz"


def medians(run: RunRecord) -> dict[str, float]:
    return {f.figure: f.median_mj for f in run.summary.energy}


def test_a_healthy_night_is_verified_with_all_three_figures() -> None:
    run = simulated_night()
    assert (run.outcome, run.reason, run.energy_trust) == (Outcome.OK, None, "verified")
    assert run.protocol == "audited"
    assert set(medians(run)) == {"classic", "aligned", "audited"}
    assert {gate.gate for gate in run.gates} == set(GATES)
    assert all(gate.passed for gate in run.gates)
    for figure in run.summary.energy:
        assert figure.rounds == 3
        assert figure.sample_sd_mj is not None
        assert figure.detectable_mj is not None
        assert figure.per_reference_load == pytest.approx(0.07, rel=0.1)
    assert medians(run)["aligned"] == pytest.approx(0.586, rel=0.02)
    for record in run.rounds:
        assert record.energy is not None
        assert record.adjusted_mj == next(f.adjusted_mj for f in record.energy.figures if f.figure == "audited")
        assert {f.figure for f in record.energy.figures} == {"classic", "aligned", "audited"}
        assert record.energy.meters is not None
    assert [record.energy.sham is not None for record in run.rounds if record.energy] == [True, True, False]


def test_a_classic_night_has_the_aligned_figure_too() -> None:
    run = simulated_night(protocol="classic")
    assert (run.outcome, run.energy_trust, run.protocol) == (Outcome.OK, "verified", "classic")
    assert set(medians(run)) == {"classic", "aligned"}
    assert [record.repeats for record in run.rounds] == [1_000_000] * 3
    assert run.summary.adjusted_mj_median == medians(run)["classic"]


def test_an_interleaved_night_has_a_control() -> None:
    run = simulated_night(protocol="interleaved", rounds=3)
    assert run.energy_trust == "verified"
    subjects = {f.subject: f.median_mj for f in run.summary.energy}
    assert set(subjects) == {"candidate", "control", "candidate - control", "idle - idle"}
    assert abs(subjects["idle - idle"]) < 0.002
    assert {gate.gate for gate in run.gates if gate.passed} == set(GATES)
    assert subjects["candidate"] == pytest.approx(0.586, rel=0.02)
    assert subjects["control"] == pytest.approx(8.0 * 17.05e-3, rel=0.03)
    assert run.rounds[0].cuda_ms == pytest.approx(0.01705, rel=0.02)
    assert run.rounds[0].measurement_start is None


@pytest.mark.parametrize(
    ("inject", "code", "round_code"),
    [
        ("throttle", "no_valid_round", "violation_time_grew"),
        ("clock_drop", "no_valid_round", "clock_drop"),
        ("other_process", "no_valid_round", "new_process"),
        ("stuck_counter", "no_valid_round", "counter_not_advancing"),
        ("counter_backwards", "no_valid_round", "counter_backwards"),
        ("counter_slips", "no_valid_round", "counter_backwards"),
        ("passing_process", "no_valid_round", "new_process"),
        ("slow_start", "no_valid_round", "clock_drop"),
        ("power_brake", "no_valid_round", "throttled"),
        ("xid", "no_valid_round", "xid"),
        ("slow_tail=1.5", "no_valid_round", "power_not_settled"),
    ],
)
def test_no_valid_round_is_an_invalid_measurement(inject: str, code: str, round_code: str) -> None:
    run = simulated_night(inject)
    assert run.outcome is Outcome.INVALID_MEASUREMENT
    assert run.reason is not None
    assert run.reason.code == code
    assert f"0 of 3 rounds are valid (3 {round_code})" in run.reason.message
    assert run.energy_trust != "verified"
    assert (run.summary.rounds_valid, run.summary.adjusted_mj_median) == (0, None)
    for record in run.rounds:
        assert not record.valid
        assert record.reason is not None


@pytest.mark.parametrize(
    ("inject", "gates"),
    [
        ("faulty_sensor", {"reference_load"}),
        ("sensor*0.5", {"reference_load"}),
        ("sensor_floor=50", {"reference_load"}),
        ("meters_disagree", {"meters_agree"}),
        ("sampler_gap", {"sampling"}),
        ("wrong_output", {"output_verified"}),
    ],
)
def test_a_failed_gate_is_named(inject: str, gates: set[str]) -> None:
    run = simulated_night(inject)
    assert run.outcome is Outcome.INVALID_MEASUREMENT
    assert run.energy_trust == "failed"
    assert {gate.gate for gate in failed(run.gates)} >= gates
    assert run.reason is not None
    assert all(gate in run.reason.message or "predictions disagree" in run.reason.message for gate in gates)
    for gate in failed(run.gates):
        assert gate.reason is not None


def test_rounds_of_a_sensor_at_half_scale_agree_and_only_the_known_load_tells() -> None:
    run = simulated_night("sensor*0.5", rounds=7)
    values = [record.adjusted_mj for record in run.rounds if record.adjusted_mj is not None]
    assert len(values) == 7
    assert all(record.valid for record in run.rounds)
    assert (max(values) - min(values)) / statistics.median(values) < 0.1
    assert {gate.gate for gate in failed(run.gates)} == {"reference_load"}
    assert medians(run)["aligned"] == pytest.approx(0.293, rel=0.03)


def test_the_records_sensor_repeats_itself() -> None:
    """The figure that was published, by rounds that agree; the reference load costs a hundredth of what it must."""
    run = simulated_night("faulty_sensor", rounds=7)
    aligned = [f.adjusted_mj for r in run.rounds if r.energy for f in r.energy.figures if f.figure == "aligned"]
    assert statistics.median(aligned) == pytest.approx(0.0104, rel=0.1)
    assert (max(aligned) - min(aligned)) / statistics.median(aligned) < 0.1
    assert all(record.valid for record in run.rounds)
    load = run.telemetry[0].reference_load
    assert load is not None
    assert load.joules_per_1e12_operations == pytest.approx(0.074, abs=0.03)
    assert load.result_verified


def test_a_lost_gpu_says_nothing_about_the_kernel() -> None:
    run = simulated_night("lost_gpu")
    assert run.outcome is Outcome.INFRASTRUCTURE_FAILURE


def test_a_counter_that_is_not_ready_is_asked_again() -> None:
    run = simulated_night("not_ready")
    assert (run.outcome, run.energy_trust) == (Outcome.OK, "verified")
    assert [reason.code for record in run.rounds for reason in record.earlier_attempts] == ["nvml_not_ready"] * 3


def test_no_counter_is_unavailable_and_not_nothing() -> None:
    run = simulated_night("no_counter")
    assert (run.outcome, run.energy_trust, run.protocol) == (Outcome.OK, "unavailable", "classic")
    assert run.gates == []
    for record in run.rounds:
        assert (record.adjusted_mj, record.gross_mj, record.energy) == (None, None, None)
        assert record.energy_reason is not None
        assert record.wall_ms is not None


def test_effects_are_seen_where_they_are() -> None:
    plain, dear, slow = simulated_night(), simulated_night("energy+10%"), simulated_night("time+3%")
    assert medians(dear)["aligned"] / medians(plain)["aligned"] == pytest.approx(1.10, abs=0.003)
    assert plain.summary.cuda_ms_median is not None
    assert slow.summary.cuda_ms_median == pytest.approx(1.03 * plain.summary.cuda_ms_median, rel=1e-3)
    assert medians(slow)["aligned"] == pytest.approx(medians(plain)["aligned"], rel=3e-3)


def test_the_same_seed_is_the_same_night() -> None:
    one, other = simulated_night(seed=5), simulated_night.__wrapped__(seed=5)
    assert one.summary == other.summary
    assert one.summary != simulated_night(seed=6).summary


def test_the_shipped_baseline_is_what_its_command_makes() -> None:
    """Its figures, not its times of day."""
    shipped = read_record(SHIPPED, RunRecord)
    assert shipped.request.seed is not None
    again = simulated_night(seed=shipped.request.seed, rounds=shipped.request.rounds)
    assert shipped.energy_trust == "verified"
    assert again.summary.energy == shipped.summary.energy
    assert [figures(r) for r in again.rounds] == [figures(r) for r in shipped.rounds]
    assert again.gates == shipped.gates
    assert shipped.summary.agreed == shipped.summary.total == 11000


def figures(record: RoundRecord) -> object:
    return record.energy and (record.energy.figures, record.energy.meters, record.cuda_ms)


def test_few_rounds_are_not_enough_for_a_spread() -> None:
    run = simulated_night(rounds=2)
    assert (run.outcome, run.energy_trust) == (Outcome.OK, "unverified")
    assert [gate.gate for gate in unchecked(run.gates)] == ["round_spread"]
    assert run.energy_trust_reason is not None
    assert "3 are needed" in run.energy_trust_reason.message


def test_finished_rounds_are_kept_when_the_gpu_is_lost(tmp_path: Path) -> None:
    """Lost in the third round: the two before it are in the record, and the run says what happened."""
    before = simulated_night()
    write_record(dataclasses.replace(before.request, rounds=3), tmp_path / "request.json")
    assert before.provision is not None
    parts = {"provision": before.provision, "verify-sources": before.verify_sources}
    parts |= {"verify-payload": before.verify_payload, "validation-00": before.validations[0]}
    parts |= {f"round-{r.round:02d}": r for r in before.rounds[:2]}
    for name, part in parts.items():
        write_record(part, tmp_path / f"{name}.json")
    lost = ["measure", "--device", "simulated", "--inject", "lost_gpu", "--round", "2"]
    assert main([*lost, "--out", str(tmp_path / "round-02.json")]) == 5
    options = ["--request", str(tmp_path / "request.json"), "--folder", str(tmp_path)]
    assert main(["summarise", *options, "--out", str(tmp_path / "run.json")]) == 5
    run = read_record(tmp_path / "run.json", RunRecord)
    assert [record.valid for record in run.rounds] == [True, True, False]
    assert [r.adjusted_mj for r in run.rounds[:2]] == [r.adjusted_mj for r in before.rounds[:2]]
    assert run.reason is not None
    assert run.reason.message.startswith("round-02: ")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (["--protocol", "classic"], "protocol"),
        (["--arm", "other"], "arm"),
        (["--variant", "record"], "kernel_ptx_sha256"),
        (["--inject", "energy+10%"], "inject"),
    ],
)
def test_a_round_that_was_not_asked_for_is_no_part_of_the_run(tmp_path: Path, options: list[str], field: str) -> None:
    run = simulated_night()
    write_record(run.request, tmp_path / "request.json")
    assert run.provision is not None
    write_record(run.provision, tmp_path / "provision.json")
    out = str(tmp_path / "round-01.json")
    assert main(["measure", "--device", "simulated", "--round", "1", *options, "--out", out]) == 0
    (part,) = [p for p in read_parts(run.request, tmp_path) if p.name == "round-01"]
    assert part.reason is not None
    assert part.reason.code == "wrong_part"
    assert f"$.{field}: expected" in part.reason.message


def test_most_rounds_must_be_valid() -> None:
    run = simulated_night(rounds=7)
    reason = Reason("throttled", "throttled")
    for invalid, fine in ((3, True), (4, False)):
        spoiled = [
            dataclasses.replace(r, valid=False, outcome=Outcome.INVALID_MEASUREMENT, reason=reason)
            if r.round < invalid
            else r
            for r in run.rounds
        ]
        parts = [Part(f"round-{r.round:02d}", 3, r, r.outcome, r.reason) for r in spoiled]
        outcome, found = judge(parts, 7, [])
        assert (outcome is Outcome.OK) is fine
        assert (found is None) is fine
        if found is not None:
            assert found.code == "too_few_valid_rounds"
