"""The order of things in one round: when to wait, when to work, when to read.

Each protocol is a plan, and one function follows it; the interleaved one has blocks of segments instead. Nothing is
derived here: what was read goes into the record, and ``gpu_tasks.energy.derive`` makes figures of it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gpu_tasks.devices.base import ReplayTiming
from gpu_tasks.energy.counter import idle_edges, next_edge
from gpu_tasks.energy.figures import TRIAL_MS, trial_repeats
from gpu_tasks.energy.instruments import Instruments
from gpu_tasks.energy.interleaved import BASELINE, CANDIDATE, CONTROL, IDLE
from gpu_tasks.energy.windows import CHUNK_S, chunks
from gpu_tasks.records import TRIAL, AlignedReadings, AuditedReadings, CounterEdge, CounterReading, IdleWindow, Segment

Replay = Callable[[int], ReplayTiming]
Say = Callable[[str, float], None]
"""Told what begins, and how many seconds it will take."""

CLASSIC_IDLE_S = 5.0
FIRST_REPLAYS = 100
TAIL_S = 1.5
"""How long the aligned figure leaves the power to settle where the protocol itself leaves no time for it."""

SEGMENT_ACTIVE_S = 2.0
SEGMENT_SETTLE_S = 1.5
WARM_UP_S = 2.0
PLATEAU_S = 3.0
LONGEST_WARM_UP_S = 15.0


@dataclass(frozen=True)
class Plan:
    """Lengths in s: settling before each idle window, the idle windows, the work, and the cuts within idle windows.

    ``first_replays`` are run before anything is known of how long one takes. A plan that is ``settled`` has the
    windows that follow the settling for a round's own and reads no classic ones, and is a trial.
    """

    name: str
    settle_s: float
    idle_s: float
    active_s: float
    cut_s: float
    first_replays: int = FIRST_REPLAYS
    settled: bool = False

    def repeats(self, replay_s: float) -> int:
        """Replays of ``replay_s`` each that fill the work's time; of a trial not more than it may have."""
        return trial_repeats(1000 * replay_s) if self.settled else math.ceil(self.active_s / replay_s)


CLASSIC = Plan("classic", settle_s=0.0, idle_s=CLASSIC_IDLE_S, active_s=16.4, cut_s=1.0)
AUDITED = Plan("audited", settle_s=3.0, idle_s=10.0, active_s=20.0, cut_s=2.0)
TRIAL_PLAN = Plan(
    TRIAL,
    settle_s=3.0,
    idle_s=3.0,
    active_s=TRIAL_MS / 1000,
    cut_s=1.0,
    first_replays=1,
    settled=True,
)
"""That of the learner's original records."""

PLANS = {plan.name: plan for plan in (CLASSIC, AUDITED, TRIAL_PLAN)}


@dataclass(frozen=True)
class Windows:
    """What one round of a plan read."""

    start: CounterReading
    end: CounterReading
    idle_before: IdleWindow
    idle_after: IdleWindow
    aligned: AlignedReadings
    audited: AuditedReadings | None
    timing: ReplayTiming
    settle_s: float


def warm_up(replay: Replay, replay_s: float, instruments: Instruments) -> float:
    """Work for 2 s or more, until the temperature rises no longer; returns the seconds a replay then takes."""
    clock = instruments.clock
    began, temperatures = clock.now(), list[int | None]()
    work = chunks(replay, replay_s, clock)
    while True:
        replay_s = next(work)
        lasted = clock.now() - began
        temperatures.append(instruments.gpu.state().temperature_c)
        then, now = temperatures[0 : -round(PLATEAU_S / CHUNK_S)], temperatures[-1]
        steady = now is None or (bool(then) and then[-1] is not None and now <= then[-1])
        if (lasted >= WARM_UP_S and steady) or lasted >= LONGEST_WARM_UP_S:
            return replay_s


def follow(
    plan: Plan,
    replay: Replay,
    repeats: int,
    *,
    tick_period_s: float,
    instruments: Instruments,
    rng: random.Random,
    say: Say,
) -> Windows:
    """One round of ``plan``: idle, ``repeats`` replays, idle. Raises what the counter and the replays raise."""
    reader = _Reader(instruments, tick_period_s, rng)
    clock, gpu = instruments.clock, instruments.gpu
    if plan.settle_s:
        say("settle", plan.settle_s)
        clock.sleep(plan.settle_s)
    say("idle before", plan.idle_s)
    before_edges, before = reader.idle(plan, plan.idle_s, classic_s=plan.idle_s - CLASSIC_IDLE_S)
    active_start = next_edge(gpu, clock)
    say("replays", plan.active_s)
    start = reader.read()
    timing = replay(repeats)
    end = gpu.read_counter()
    classic_after = gpu.read_counter()
    tail_start = next_edge(gpu, clock)
    settle_s = max(plan.settle_s, TAIL_S)
    say("settle", settle_s)
    clock.sleep(max(0.0, end.time_s + settle_s - clock.now()))
    after_s = plan.idle_s if plan.settle_s else CLASSIC_IDLE_S - settle_s
    say("idle after", after_s)
    classic_s = classic_after.time_s + CLASSIC_IDLE_S - clock.now()
    after_edges, after = reader.idle(plan, after_s, classic_s=classic_s)
    audited = None
    idle_after = _window(classic_after, after.classic)
    if plan.settled:
        idle_after = _window(after.first, after.last)
    elif plan.settle_s:
        audited = AuditedReadings(_window(before.first, before.last), _window(after.first, after.last))
    return Windows(
        start=start,
        end=end,
        idle_before=_window(before.classic, before.last),
        idle_after=idle_after,
        aligned=AlignedReadings(
            idle_before=[*before_edges, active_start],
            active_start=active_start,
            tail_start=tail_start,
            active_end=after_edges[0],
            idle_after=after_edges,
        ),
        audited=audited,
        timing=timing,
        settle_s=settle_s,
    )


@dataclass(frozen=True)
class _PlainReads:
    """Plain readings of one idle window: at both ends, and where the classic window begins or ends."""

    first: CounterReading
    classic: CounterReading
    last: CounterReading


class _Reader:
    """Reads the counter plainly, after a random part of a tick.

    Near the steps that the aligned figure waits for, and at whole numbers of ticks from each other, plain readings
    would be better than they ever were before, and their history could not be compared.
    """

    def __init__(self, instruments: Instruments, tick_period_s: float, rng: random.Random) -> None:
        self._gpu, self._clock, self._tick_s, self._rng = instruments.gpu, instruments.clock, tick_period_s, rng

    def read(self) -> CounterReading:
        """One plain reading."""
        self._clock.sleep(self._rng.uniform(0.0, self._tick_s))
        return self._gpu.read_counter()

    def idle(self, plan: Plan, seconds: float, *, classic_s: float) -> tuple[list[CounterEdge], _PlainReads]:
        """An idle window of so many seconds: its steps about every ``plan.cut_s``, and plain readings.

        The classic one comes ``classic_s`` after the beginning.
        """
        began = self._clock.now()
        first = classic = self.read()
        edges = [next_edge(self._gpu, self._clock)]
        cuts = [number * plan.cut_s for number in range(1, math.floor(seconds / plan.cut_s + 1e-9))]
        for moment, is_cut in sorted([(classic_s, False), *((cut, True) for cut in cuts)]):
            self._clock.sleep(max(0.0, began + moment - self._clock.now()))
            if is_cut:
                edges.append(next_edge(self._gpu, self._clock))
            elif classic_s > 0:
                classic = self.read()
        self._clock.sleep(max(0.0, began + seconds - self._clock.now()))
        last = self.read()
        edges.append(next_edge(self._gpu, self._clock))
        return edges, _PlainReads(first, classic, last)


def sham_window(
    plan: Plan, before: IdleWindow, instruments: Instruments, say: Say
) -> tuple[IdleWindow, CounterReading, CounterReading, IdleWindow]:
    """The plan's windows without any work, the idle window that just ended being the first: what nothing reads as."""
    clock, gpu = instruments.clock, instruments.gpu
    say("sham window", plan.active_s + plan.idle_s)
    start = gpu.read_counter()
    clock.sleep(plan.active_s)
    end = gpu.read_counter()
    after_start = gpu.read_counter()
    clock.sleep(plan.idle_s)
    return before, start, end, _window(after_start, gpu.read_counter())


def blocks_of(arms: Sequence[str], blocks: int, rng: random.Random) -> list[list[str]]:
    """Order of the arms in each block: mirrored, so that a steady drift cancels, and otherwise random.

    Candidate and baseline, which are to be told apart, lie side by side in the middle, as ABBA or BAAB; idle and
    control around them.
    """
    near = [arm for arm in (CANDIDATE, BASELINE) if arm in arms]
    far = [arm for arm in (IDLE, CONTROL) if arm in arms]
    found = []
    for _ in range(blocks):
        half = [*rng.sample(far, len(far)), *rng.sample(near, len(near))]
        found.append([*half, *reversed(half)])
    return found


def interleave(
    arms: Mapping[str, tuple[Replay, float]], blocks: int, instruments: Instruments, rng: random.Random, say: Say
) -> list[Segment]:
    """Blocks of segments from step to step: ``arms`` maps each arm but idle to its replay and seconds a replay."""
    clock, gpu = instruments.clock, instruments.gpu
    segments = []
    edge = next_edge(gpu, clock)
    for block, order in enumerate(blocks_of([IDLE, *arms], blocks, rng)):
        say(f"block {block}: {' '.join(order)}", len(order) * (SEGMENT_ACTIVE_S + SEGMENT_SETTLE_S))
        for arm in order:
            repeats, active_s, timing = 0, 0.0, None
            if arm == IDLE:
                clock.sleep(SEGMENT_ACTIVE_S)
            else:
                replay, replay_s = arms[arm]
                repeats = max(1, math.ceil(SEGMENT_ACTIVE_S / replay_s))
                began = clock.now()
                timing = replay(repeats)
                active_s = clock.now() - began
                clock.sleep(SEGMENT_SETTLE_S)  # the tail belongs to the arm that made it, not to the next one
            following = next_edge(gpu, clock)
            device_ms = timing.device_ms_per_replay if timing else None
            segments.append(Segment(block, arm, repeats, edge, following, active_s, device_ms))
            edge = following
    return segments


def idle_stretch(instruments: Instruments, seconds: float, segment_s: float, say: Say) -> list[CounterEdge]:
    """A long idle stretch, cut at steps."""
    say("idle", seconds)
    return idle_edges(instruments.gpu, instruments.clock, seconds, segment_s)


def _window(start: CounterReading, end: CounterReading) -> IdleWindow:
    power_w = (end.energy_mj - start.energy_mj) / 1000 / (end.time_s - start.time_s)
    return IdleWindow(start, end, power_w)
