"""Power sampled over a round: its CSV text and the energy under it.

Only samples that have a power count for integrals and gaps: one without it says nothing of the energy.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gpu_tasks.records import BadInput, InvalidMeasurement, PowerTrace


@dataclass(frozen=True)
class Sample:
    """One row of a trace; null where a value could not be had.

    ``time_s`` and ``counter_time_s`` are monotonic, at the middle of the call that read the power and the counter.
    ``throttle_reasons`` is NVML's bit mask. ``processes``, how many have a compute context on the GPU, is asked for
    about every ``PROCESSES_EVERY_S``: null in between.
    """

    time_s: float
    power_w: float | None = None
    counter_time_s: float | None = None
    counter_mj: int | None = None
    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    temperature_c: int | None = None
    utilisation_percent: int | None = None
    performance_state: int | None = None
    throttle_reasons: int | None = None
    processes: int | None = None


COLUMNS = (
    "time_s",
    "power_w",
    "counter_time_s",
    "counter_mj",
    "sm_clock_mhz",
    "memory_clock_mhz",
    "temperature_c",
    "utilisation_percent",
    "performance_state",
    "throttle_reasons",
    "processes",
)
HEADER = ",".join(COLUMNS)

PROCESSES_EVERY_S = 0.5
"""A list of processes takes longer than the other values, and a process that measures nothing lives longer."""

_DECIMALS = {"time_s": 6, "counter_time_s": 6, "power_w": 3}  # us, and the mW that NVML counts in
_FLOATS = {name: re.compile(rf"(0|[1-9][0-9]{{0,11}})\.[0-9]{{{digits}}}") for name, digits in _DECIMALS.items()}
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,19}")


def csv_text(samples: Iterable[Sample]) -> str:
    """Header and one line a sample, each ended by a newline; times with 6 decimals, power with 3."""
    return "".join(f"{line}\n" for line in (HEADER, *map(csv_line, samples)))


def csv_line(sample: Sample) -> str:
    """One sample without its newline; empty between commas where a value is null."""
    return ",".join(_cell(name, getattr(sample, name)) for name in COLUMNS)


def read_samples(trace: PowerTrace) -> list[Sample]:
    """The samples of a trace; raises ``BadInput`` where its text is not exactly what ``csv_text`` writes."""
    header, _, rest = trace.csv.partition("\n")
    if header != HEADER:
        raise BadInput("bad_trace", f"trace: line 1: expected {HEADER!r}, found {header[:80]!r}")
    if rest and not rest.endswith("\n"):
        raise BadInput("bad_trace", f"trace: last line: expected to be whole, found {rest.splitlines()[-1][:80]!r}")
    samples: list[Sample] = []
    for number, line in enumerate(rest.split("\n")[:-1], start=2):
        sample = parse_line(line, f"trace: line {number}")
        if samples and sample.time_s <= samples[-1].time_s:
            expected = f"more than {samples[-1].time_s:.6f}"
            raise BadInput("bad_trace", f"trace: line {number}: time_s: expected {expected}, found {sample.time_s:.6f}")
        samples.append(sample)
    return samples


def parse_line(line: str, where: str) -> Sample:
    """One sample from its line; raises ``BadInput`` with ``where`` in front."""
    cells = line.split(",")
    if len(cells) != len(COLUMNS):
        raise BadInput("bad_trace", f"{where}: expected {len(COLUMNS)} values, found {len(cells)} in {line[:80]!r}")
    values = {name: _value(name, cell, where) for name, cell in zip(COLUMNS, cells, strict=True)}
    return Sample(**values)  # type: ignore[arg-type]  # _value has looked at each by its column


def integrate_j(samples: Sequence[Sample], start_s: float, end_s: float) -> float:
    """Energy in J between two times: trapezoids over the actual time stamps, power interpolated at both ends.

    ``samples`` in order of time. Raises ``InvalidMeasurement`` (``trace_too_short``) where they do not reach over both
    ends, and ``BadInput`` (``bad_window``) for a window that does not end after its start.
    """
    _check_window(start_s, end_s)
    points = _powers(samples)
    if not points or points[0][0] > start_s or points[-1][0] < end_s:
        found = f"{points[0][0]:.3f} to {points[-1][0]:.3f} s" if points else "none with a power"
        message = f"trace: expected samples over {start_s:.3f} to {end_s:.3f} s, found {found}"
        raise InvalidMeasurement("trace_too_short", message)
    times = [time for time, _ in points]
    inside = points[bisect_right(times, start_s) : bisect_left(times, end_s)]
    path = [(start_s, _power_at(points, times, start_s)), *inside, (end_s, _power_at(points, times, end_s))]
    return math.fsum((after - before) * (low + high) / 2 for (before, low), (after, high) in pairwise(path))


def largest_gap_s(samples: Sequence[Sample], start_s: float, end_s: float) -> float:
    """Longest time without a sample that reaches into a window, in s.

    A gap over an end of the window counts whole. Where the trace begins after the start or ends before the end, what
    is missing of the window counts as a gap, so that an empty trace has one of the window's length.
    """
    _check_window(start_s, end_s)
    times = [time for time, _ in _powers(samples)]
    inside = times[bisect_right(times, start_s) : bisect_left(times, end_s)]
    earlier = max((time for time in times if time <= start_s), default=start_s)
    later = min((time for time in times if time >= end_s), default=end_s)
    path = [earlier, *inside, later]
    return max(after - before for before, after in pairwise(path))


def _check_window(start_s: float, end_s: float) -> None:
    if not start_s < end_s:
        raise BadInput("bad_window", f"window: expected an end after {start_s} s, found {end_s} s")


def _powers(samples: Sequence[Sample]) -> list[tuple[float, float]]:
    return [(sample.time_s, sample.power_w) for sample in samples if sample.power_w is not None]


def _power_at(points: Sequence[tuple[float, float]], times: Sequence[float], moment_s: float) -> float:
    """Power at a time within the points, on the line between its neighbours."""
    right = bisect_left(times, moment_s)
    (after, high) = points[right]
    if after == moment_s:
        return high
    (before, low) = points[right - 1]
    return low + (high - low) * (moment_s - before) / (after - before)


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.{_DECIMALS[name]}f}" if name in _DECIMALS else f"{value:d}"


def _value(name: str, cell: str, where: str) -> float | int | None:
    if not cell and name != "time_s":
        return None
    if not _FLOATS.get(name, _INTEGER).fullmatch(cell):
        expected = f"a number with {_DECIMALS[name]} decimals" if name in _DECIMALS else "an integer"
        raise BadInput("bad_trace", f"{where}: {name}: expected {expected}, found {cell[:80]!r}")
    return float(cell) if name in _DECIMALS else int(cell)
