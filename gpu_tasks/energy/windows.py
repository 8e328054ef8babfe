"""Timed windows of back-to-back replays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpu_tasks.devices.base import Device
from gpu_tasks.energy.instruments import Clock
from gpu_tasks.records import BadInput, Reason, WindowEdge

CALIBRATION_S = 0.05
CHUNK_S = 0.5
"""Of replays on the way to a temperature: short enough to look at the clock often, long enough to time a replay by."""

ACTIVE_S = 0.5
"""Active window on a CPU device: long against scheduler ticks of a few ms, short enough for seven rounds a night."""

FEWEST_REPEATS = 10

LONGEST_WORK_S = 3600.0
"""Of one round that is sampled: a longer one has more samples than a record can hold, and says no more."""

LONGEST_S = 604800.0
"""Of one that is not: a week, which nobody means."""


@dataclass(frozen=True)
class ActiveWindow:
    """Both edges of a window of replays, and the device's own time for one replay in ms, or why it has none."""

    start: WindowEdge
    end: WindowEdge
    device_ms: float | None
    no_device_ms: Reason | None


def seconds_per_replay(device: Device) -> float:
    """Warm up with ever longer loops until one takes ``CALIBRATION_S``, and return its seconds per replay."""
    repeats, now = 1, device.clock.now
    while True:
        start = now()
        device.replay(repeats)
        elapsed = now() - start
        if elapsed >= CALIBRATION_S:
            return elapsed / repeats
        repeats *= 2


def chunks(replay: Callable[[int], object], replay_s: float, clock: Clock) -> Iterator[float]:
    """Work without end in chunks of about ``CHUNK_S``; yields after each the seconds that a replay of it took.

    ``replay_s`` is what one seems to take before: of a cold device, whose first ones may be far slower, it says little,
    so that chunks that turn out short are made longer.
    """
    repeats = max(1, math.ceil(CHUNK_S / replay_s))
    while True:
        start = clock.now()
        replay(repeats)
        lasted = clock.now() - start
        yield lasted / repeats
        if lasted < CHUNK_S / 2:
            repeats *= 2


def warmed_up(device: Device, seconds: float) -> float:
    """Work for ``seconds`` by the clock, and return the seconds that a replay then takes."""
    began = device.clock.now()
    work = chunks(device.replay, seconds_per_replay(device), device.clock)
    while True:
        replay_s = next(work)
        if device.clock.now() - began >= seconds:
            return replay_s


def default_repeats(replay_s: float) -> int:
    """Replays that fill ``ACTIVE_S``, at least ``FEWEST_REPEATS``."""
    return max(FEWEST_REPEATS, math.ceil(ACTIVE_S / replay_s))


def check_repeats(repeats: int, replay_s: float, longest_s: float) -> None:
    """Raise ``BadInput`` (``bad_repeats``) for more replays than fit into ``longest_s``."""
    if repeats > longest_s / replay_s:
        expected = f"at most {math.floor(longest_s / replay_s)}, which take {longest_s:.0f} s"
        raise BadInput("bad_repeats", f"--repeats: expected {expected}, found {repeats}")


def active_window(device: Device, repeats: int) -> ActiveWindow:
    """Replay ``repeats`` times between two readings of the monotonic clock."""
    start = _edge(device.clock)
    timing = device.replay(repeats)
    return ActiveWindow(start, _edge(device.clock), timing.device_ms_per_replay, timing.reason)


def _edge(clock: Clock) -> WindowEdge:
    """The time alone: where there is no counter, nothing else is read."""
    return WindowEdge(energy_mj=None, time_s=clock.now(), read_duration_s=0.0)
