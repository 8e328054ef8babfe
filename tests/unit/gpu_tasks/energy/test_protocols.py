"""The order of things in a round, on boards where the truth is known."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_tasks.energy import protocols
from gpu_tasks.energy.counter import tick_period_s
from gpu_tasks.energy.figures import trial_repeats
from gpu_tasks.energy.interleaved import BASELINE, CANDIDATE, CONTROL, IDLE, SHAM, interleaved_figures
from gpu_tasks.energy.protocols import AUDITED, CLASSIC, TRIAL_PLAN, Plan, blocks_of, follow, interleave, warm_up
from gpu_tasks.energy.uncertainty import Surroundings, edge_time_s
from gpu_tasks.energy.window_figures import window_figures
from gpu_tasks.records import EnergyFigure
from tests.unit.gpu_tasks.energy.boards import Board


def measured(
    board: Board, plan: Plan, seed: int = 1, settled: bool = False
) -> tuple[protocols.Windows, dict[str, EnergyFigure]]:
    repeats = math.ceil(plan.active_s / board.gpu.replay_s)
    tick = tick_period_s(board.instruments.gpu, board.instruments.clock)
    windows = follow(
        plan,
        board.replay,
        repeats,
        tick_period_s=tick,
        instruments=board.instruments,
        rng=random.Random(seed),
        say=board.say,
    )
    figures = window_figures(
        repeats,
        windows.start,
        windows.end,
        windows.idle_before,
        windows.idle_after,
        aligned=windows.aligned,
        audited=windows.audited,
        around=Surroundings(tick, None),
        settled=settled,
    )
    return windows, {figure.figure: figure for figure in figures}


def length(window: object) -> float:
    return window.end.time_s - window.start.time_s  # type: ignore[attr-defined]


@pytest.mark.parametrize("plan", [CLASSIC, AUDITED], ids=lambda plan: plan.name)
def test_windows_are_as_long_as_the_protocol_says(plan: Plan) -> None:
    windows, _ = measured(Board(), plan)
    assert length(windows.idle_before) == pytest.approx(5.0, abs=0.35)
    assert length(windows.idle_after) == pytest.approx(5.0, abs=0.35)
    assert windows.idle_after.start.time_s - windows.end.time_s < 0.01
    assert windows.end.time_s - windows.start.time_s == pytest.approx(plan.active_s, rel=0.02)
    if plan is AUDITED:
        assert windows.audited is not None
        assert length(windows.audited.idle_before) == pytest.approx(10.0, abs=0.35)
        assert length(windows.audited.idle_after) == pytest.approx(10.0, abs=0.35)
        assert windows.audited.idle_after.start.time_s - windows.end.time_s == pytest.approx(3.0, abs=0.25)
    else:
        assert windows.audited is None


@pytest.mark.parametrize("plan", [CLASSIC, AUDITED], ids=lambda plan: plan.name)
def test_steps_come_in_order_and_around_the_work(plan: Plan) -> None:
    windows, _ = measured(Board(), plan)
    found = windows.aligned
    before, after = [edge_time_s(e) for e in found.idle_before], [edge_time_s(e) for e in found.idle_after]
    assert before == sorted(before)
    assert after == sorted(after)
    assert before[-1] == edge_time_s(found.active_start) < windows.start.time_s
    assert windows.end.time_s < edge_time_s(found.tail_start) < edge_time_s(found.active_end) == after[0]
    assert len(before) >= 4
    assert len(after) >= 3


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("plan", [CLASSIC, AUDITED], ids=lambda plan: plan.name)
def test_every_figure_has_the_truth_near_its_interval(plan: Plan, seed: int) -> None:
    board = Board(seed=seed)
    _, figures = measured(board, plan)
    assert set(figures) == {"classic", "aligned", *([] if plan is CLASSIC else ["audited"])}
    for figure in figures.values():
        sigma = figure.uncertainty
        middle = (sigma.low_mj + sigma.high_mj) / 2
        assert abs(middle - board.gpu.replay_mj) < 5 * sigma.combined_mj
    assert figures["aligned"].uncertainty.combined_mj < figures["classic"].uncertainty.combined_mj / 10


@pytest.mark.parametrize("seed", range(4))
def test_a_trial_has_the_windows_of_the_learners_records(seed: int) -> None:
    """Settled idle windows of 3 s around 5 s of tasks, and its figure misses the tail that it says."""
    board = Board(seed=seed, workload="learner")
    repeats = TRIAL_PLAN.repeats(board.gpu.replay_s)
    assert repeats == trial_repeats(1000 * board.gpu.replay_s) == math.ceil(5 / board.gpu.replay_s)
    windows, figures = measured(board, TRIAL_PLAN, settled=True)
    assert windows.audited is None
    for idle in (windows.idle_before, windows.idle_after):
        assert length(idle) == pytest.approx(3.0, abs=0.3)
    assert windows.idle_after.start.time_s - windows.end.time_s == pytest.approx(3.0, abs=0.25)
    assert set(figures) == {"trial", "aligned"}
    for figure in figures.values():
        sigma = figure.uncertainty
        middle = (sigma.low_mj + sigma.high_mj) / 2
        assert abs(middle - board.gpu.replay_mj) < 5 * sigma.combined_mj
    assert figures["trial"].uncertainty.bias_mj == pytest.approx(-65, abs=8)
    assert figures["trial"].uncertainty.combined_mj == pytest.approx(33, abs=4)
    assert figures["aligned"].uncertainty.combined_mj < 3


@pytest.mark.parametrize(
    ("calibration_ms", "repeats"), [(46.3092155456543, 108), (48.26192092895508, 104), (5000, 1), (1, 1000)]
)
def test_the_repeats_of_a_trial(calibration_ms: float, repeats: int) -> None:
    """The first two are the records'."""
    assert trial_repeats(calibration_ms) == repeats


def test_a_steady_drift_cancels_in_the_aligned_figure() -> None:
    """Windows of unequal length on both sides; a plain mean of their powers would be off by 0.0002 mJ."""
    errors = []
    for seed in range(20):
        board = Board(seed=seed, drift="linear")
        _, figures = measured(board, CLASSIC)
        plain = Board(seed=seed)
        _, still = measured(plain, CLASSIC)
        errors.append(figures["aligned"].adjusted_mj - still["aligned"].adjusted_mj)
    assert max(map(abs, errors)) < 6e-5


def test_plain_readings_are_not_taken_at_steps() -> None:
    """Else the classic figure would be better than it ever was, and its history could not be compared."""
    phases = []
    for seed in range(30):
        board = Board(seed=seed)
        windows, _ = measured(board, CLASSIC, seed)
        step = edge_time_s(windows.aligned.active_start)
        phases.append(windows.start.time_s - step)
    assert min(phases) >= 0
    assert max(phases) > 0.08
    assert sum(phases) / len(phases) == pytest.approx(0.055, abs=0.02)


def test_a_sham_window_reads_as_nothing() -> None:
    board = Board()
    windows, _ = measured(board, AUDITED)
    assert windows.audited is not None
    before, start, end, after = protocols.sham_window(AUDITED, windows.audited.idle_after, board.instruments, board.say)
    seconds = end.time_s - start.time_s
    assert before is windows.audited.idle_after
    idle_w = (before.power_w + after.power_w) / 2
    above_j = (end.energy_mj - start.energy_mj) / 1000 - idle_w * seconds
    assert seconds == pytest.approx(20.0, abs=0.1)
    assert abs(above_j) < 20.0  # of the 700 J that the work takes above idle


def test_warm_up_lasts_until_the_temperature_stands() -> None:
    board = Board()
    clock = board.instruments.clock
    began = clock.now()
    replay_s = warm_up(board.replay, 20e-6, board.instruments)
    assert replay_s == pytest.approx(board.gpu.replay_s, rel=0.01)
    assert protocols.WARM_UP_S <= clock.now() - began <= protocols.LONGEST_WARM_UP_S + 1


@given(st.integers(1, 30), st.integers(0, 2**31), st.booleans())
def test_blocks_are_mirrored_and_set_candidate_beside_baseline(blocks: int, seed: int, control: bool) -> None:
    arms = [IDLE, CANDIDATE, BASELINE, *([CONTROL] if control else [])]
    for order in blocks_of(arms, blocks, random.Random(seed)):
        assert order == order[::-1]
        assert sorted(order) == sorted(arms * 2)
        half = order[: len(arms)]
        assert set(half[-2:]) == {CANDIDATE, BASELINE}


def test_both_orders_occur() -> None:
    orders = {tuple(order) for order in blocks_of([IDLE, CANDIDATE, BASELINE], 40, random.Random(3))}
    assert len(orders) == 2


def test_arms_that_are_the_same_differ_by_nothing() -> None:
    board = Board()
    arms = dict.fromkeys((CANDIDATE, BASELINE), (board.replay, board.gpu.replay_s))
    segments = interleave(arms, 4, board.instruments, random.Random(1), board.say)
    assert [s.start for s in segments[1:]] == [s.end for s in segments[:-1]]
    figures = {f.subject: f for f in interleaved_figures(segments, Surroundings(0.1, None))}
    assert set(figures) == {CANDIDATE, BASELINE, f"{CANDIDATE} - {BASELINE}", SHAM}
    difference = figures[f"{CANDIDATE} - {BASELINE}"]
    assert difference.adjusted_mj == pytest.approx(
        figures[CANDIDATE].adjusted_mj - figures[BASELINE].adjusted_mj, abs=1e-12
    )
    assert abs(difference.adjusted_mj) < 5 * difference.uncertainty.combined_mj
    assert figures[CANDIDATE].adjusted_mj == pytest.approx(board.gpu.replay_mj, rel=0.005)
