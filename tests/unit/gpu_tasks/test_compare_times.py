"""A comparison on a board without an energy counter: the time has its blocks, and its verdict; the energy has none."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_tasks.comparison.recheck import recomputed_comparison
from gpu_tasks.energy.blocks import block_figures
from gpu_tasks.energy.recheck import Difference
from gpu_tasks.energy.trust import comparison_trust
from gpu_tasks.programs import timed_turns
from gpu_tasks.programs.cli import main
from gpu_tasks.records import BadInput, ComparisonRecord, InvalidMeasurement, Outcome, TimedTurn, write_record
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


def with_first_turn(**changes: object) -> ComparisonRecord:
    record = simulated_comparison(NO_COUNTER)
    first = dataclasses.replace(record.turns[0], **changes)  # type: ignore[arg-type]
    return dataclasses.replace(record, turns=[first, *record.turns[1:]])


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("round", -1, "0 or more, found -1"),
        ("block", -1, "0 or more, found -1"),
        ("arm", "control", "one of candidate, baseline, found 'control'"),
        ("repeats", 0, "1 to 1000000000, found 0"),
        ("repeats", -5, "1 to 1000000000, found -5"),
        pytest.param("repeats", 10**400, rf"1 to 1000000000, found 1{'0' * 76}\.\.\.$", id="too many repeats"),
        ("active_s", 0.0, r"more than 0, found 0\.0"),
        ("active_s", -1.0, r"more than 0, found -1\.0"),
        ("device_ms", 0.0, r"more than 0, or null, found 0\.0"),
    ],
)
def test_a_turn_that_nobody_can_have_taken_is_named(field: str, value: object, expected: str) -> None:
    with pytest.raises(BadInput, match=rf"^\$\.turns\[0\]\.{field}: expected {expected}") as caught:
        differences(with_first_turn(**{field: value}))
    assert caught.value.code == "bad_readings"


@given(
    field=st.sampled_from(["round", "block", "arm", "repeats", "active_s", "device_ms"]),
    number=st.one_of(st.integers(), st.sampled_from([0, -1, 10**400, 10**9, 2**63])),
    real=st.floats(allow_nan=False, allow_infinity=False),
)
def test_whatever_a_turn_says_is_a_refusal_or_a_difference(field: str, number: int, real: float) -> None:
    value = {"active_s": real, "device_ms": real, "arm": "pinned"}.get(field, number)
    before = getattr(simulated_comparison(NO_COUNTER).turns[0], field)
    try:
        found = differences(with_first_turn(**{field: value}))
    except BadInput as error:
        assert error.message.startswith(f"$.turns[0].{field}: expected ")
    else:
        assert found or value == before


def test_a_damaged_turn_is_no_failure_of_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    night, record = simulated_night(NO_COUNTER), with_first_turn(repeats=0)
    whole = dataclasses.replace(night, comparison=dataclasses.replace(record, validations=[]))
    write_record(whole, tmp_path / "run.json")
    assert main(["check", str(tmp_path / "run.json")]) == Outcome.BAD_INPUT.exit_code
    assert "comparison.turns[0].repeats: expected 1 to 1000000000, found 0" in capsys.readouterr().err


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


def test_where_no_round_could_be_made_it_is_said_all_the_same_that_there_is_no_counter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        raise InvalidMeasurement("slow_reading", "nobody knows when it was")

    monkeypatch.setattr(timed_turns, "_turns", broken)
    record = simulated_comparison.__wrapped__(NO_COUNTER)  # the others keep theirs
    assert (record.outcome, record.reason and record.reason.code) == (Outcome.INVALID_MEASUREMENT, "slow_reading")
    assert ([r.valid for r in record.rounds], record.blocks, record.turns) == ([False, False], [], [])
    assert record.energy_trust == "unavailable"
    assert (record.energy_trust_reason and record.energy_trust_reason.code) == "no_energy_counter"


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
