"""Figures of blocks: what their mean is, what drifts cancel in, and what is null where."""

from __future__ import annotations

import dataclasses
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_tasks.energy.blocks import block_figures
from gpu_tasks.energy.derive import with_figures
from gpu_tasks.records import CounterEdge, RoundRecord, Segment
from tests.unit.gpu_tasks.energy.nights import simulated_comparison


def edge(energy_mj: int, time_s: float) -> CounterEdge:
    return CounterEdge(energy_mj, time_s - 1e-4, time_s + 1e-4)


def a_round(
    order: list[str], *, idle_w: float, slope: float, watts: dict[str, float], device: bool = True
) -> RoundRecord:
    """One block of segments of 4 s: work for 2 s at ``watts`` above idle power, which rises by ``slope`` W/s."""
    segments, energy, now = [], 0.0, 0.0
    for arm in order:
        start = edge(round(energy), now)
        energy += 4000 * (idle_w + slope * (now + 2)) + 2000 * watts.get(arm, 0.0)
        now += 4.0
        repeats = 0 if arm == "idle" else 1000
        segments.append(
            Segment(0, arm, repeats, start, edge(round(energy), now), 2.0 if repeats else 0.0, 2.0 if device else None)
        )
    record = simulated_comparison().rounds[0]
    assert record.energy is not None
    return dataclasses.replace(record, energy=dataclasses.replace(record.energy, segments=segments))


ORDER = ["idle", "control", "candidate", "baseline", "baseline", "candidate", "control", "idle"]


@settings(max_examples=50, deadline=None)
@given(st.floats(5, 60), st.floats(-0.05, 0.05), st.floats(1, 200), st.floats(1, 200))
def test_energy_above_the_idle_power_of_the_block(idle_w: float, slope: float, own: float, other: float) -> None:
    """A steady drift cancels: each arm lies as far before the middle of the block as behind it."""
    watts = {"candidate": own, "baseline": other, "control": 1.0}
    (block,) = block_figures([a_round(ORDER, idle_w=idle_w, slope=slope, watts=watts)])
    assert block.candidate_mj == pytest.approx(2 * own, abs=3e-3)  # W for 2 s over 1000 replays; whole mJ are counted
    assert block.pinned_mj == pytest.approx(2 * other, abs=3e-3)
    assert block.control_mj == pytest.approx(2.0, abs=3e-3)
    assert (block.candidate_cuda_ms, block.candidate_wall_ms) == (2.0, 2.0)


def test_the_mean_of_the_blocks_is_the_figure_of_the_round() -> None:
    for record in simulated_comparison().rounds:
        blocks = block_figures([record])
        assert record.energy is not None
        figures = {figure.subject: figure.adjusted_mj for figure in with_figures(record).energy.figures}  # type: ignore[union-attr]
        for subject, name in (("candidate", "candidate_mj"), ("baseline", "pinned_mj"), ("control", "control_mj")):
            assert statistics.mean(getattr(block, name) for block in blocks) == pytest.approx(figures[subject])
        assert statistics.mean(block.candidate_cuda_ms or 0.0 for block in blocks) == pytest.approx(
            record.cuda_ms, rel=1e-4
        )


def test_times_are_weighted_by_replays() -> None:
    record = a_round(ORDER, idle_w=50, slope=0, watts={})
    assert record.energy is not None
    segments = list(record.energy.segments)
    segments[2] = dataclasses.replace(segments[2], repeats=3000, active_s=3.0, device_ms=1.0)
    record = dataclasses.replace(record, energy=dataclasses.replace(record.energy, segments=segments))
    (block,) = block_figures([record])
    assert block.candidate_cuda_ms == (3000 * 1.0 + 1000 * 2.0) / 4000
    assert block.candidate_wall_ms == 1000 * (3.0 + 2.0) / 4000
    assert (block.pinned_cuda_ms, block.pinned_wall_ms) == (2.0, 2.0)


def test_what_was_not_measured_is_null() -> None:
    without = [arm for arm in ORDER if arm != "baseline"]
    (block,) = block_figures([a_round(without, idle_w=50, slope=0, watts={}, device=False)])
    assert (block.pinned_mj, block.pinned_cuda_ms, block.pinned_wall_ms) == (None, None, None)
    assert (block.candidate_cuda_ms, block.candidate_wall_ms) == (None, 2.0)
    (block,) = block_figures([a_round(["candidate", "baseline"], idle_w=50, slope=0, watts={})])
    assert (block.candidate_mj, block.pinned_mj, block.control_mj) == (None, None, None)


def test_an_invalid_round_has_its_blocks_and_one_that_was_not_made_has_none() -> None:
    first, second = simulated_comparison().rounds
    first = dataclasses.replace(first, valid=False)
    assert [(b.round, b.block, b.valid) for b in block_figures([first, second])] == [
        *((0, block, False) for block in range(4)),
        *((1, block, True) for block in range(4)),
    ]
    assert block_figures([dataclasses.replace(first, energy=None)]) == []
