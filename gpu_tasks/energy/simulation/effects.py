"""What the simulated device can be told to show, and the words for it: ``energy+10%, throttle``.

A comma between effects, upper and lower case alike, spaces around an effect without meaning, each effect once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpu_tasks.energy.simulation.drift import DRIFTS
from gpu_tasks.records import BadInput

SWITCHES = (
    "throttle",
    "clock_drop",
    "lost_gpu",
    "faulty_sensor",
    "other_process",
    "stuck_counter",
    "counter_backwards",
    "sampler_gap",
    "not_ready",
    "no_counter",
    "meters_disagree",
    "wrong_output",
)
"""Effects that are there or not."""

GRAMMAR = (
    "energy+P%, energy-P%, time+P%, time-P%, sensor*F, drift, "
    f"{', '.join(f'drift={kind}' for kind in DRIFTS[1:])}, driver=VERSION, power_limit=W, {', '.join(SWITCHES)}"
)
LARGEST_PERCENT = 1000.0
LARGEST_SCALE = 10.0
POWER_LIMIT_W = (50.0, 1000.0)

_NUMBER = r"([0-9]{1,6}(?:\.[0-9]{1,6})?)"


@dataclass(frozen=True)
class Effects:
    """What differs from the profile; the defaults: nothing.

    ``energy_factor`` and ``time_factor`` are of the task alone, each leaving the other as it is. What happens in a
    window happens in the middle of every stretch of replays of ``SHORTEST_WINDOW_S`` or more (``gpu.py``).

    - ``throttle``: a fifth of the window under a thermal slowdown, with its bits, violation time and lower clock
    - ``clock_drop``: a lower SM clock from the middle of the first window on, for no stated reason
    - ``lost_gpu``: the GPU is gone from the middle of the first window on
    - ``faulty_sensor``: both meters see the saturating sensor of the record's host; ``sensor_scale`` multiplies both
    - ``other_process``: another process computes from the middle of the first window on
    - ``stuck_counter``: the counter stays as it is from the middle of the first window on
    - ``counter_backwards``: the counter falls in the middle of each window
    - ``sampler_gap``: the sampler takes no sample for 1.5 s in the middle of what it samples
    - ``not_ready``: the first energy readings are refused, later ones are not
    - ``no_counter``: this GPU has no energy counter
    - ``meters_disagree``: power reads 5 % more than the counter counts
    - ``wrong_output``: predictions are wrong from the end of the first window on
    """

    energy_factor: float = 1.0
    time_factor: float = 1.0
    drift: str = "none"
    sensor_scale: float = 1.0
    driver: str | None = None
    power_limit_w: float | None = None
    throttle: bool = False
    clock_drop: bool = False
    lost_gpu: bool = False
    faulty_sensor: bool = False
    other_process: bool = False
    stuck_counter: bool = False
    counter_backwards: bool = False
    sampler_gap: bool = False
    not_ready: bool = False
    no_counter: bool = False
    meters_disagree: bool = False
    wrong_output: bool = False


def parse_effects(text: str | None) -> Effects:
    """The effects that a text asks for; none for an empty one. Raises ``BadInput`` (``bad_inject``)."""
    found: dict[str, Any] = {}
    words = [word.strip() for word in text.split(",")] if text and text.strip() else []
    for word in words:
        field, value = _effect(word)
        if field in found:
            raise BadInput("bad_inject", f"inject: expected {field} once, found it again as {word[:40]!r}")
        found[field] = value
    return Effects(**found)


def _effect(as_given: str) -> tuple[str, Any]:
    word = as_given.lower() if as_given.isascii() else as_given  # some other letters have an ASCII one as their lower
    if word in SWITCHES:
        return word, True
    for pattern, read in _FORMS:
        match = pattern.fullmatch(word)
        if match:
            return read(match)
    raise BadInput("bad_inject", f"inject: expected some of {GRAMMAR}; found {as_given[:40]!r}")


def _percent(match: re.Match[str]) -> tuple[str, Any]:
    what, sign, percent = match[1], match[2], float(match[3])
    if percent > LARGEST_PERCENT or (sign == "-" and percent >= 100):
        expected = f"less than 100% off, or up to {LARGEST_PERCENT:g}% more"
        raise BadInput("bad_inject", f"inject: {what}: expected {expected}, found {sign}{match[3]}%")
    return f"{what}_factor", 1 + float(f"{sign}{percent}") / 100


def _scale(match: re.Match[str]) -> tuple[str, Any]:
    scale = float(match[1])
    if not 0 < scale <= LARGEST_SCALE:
        raise BadInput("bad_inject", f"inject: sensor: expected above 0 to {LARGEST_SCALE:g}, found {match[1]}")
    return "sensor_scale", scale


def _power_limit(match: re.Match[str]) -> tuple[str, Any]:
    low, high = POWER_LIMIT_W
    limit = float(match[1])
    if not low <= limit <= high:
        raise BadInput("bad_inject", f"inject: power_limit: expected {low:g} to {high:g} W, found {match[1]}")
    return "power_limit_w", limit


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], tuple[str, Any]]], ...] = (
    (re.compile(rf"(energy|time)([+-]){_NUMBER}%"), _percent),
    (re.compile(rf"sensor\*{_NUMBER}"), _scale),
    (re.compile(r"drift()"), lambda _: ("drift", DRIFTS[1])),
    (re.compile(rf"drift=({'|'.join(DRIFTS[1:])})"), lambda match: ("drift", match[1])),
    (re.compile(r"driver=([0-9]{1,4}(?:\.[0-9]{1,4}){0,3})"), lambda match: ("driver", match[1])),
    (re.compile(rf"power_limit={_NUMBER}"), _power_limit),
)
