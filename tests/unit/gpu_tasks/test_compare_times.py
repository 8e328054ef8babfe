"""A comparison on a board without an energy counter: the time has its blocks, and its verdict; the energy has none."""

from __future__ import annotations

import dataclasses

import pytest

from gpu_tasks.comparison.recheck import recomputed_comparison
from gpu_tasks.energy.blocks import block_figures
from gpu_tasks.energy.recheck import Difference
from gpu_tasks.energy.trust import comparison_trust
from gpu_tasks.records import ComparisonRecord, Outcome, TimedTurn
from tests.unit.gpu_tasks.energy.nights import simulated_comparison, simulated_night

NO_COUNTER = "no_counter,energy+10%,time+2%"


def differences(record: ComparisonRecord) -> list[Difference]:
    found = recomputed_comparison(record, record.validations, "$")
    return [one for one in found if one[1] != one[2]]


def test_the_two_take_turns_for_their_times() -> None:
    record = simulated_comparison(NO_COUNTER)
    assert (record.outcome, record.not_measured) == (Outcome.OK, None)
    assert [(r.round, r.arm, r.protocol, r.valid) for r in record.rounds] == [
        (number, "comparison", "interleaved", True) for number in (0, 1)
    ]
    assert {(r.energy, r.adjusted_mj, r.energy_reason and r.energy_reason.code) for r in record.rounds} == {
        (None, None, "no_energy_counter")
    }
    assert [(b.round, b.block) for b in record.blocks] == [(round_, block) for round_ in (0, 1) for block in range(4)]
    for block in record.blocks:
        assert (block.candidate_mj, block.pinned_mj, block.control_mj, block.valid) == (None, None, None, True)
        for own, other in (
            (block.candidate_cuda_ms, block.pinned_cuda_ms),
            (block.candidate_wall_ms, block.pinned_wall_ms),
        ):
            assert own is not None
            assert other is not None
            assert own / other == pytest.approx(1.02, abs=0.005), "the effect is the candidate's alone"
    assert (record.energy_trust, record.energy_trust_reason) == ("unavailable", record.rounds[0].energy_reason)


def test_blocks_are_mirrored_and_begin_with_either_in_turn() -> None:
    record = simulated_comparison(NO_COUNTER)
    own, other = "candidate", "baseline"
    orders = [[t.arm for t in record.turns if (t.round, t.block) == (b.round, b.block)] for b in record.blocks]
    assert orders == [[own, other, other, own], [other, own, own, other]] * 4
    assert min(turn.active_s for turn in record.turns) > 1.8


def test_figures_follow_from_the_turns() -> None:
    record = simulated_comparison(NO_COUNTER)
    assert record.blocks == block_figures(record.rounds, record.turns)
    assert differences(record) == []
    first = dataclasses.replace(record.turns[0], device_ms=1.0)
    changed = {field for field, _, _ in differences(dataclasses.replace(record, turns=[first, *record.turns[1:]]))}
    assert changed == {"$.blocks", "$.rounds[0].cuda_ms"}
    stray = TimedTurn(7, 0, "candidate", 10, 0.1, 0.01)
    assert ("$.turns[32].round", True, False) in differences(dataclasses.replace(record, turns=[*record.turns, stray]))


def test_turns_beside_a_counter_contradict_it() -> None:
    record = simulated_comparison("energy+10%,time+2%")
    assert (record.turns, differences(record)) == ([], [])
    turns = [TimedTurn(0, 0, "candidate", 10, 0.1, 0.01)]
    assert "$.rounds[0].energy" in {field for field, _, _ in differences(dataclasses.replace(record, turns=turns))}


def test_the_trust_is_the_same_when_it_is_asked_again() -> None:
    record, before = simulated_comparison(NO_COUNTER), simulated_night()
    assert before.provision
    found = comparison_trust(before.provision.device, before.telemetry, record.rounds, {}, record.not_measured)
    assert found == (record.energy_trust, record.energy_trust_reason)


def test_a_board_that_is_lost_while_it_is_timed() -> None:
    record = simulated_comparison("no_counter,lost_gpu")
    assert record.outcome is Outcome.INFRASTRUCTURE_FAILURE
    assert [v.agreed for v in record.validations] == [1000], "what was found before is kept"
    assert (record.rounds[-1].valid, record.rounds[-1].outcome) == (False, Outcome.INFRASTRUCTURE_FAILURE)


def test_output_that_is_wrong_after_the_turns() -> None:
    record = simulated_comparison("no_counter,wrong_output")
    assert record.outcome is Outcome.INVALID_MEASUREMENT
    assert (record.reason and record.reason.code) == "output_not_verified"
    assert not any(block.valid for block in record.blocks)
