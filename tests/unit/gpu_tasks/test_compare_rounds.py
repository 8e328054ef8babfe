"""Interleaved rounds of ``compare`` on the simulated board: whose the effects are, and what disturbs them."""

from __future__ import annotations

import pytest

from gpu_tasks.devices.manifest import COMMITTED, load_kernels
from gpu_tasks.energy.blocks import block_figures
from gpu_tasks.records import Outcome
from tests.unit.gpu_tasks.energy.nights import simulated_comparison

FUSED = load_kernels(COMMITTED, "fused")


def test_on_the_simulated_device() -> None:
    record = simulated_comparison("energy+10%,time+2%")
    assert (record.outcome, record.not_measured) == (Outcome.OK, None)
    assert [v.draw for v in (*record.emulated, *record.validations, *record.pinned_validations)] == [0, 0, 0]
    assert [(r.round, r.arm, r.protocol, r.valid, r.inject) for r in record.rounds] == [
        (number, "comparison", "interleaved", True, "energy+10%,time+2%") for number in (0, 1)
    ]
    assert {r.kernel_ptx_sha256 for r in record.rounds} == {FUSED.ptx_sha256}
    assert len(record.blocks) == 8
    assert record.blocks == block_figures(record.rounds)
    for block in record.blocks:
        own, other = block.candidate_mj, block.pinned_mj
        assert own is not None
        assert other is not None
        assert own / other == pytest.approx(1.10, abs=0.02), "the effect is the candidate's, and the candidate's alone"
        assert block.candidate_cuda_ms is not None
        assert block.pinned_cuda_ms is not None
        assert block.candidate_cuda_ms / block.pinned_cuda_ms == pytest.approx(1.02, abs=0.005)
    assert record.energy_trust == "unverified"
    assert record.energy_trust_reason is not None
    assert record.energy_trust_reason.code == "gate_not_made", "nobody has looked at the sensor"


def test_a_board_that_is_lost_while_it_is_measured() -> None:
    record = simulated_comparison("lost_gpu")
    assert record.outcome is Outcome.INFRASTRUCTURE_FAILURE
    assert [v.agreed for v in record.validations] == [1000], "what was found before is kept"
    assert record.rounds[-1].valid is False
    assert record.rounds[-1].outcome is Outcome.INFRASTRUCTURE_FAILURE


def test_throttled_rounds_stay_with_their_reason() -> None:
    record = simulated_comparison("throttle")
    assert [r.valid for r in record.rounds] == [False, False]
    assert [r.reason and r.reason.code for r in record.rounds] == ["violation_time_grew"] * 2
    assert record.outcome is Outcome.INVALID_MEASUREMENT
    assert record.reason == record.rounds[0].reason
    assert [block.valid for block in record.blocks] == [False] * 8


def test_output_that_is_wrong_after_a_round_is_no_disturbed_round() -> None:
    record = simulated_comparison("wrong_output")
    assert record.outcome is Outcome.INVALID_MEASUREMENT
    assert record.reason is not None
    assert record.reason.code == "output_not_verified"
