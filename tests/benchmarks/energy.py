"""How right the energy figures are, where the truth is known: rounds on simulated boards, ``python -m`` this module.

For each update period of the counter and each way in which idle power drifts, so many boards are made, one round of
each protocol is measured on each, and its figures are compared with what the board was told to use: bias, standard
deviation, how often the stated 95 % interval holds the truth, and the smallest difference that 7 rounds find. A peer
is measured on the same boards: the counter read at the ends of a window (``tests.benchmarks.zeus_window``).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import statistics
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpu_tasks.devices.base import ReplayTiming
from gpu_tasks.energy import protocols
from gpu_tasks.energy.counter import WANDER_S, WANDER_SEGMENT_S, idle_edges, idle_wander, tick_period_s
from gpu_tasks.energy.interleaved import BASELINE, CANDIDATE, CONTROL, interleaved_figures
from gpu_tasks.energy.protocols import AUDITED, CLASSIC, Plan
from gpu_tasks.energy.simulation.drift import DRIFTS
from gpu_tasks.energy.simulation.gpu import SimulatedGpu
from gpu_tasks.energy.simulation.instruments import simulated_instruments
from gpu_tasks.energy.quantiles import detectable_difference
from gpu_tasks.energy.uncertainty import Surroundings
from gpu_tasks.energy.window_figures import window_figures
from gpu_tasks.records import CounterReading, EnergyFigure
from tests.benchmarks.zeus_window import window_energy_j

PERIODS_S = (0.02, 0.05, 0.1)
ROUNDS = 7
BLOCKS = 4
CONTROL_W = 8.0
SEED = 20261130


def main() -> None:
    """Measure, print one table, and write everything as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boards", type=int, default=2000, help="boards for each period and drift (default: 2000)")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    found = []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for period_s in PERIODS_S:
            for drift in DRIFTS:
                errors: dict[str, list[tuple[float, bool | None]]] = defaultdict(list)
                tasks = [(period_s, drift, arguments.seed, number) for number in range(arguments.boards)]
                for board in pool.map(errors_of_board, tasks, chunksize=25):
                    for name, error in board.items():
                        errors[name].append(error)
                rows = [summary(period_s, drift, name, values) for name, values in errors.items()]
                for row in rows:
                    classic = next(r for r in rows if r["figure"] == "classic")
                    row["sd_over_classic"] = row["sd_mj"] / classic["sd_mj"]
                    print(line(row), flush=True)
                found += rows
    if arguments.out:
        about = {
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "boards": arguments.boards,
            "seed": arguments.seed,
            "python": platform.python_version(),
        }
        arguments.out.write_text(json.dumps({**about, "figures": found}, indent=1) + "\n", encoding="utf-8")


def errors_of_board(task: tuple[float, str, int, int]) -> dict[str, tuple[float, bool | None]]:
    """Error in mJ of each figure on one board, and whether its interval held the truth (None: it has none)."""
    period_s, drift, seed, number = task
    found: dict[str, tuple[float, bool | None]] = {}
    for name, values in _figures(period_s, drift, hash((seed, number)) & 0x7FFFFFFF):
        found[name] = values
    return found


def _figures(period_s: float, drift: str, seed: int) -> Iterator[tuple[str, tuple[float, bool | None]]]:
    for plan in (CLASSIC, AUDITED):
        board = _Board(period_s, drift, seed)
        for figure in board.round_of(plan):
            name = figure.figure if figure.figure != "aligned" else f"aligned ({plan.name} round)"
            if figure.figure == "classic" and plan is AUDITED:
                continue
            yield name, _compared(figure, board.gpu.replay_mj)
        if plan is CLASSIC:
            yield "window (Zeus)", (board.window_mj() - board.gpu.replay_mj, None)
    board = _Board(period_s, drift, seed)
    truth = {CANDIDATE: board.gpu.replay_mj, BASELINE: board.gpu.replay_mj, CONTROL: board.control_mj}
    for figure in board.blocks():
        one, _, other = figure.subject.partition(" - ")
        yield f"interleaved, {figure.subject}", _compared(figure, truth[one] - truth.get(other, 0.0))


def _compared(figure: EnergyFigure, truth_mj: float) -> tuple[float, bool]:
    return figure.adjusted_mj - truth_mj, figure.uncertainty.low_mj <= truth_mj <= figure.uncertainty.high_mj


class _Board:
    """One simulated board, its idle power looked at for a minute."""

    def __init__(self, period_s: float, drift: str, seed: int) -> None:
        self.gpu = SimulatedGpu(seed=seed, tick_period_s=period_s, drift=drift)
        self._instruments = simulated_instruments(self.gpu)
        self._rng = random.Random(seed)
        self.control_mj = 1000 * CONTROL_W * self.gpu.replay_s
        counter, clock = self._instruments.gpu, self._instruments.clock
        wander = idle_wander(idle_edges(counter, clock, WANDER_S, WANDER_SEGMENT_S))
        self._around = Surroundings(tick_period_s(counter, clock), wander)
        self._windows: protocols.Windows | None = None

    def replay(self, repeats: int) -> ReplayTiming:
        """So many replays of the task."""
        self.gpu.work(repeats * self.gpu.replay_s, repeats * self.gpu.replay_mj / 1000)
        return ReplayTiming(1000 * self.gpu.replay_s, None)

    def control(self, repeats: int) -> ReplayTiming:
        """So many of the control."""
        self.gpu.work(repeats * self.gpu.replay_s, repeats * self.control_mj / 1000)
        return ReplayTiming(1000 * self.gpu.replay_s, None)

    def round_of(self, plan: Plan) -> list[EnergyFigure]:
        """The figures of one round."""
        repeats = math.ceil(plan.active_s / self.gpu.replay_s)
        self._windows = protocols.follow(
            plan,
            self.replay,
            repeats,
            tick_period_s=self._around.tick_period_s,
            instruments=self._instruments,
            rng=self._rng,
            say=lambda _text, _seconds: None,
        )
        found = self._windows
        return window_figures(
            repeats,
            found.start,
            found.end,
            found.idle_before,
            found.idle_after,
            aligned=found.aligned,
            audited=found.audited,
            around=self._around,
        )

    def window_mj(self) -> float:
        """The peer on the same round: its window energy with its idle windows' taken off."""
        windows = self._windows
        if windows is None:
            raise RuntimeError("window_mj: expected a round before it")
        repeats = math.ceil(CLASSIC.active_s / self.gpu.replay_s)

        def energy(start: CounterReading, end: CounterReading) -> tuple[float, float]:
            return window_energy_j([start, end]), end.time_s - start.time_s

        work_j, work_s = energy(windows.start, windows.end)
        idle = [energy(w.start, w.end) for w in (windows.idle_before, windows.idle_after)]
        idle_w = statistics.mean(joules / seconds for joules, seconds in idle)
        return 1000 * (work_j - idle_w * work_s) / repeats

    def blocks(self) -> list[EnergyFigure]:
        """The figures of one interleaved round."""
        arms = {arm: (self.replay, self.gpu.replay_s) for arm in (CANDIDATE, BASELINE)}
        arms[CONTROL] = (self.control, self.gpu.replay_s)
        segments = protocols.interleave(arms, BLOCKS, self._instruments, self._rng, lambda _text, _seconds: None)
        return interleaved_figures(segments, self._around)


def summary(period_s: float, drift: str, name: str, values: list[tuple[float, bool | None]]) -> dict[str, Any]:
    """What so many errors say."""
    errors = [error for error, _ in values]
    held = [inside for _, inside in values if inside is not None]
    sd = statistics.stdev(errors)
    return {
        "tick_period_s": period_s,
        "drift": drift,
        "figure": name,
        "boards": len(errors),
        "bias_mj": statistics.mean(errors),
        "sd_mj": sd,
        "coverage": statistics.mean(held) if held else None,
        "detectable_mj": detectable_difference(sd, ROUNDS),
    }


def line(row: dict[str, Any]) -> str:
    """One row for people."""
    coverage = "" if row["coverage"] is None else f"{row['coverage']:.1%}"
    return (
        f"{1000 * row['tick_period_s']:>4.0f} ms {row['drift']:<12}{row['figure']:<36}{row['bias_mj']:>+10.5f}"
        f"{row['sd_mj']:>10.5f}{row['sd_over_classic']:>8.3f}{coverage:>8}{row['detectable_mj']:>10.5f}"
    )


if __name__ == "__main__":
    main()
