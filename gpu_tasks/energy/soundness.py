"""Whether the readings of a round can bear its figure: power had settled, work was long, no read took long.

Codes: ``power_not_settled``, ``bias_too_large``, ``slow_reading``. Rounds agree with each other in spite of any of
them: what is wrong is wrong by as much each time.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from gpu_tasks.energy.invalidation import RAMP_S
from gpu_tasks.energy.trace import Sample
from gpu_tasks.energy.uncertainty import edge_time_s
from gpu_tasks.energy.window_figures import CANDIDATE
from gpu_tasks.records import CounterEdge, EnergyFigure, EnergyMeasurement, Reason, RoundRecord

LEFT_IN_WINDOWS, LEFT_IN_SEGMENTS = 0.10, 0.05
"""Part of the work's power that may be left where the power is taken for settled. Segments come one upon the other, so
that what is left of one is also the next one's, and they settle for half as long."""

LEFT_W = 0.5
"""So little may always be left: idle power itself wanders by as much."""

BIAS_SHARE = 0.10
"""Twice what the classic figure reads too little on an A100, which has always been published so."""

SMALLEST_RISE_W = 2.0
"""Of a power above idle that is smaller, the tail cannot be told from what idle power does by itself."""

LONGEST_READ_S = 0.1
"""Thirty times what a read takes, and as long as the slowest known update period: nobody knows when in it it was."""

Powers = Sequence[tuple[float, float]]
"""Samples that have a power: monotonic s and W, in order of time."""

_JUST_BEFORE_S = 0.3
_LAST_S = 1.0


def unsound_reasons(record: RoundRecord, energy: EnergyMeasurement, samples: Sequence[Sample]) -> list[Reason]:
    """Reasons not to use a round that has its figures; none if there are none. ``samples`` in order of time."""
    powers = [(sample.time_s, sample.power_w) for sample in samples if sample.power_w is not None]
    settled = _segments_settled(energy, powers) if energy.segments else _windows_settled(record, energy, powers)
    return [*settled, *_bias(record, energy), *_reads(record, energy)]


def _windows_settled(record: RoundRecord, energy: EnergyMeasurement, powers: Powers) -> list[Reason]:
    """Power where the aligned figure ends the work, against the end of the idle window that follows."""
    aligned, start, end = energy.aligned, record.measurement_start, record.measurement_end
    if aligned is None or start is None or end is None:
        return []
    settled_s = edge_time_s(aligned.active_end)
    idle = [_mean_w(powers, at - 2 * _LAST_S, at) for at in _ends(aligned.idle_before, aligned.idle_after)]
    left, known = _mean_w(powers, settled_s - _JUST_BEFORE_S, settled_s), [w for w in idle if w is not None]
    work = _mean_w(powers, max(start.time_s + RAMP_S, end.time_s - _LAST_S), end.time_s)
    if left is None or not known:
        return []
    return _left(settled_s - end.time_s, work, left, min(known), LEFT_IN_WINDOWS)


def _segments_settled(energy: EnergyMeasurement, powers: Powers) -> list[Reason]:
    """Power at the end of the candidate's segments, against that at the end of idle ones, all of them together."""
    own = [segment for segment in energy.segments if segment.arm == CANDIDATE]
    idle = [segment for segment in energy.segments if not segment.repeats]
    over = [segment.start.after_s + segment.active_s for segment in own]
    work = _mean_of([_mean_w(powers, at - _LAST_S, at) for at in over])
    left = _mean_of([_mean_w(powers, at - _JUST_BEFORE_S, at) for at in _ends(*([s.end] for s in own))])
    rest = _mean_of([_mean_w(powers, at - _LAST_S, at) for at in _ends(*([s.end] for s in idle))])
    if left is None or rest is None:
        return []
    after_s = statistics.mean(edge_time_s(segment.end) - at for segment, at in zip(own, over, strict=True))
    return _left(after_s, work, left, rest, LEFT_IN_SEGMENTS)


def _left(after_s: float, work_w: float | None, left_w: float, idle_w: float, share: float) -> list[Reason]:
    if work_w is None or left_w - idle_w <= max(share * (work_w - idle_w), LEFT_W):
        return []
    message = (
        f"power {after_s:.1f} s after the work: expected at most {share:.0%} of the work's {work_w - idle_w:.1f} W "
        f"above idle, found {left_w - idle_w:.1f} W"
    )
    return [Reason("power_not_settled", message)]


def _bias(record: RoundRecord, energy: EnergyMeasurement) -> list[Reason]:
    """What the round's own figure is known to read too little must be small beside it."""
    found = _own(record, energy)
    if found is None or found.gross_mj is None or not found.gross_mj or record.average_power_w is None:
        return []
    rise_w = record.average_power_w * found.adjusted_mj / found.gross_mj
    bias_mj = found.uncertainty.bias_mj
    true_mj = found.adjusted_mj - bias_mj
    if rise_w < SMALLEST_RISE_W or abs(bias_mj) <= BIAS_SHARE * abs(true_mj):
        return []
    message = (
        f"{found.figure} figure: expected to read at most {BIAS_SHARE:.0%} too little by itself, found "
        f"{abs(bias_mj / true_mj):.0%}: the work is too short beside the power's tail and the counter's steps"
    )
    return [Reason("bias_too_large", message)]


def _own(record: RoundRecord, energy: EnergyMeasurement) -> EnergyFigure | None:
    return next((f for f in energy.figures if f.figure == record.protocol and f.subject == CANDIDATE), None)


def _reads(record: RoundRecord, energy: EnergyMeasurement) -> list[Reason]:
    longest = max(_durations(record, energy), default=0.0)
    if longest <= LONGEST_READ_S:
        return []
    message = f"counter: expected readings within {LONGEST_READ_S} s, found one of {longest:.3f} s"
    return [Reason("slow_reading", message)]


def _durations(record: RoundRecord, energy: EnergyMeasurement) -> Iterator[float]:
    """How long each reading took that a figure rests on, and how far apart the reads around each step are."""
    audited = energy.audited
    for edge in (record.measurement_start, record.measurement_end):
        if edge is not None:
            yield edge.read_duration_s
    windows = [record.idle_before, record.idle_after, *((audited.idle_before, audited.idle_after) if audited else ())]
    for window in windows:
        if window is not None:
            yield from (window.start.read_duration_s, window.end.read_duration_s)
    edges = [edge for segment in energy.segments for edge in (segment.start, segment.end)]
    if energy.aligned is not None:
        aligned = energy.aligned
        edges += [*aligned.idle_before, aligned.tail_start, *aligned.idle_after]
    yield from (edge.after_s - edge.before_s for edge in edges)


def _ends(*stretches: Sequence[CounterEdge]) -> list[float]:
    return [edge_time_s(stretch[-1]) for stretch in stretches]


def _mean_w(powers: Powers, start_s: float, end_s: float) -> float | None:
    """Mean power of the samples between two times; null where there is none."""
    inside = [watts for time_s, watts in powers if start_s <= time_s <= end_s]
    return statistics.mean(inside) if inside else None


def _mean_of(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known else None
