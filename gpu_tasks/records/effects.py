"""What the simulated device can be told to show, and the words for it: ``energy+10%, throttle``.

A comma between effects, upper and lower case alike, spaces around an effect without meaning, each effect once.
The grammar is here, and not with the simulation that shows the effects, so that a request is refused before it runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpu_tasks.records.names import DRIFTS
from gpu_tasks.records.outcomes import BadInput

SWITCHES = (
    "throttle",
    "clock_drop",
    "lost_gpu",
    "faulty_sensor",
    "other_process",
    "passing_process",
    "slow_start",
    "power_brake",
    "xid",
    "stuck_counter",
    "counter_backwards",
    "counter_slips",
    "sampler_gap",
    "not_ready",
    "no_counter",
    "meters_disagree",
    "wrong_output",
)
"""Effects that are there or not."""

GRAMMAR = (
    "energy+P%, energy-P%, time+P%, time-P%, sensor*F, drift, "
    f"{', '.join(f'drift={kind}' for kind in DRIFTS[1:])}, driver=VERSION, power_limit=W, "
    f"sensor_floor=W, slow_tail=S, {', '.join(SWITCHES)}"
)
LARGEST_PERCENT = 1000.0
LARGEST_SCALE = 10.0
POWER_LIMIT_W = (50.0, 1000.0)
SENSOR_FLOOR_W = (1.0, 1000.0)
SLOW_TAIL_S = (0.01, 60.0)

_NUMBER = r"([0-9]{1,6}(?:\.[0-9]{1,6})?)"


@dataclass(frozen=True)
class Effects:
    """What differs from the profile; the defaults: nothing.

    ``energy_factor`` and ``time_factor`` are of the task alone, each leaving the other as it is. What happens in a
    window happens in the middle of every stretch of replays of ``SHORTEST_WINDOW_S`` or more (``gpu.py`` of the
    simulation).

    - ``throttle``: a fifth of the window under a thermal slowdown, with its bits, violation time and lower clock
    - ``clock_drop``: a lower SM clock from the middle of the first window on, for no stated reason
    - ``lost_gpu``: the GPU is gone from the middle of the first window on
    - ``faulty_sensor``: both meters see the saturating sensor of the record's host; ``sensor_scale`` multiplies both
    - ``sensor_floor_w``: both meters never show less
    - ``slow_tail_s``: so late is the power behind the load, as a time constant
    - ``other_process``: another process computes from the middle of the first window on
    - ``passing_process``: another process computes in the middle fifth of each window, and is gone afterwards
    - ``slow_start``: a lower SM clock in the first 40 % of each window, full clocks afterwards, for no stated reason
    - ``power_brake``: the bits of a hardware power brake, and a little less clock, in the middle fifth of each window;
      no violation time grows
    - ``xid``: the driver reports an Xid error in the middle of each window, and nothing else happens
    - ``stuck_counter``: the counter stays as it is from the middle of the first window on
    - ``counter_backwards``: the counter falls in the middle of each window
    - ``counter_slips``: the counter falls by 20 J in the middle of each window, less than the window uses
    - ``sampler_gap``: the sampler takes no sample for 1.5 s in the middle of what it samples
    - ``not_ready``: the second energy reading is refused, later ones are not
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
    sensor_floor_w: float = 0.0
    slow_tail_s: float | None = None
    throttle: bool = False
    clock_drop: bool = False
    lost_gpu: bool = False
    faulty_sensor: bool = False
    other_process: bool = False
    passing_process: bool = False
    slow_start: bool = False
    power_brake: bool = False
    xid: bool = False
    stuck_counter: bool = False
    counter_backwards: bool = False
    counter_slips: bool = False
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
            name = re.split("[^a-z_]", word.lower())[0]
            raise BadInput("bad_inject", f"inject: expected {name} once, found it again as {word[:40]!r}")
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


def _bounded(field: str, bounds: tuple[float, float], unit: str) -> Callable[[re.Match[str]], tuple[str, Any]]:
    """Reads ``NAME=NUMBER`` for ``field``, whose number has bounds."""
    low, high = bounds

    def read(match: re.Match[str]) -> tuple[str, Any]:
        name, value = match[1], float(match[2])
        if not low <= value <= high:
            raise BadInput("bad_inject", f"inject: {name}: expected {low:g} to {high:g} {unit}, found {match[2]}")
        return field, value

    return read


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], tuple[str, Any]]], ...] = (
    (re.compile(rf"(energy|time)([+-]){_NUMBER}%"), _percent),
    (re.compile(rf"sensor\*{_NUMBER}"), _scale),
    (re.compile(r"drift()"), lambda _: ("drift", DRIFTS[1])),
    (re.compile(rf"drift=({'|'.join(DRIFTS[1:])})"), lambda match: ("drift", match[1])),
    (re.compile(r"driver=([0-9]{1,4}(?:\.[0-9]{1,4}){0,3})"), lambda match: ("driver", match[1])),
    (re.compile(rf"(power_limit)={_NUMBER}"), _bounded("power_limit_w", POWER_LIMIT_W, "W")),
    (re.compile(rf"(sensor_floor)={_NUMBER}"), _bounded("sensor_floor_w", SENSOR_FLOOR_W, "W")),
    (re.compile(rf"(slow_tail)={_NUMBER}"), _bounded("slow_tail_s", SLOW_TAIL_S, "s")),
)
