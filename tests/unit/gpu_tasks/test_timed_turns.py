"""Turns of two kernels on a board whose clocks have yet to rise: both take as long as a turn is meant to take."""

from __future__ import annotations

from argparse import Namespace
from types import SimpleNamespace

import numpy as np
import pytest

from gpu_tasks.devices.base import ReplayTiming
from gpu_tasks.energy.simulation.clock import VirtualClock
from gpu_tasks.energy.windows import CHUNK_S, chunks, warmed_up
from gpu_tasks.programs.timed_turns import TURN_S, WARM_UP_S, measure_turns
from gpu_tasks.records import Reason

NO_COUNTER = Reason("no_energy_counter", "none")
QUERIES = 10


class Board:
    """The one GPU of both kernels: slow by a factor until it has worked for some seconds."""

    def __init__(self, cold_s: float, factor: float) -> None:
        self.clock = VirtualClock()
        self.worked_s, self.cold_s, self.factor = 0.0, cold_s, factor

    def work(self, seconds: float) -> None:
        """What takes ``seconds`` once it is warm."""
        left = max(0.0, self.cold_s - self.worked_s)
        lasted = min(left, seconds * self.factor)
        lasted += seconds - lasted / self.factor
        self.worked_s += lasted
        self.clock.sleep(lasted)


class Kernel:
    """As much of a device as turns need; ``loops`` are the seconds that each loop of replays took."""

    def __init__(self, board: Board, replay_s: float) -> None:
        self.board, self.clock, self.replay_s = board, board.clock, replay_s
        self.loops: list[float] = []

    def replay(self, repeats: int = 1) -> ReplayTiming:
        began = self.clock.now()
        self.board.work(repeats * self.replay_s)
        self.loops.append(self.clock.now() - began)
        return ReplayTiming(1000 * self.loops[-1] / repeats, None)

    def load(self, *_: object) -> None: ...

    def capture(self) -> None: ...

    def poison_scratch(self) -> None: ...

    def predictions(self) -> np.ndarray:
        return np.zeros(QUERIES, dtype=np.int32)

    def fingerprint(self) -> SimpleNamespace:
        return SimpleNamespace(uuid="GPU-1")

    def kernel(self) -> SimpleNamespace:
        return SimpleNamespace(ptx_sha256="ab" * 32)


def turns_on(board: Board, candidate_s: float, pinned_s: float) -> dict[str, list[float]]:
    arguments = Namespace(blocks=4, workload="qda", payload="original", inject=None)
    nothing = np.zeros(QUERIES, dtype=np.int32)
    draw = SimpleNamespace(x=nothing, labels=nothing, q=nothing, frozen_predictions=nothing)
    pair = Kernel(board, candidate_s), Kernel(board, pinned_s)
    rounds, turns = measure_turns(arguments, *pair, draw, NO_COUNTER)  # type: ignore[arg-type]
    assert [measured.valid for measured in rounds] == [True]
    return {arm: [turn.active_s for turn in turns if turn.arm == arm] for arm in ("candidate", "baseline")}


@pytest.mark.parametrize(("cold_s", "factor"), [(0.0, 1.0), (0.3, 5.0), (3.0, 5.0), (0.3, 1e4)])
def test_turns_are_as_long_for_both_however_cold_the_board_was(cold_s: float, factor: float) -> None:
    found = turns_on(Board(cold_s, factor), 17e-6, 16e-6)
    assert [len(lengths) for lengths in found.values()] == [8, 8]
    for lengths in found.values():
        assert lengths == pytest.approx([TURN_S] * 8, rel=0.01)


def test_a_kernel_works_for_the_whole_warm_up_by_the_clock() -> None:
    board = Board(0.3, 5.0)
    kernel = Kernel(board, 16e-6)
    assert warmed_up(kernel, WARM_UP_S) == pytest.approx(16e-6)  # type: ignore[arg-type]
    assert WARM_UP_S <= sum(kernel.loops) < WARM_UP_S + 2 * CHUNK_S


def test_chunks_that_turn_out_short_are_made_longer() -> None:
    board = Board(0.0, 1.0)
    kernel = Kernel(board, 16e-6)
    work = chunks(kernel.replay, 0.1, board.clock)  # what one took while the board was cold
    assert [next(work) for _ in range(20)] == pytest.approx([16e-6] * 20)
    assert kernel.loops[0] < 1e-3
    assert CHUNK_S / 2 <= kernel.loops[-1] <= CHUNK_S
