"""One simulated board, and rounds measured on it as the programs measure them: what the energy benchmarks share.

Standard library, numpy and this project only: ``zeus_window`` runs it with the interpreter of somebody else.
"""

from __future__ import annotations

import hashlib
import math
import random

from gpu_tasks.devices.base import ReplayTiming
from gpu_tasks.devices.simulated import CONTROL_W
from gpu_tasks.energy import protocols
from gpu_tasks.energy.counter import WANDER_S, WANDER_SEGMENT_S, idle_edges, idle_wander, tick_period_s
from gpu_tasks.energy.interleaved import BASELINE, CANDIDATE, CONTROL, interleaved_figures
from gpu_tasks.energy.protocols import Plan, Replay
from gpu_tasks.energy.simulation.gpu import TICK_PERIOD_S, SimulatedGpu
from gpu_tasks.energy.simulation.instruments import simulated_instruments
from gpu_tasks.energy.uncertainty import Surroundings
from gpu_tasks.energy.window_figures import window_figures
from gpu_tasks.records import Effects, EnergyFigure

NO_EFFECTS = Effects()


def seed_of(*parts: object) -> int:
    """A seed from the benchmark's own and numbers, the same on every machine and in every process."""
    return int.from_bytes(hashlib.sha256("/".join(map(str, parts)).encode()).digest()[:8], "big")


class Board:
    """A board of the healthy profile. Everything random on it, and in the rounds on it, is from ``seed``."""

    def __init__(
        self, seed: int, *, period_s: float = TICK_PERIOD_S, drift: str = "none", effects: Effects = NO_EFFECTS
    ) -> None:
        self.gpu = SimulatedGpu(seed=seed, tick_period_s=period_s, drift=drift, effects=effects)
        self.instruments = simulated_instruments(self.gpu)
        self.rng = random.Random(seed)
        self.control_mj = 1000 * CONTROL_W * self.gpu.replay_s

    def look(self) -> Surroundings:
        """What ``telemetry --when before`` learns of the counter in a minute of idling: tick and wander."""
        counter, clock = self.instruments.gpu, self.instruments.clock
        wander = idle_wander(idle_edges(counter, clock, WANDER_S, WANDER_SEGMENT_S))
        return Surroundings(tick_period_s(counter, clock), wander)

    def repeats_of(self, plan: Plan) -> int:
        """Replays that fill the plan's active window."""
        return math.ceil(plan.active_s / self.gpu.replay_s)

    def replay(self, repeats: int) -> ReplayTiming:
        """So many replays of the task."""
        return self._work(repeats, self.gpu.replay_mj)

    def control(self, repeats: int) -> ReplayTiming:
        """So many of the control."""
        return self._work(repeats, self.control_mj)

    def figures_of(self, plan: Plan, around: Surroundings) -> list[EnergyFigure]:
        """The figures of one round of ``plan`` that begins on an idle board."""
        repeats = self.repeats_of(plan)
        found = protocols.follow(
            plan,
            self.replay,
            repeats,
            tick_period_s=around.tick_period_s,
            instruments=self.instruments,
            rng=self.rng,
            say=_silent,
        )
        return window_figures(
            repeats,
            found.start,
            found.end,
            found.idle_before,
            found.idle_after,
            aligned=found.aligned,
            audited=found.audited,
            around=around,
        )

    def interleaved_figures_of(self, blocks: int, around: Surroundings) -> list[EnergyFigure]:
        """The figures of one interleaved round; the baseline is the same kernel as the candidate."""
        replays: dict[str, Replay] = {CANDIDATE: self.replay, BASELINE: self.replay, CONTROL: self.control}
        arms = {arm: (replay, self.gpu.replay_s) for arm, replay in replays.items()}
        segments = protocols.interleave(arms, blocks, self.instruments, self.rng, _silent)
        return interleaved_figures(segments, around)

    def truth_mj(self, subject: str) -> float:
        """What a figure of ``subject`` should be: an arm's energy, or the difference of two."""
        arms = {CANDIDATE: self.gpu.replay_mj, BASELINE: self.gpu.replay_mj, CONTROL: self.control_mj}
        one, _, other = subject.partition(" - ")
        return arms[one] - (arms[other] if other else 0.0)

    def _work(self, repeats: int, replay_mj: float) -> ReplayTiming:
        self.gpu.work(repeats * self.gpu.replay_s, repeats * replay_mj / 1000)
        return ReplayTiming(1000 * self.gpu.replay_s, None)


def _silent(_text: str, _seconds: float) -> None:
    """Progress of a round, which nobody watches here."""
