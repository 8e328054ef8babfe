"""From the raw readings of a round to everything that is said of it: the one way, for new rounds and stored ones.

``with_figures`` fills in every derived field of a round record, to the last bit the same each time; a stored record is
checked by doing it again. Whatever a formula needs is in the record.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Sequence

from gpu_tasks.energy.figures import idle_power_w, round_figures, trial_repeats
from gpu_tasks.energy.interleaved import interleaved_figures, segment_times_ms
from gpu_tasks.energy.trace import Sample, integrate_j, read_samples
from gpu_tasks.energy.uncertainty import Surroundings, edge_time_s
from gpu_tasks.energy.window_figures import CANDIDATE, Windows, window_figures
from gpu_tasks.records import (
    TRIAL,
    AlignedReadings,
    CounterReading,
    EnergyMeasurement,
    IdleWindow,
    InvalidMeasurement,
    MeterComparison,
    RoundRecord,
    ShamWindow,
    WindowEdge,
)

DERIVED = ("wall_ms", "gross_mj", "adjusted_mj", "idle_before_w", "idle_after_w", "average_power_w")
"""Fields of a round that are computed, and null where their readings are missing."""


def with_figures(record: RoundRecord) -> RoundRecord:
    """``record`` with every derived field computed from its raw readings."""
    energy = record.energy
    start, end, repeats = record.measurement_start, record.measurement_end, record.repeats
    if record.calibration_ms is not None:
        repeats = trial_repeats(record.calibration_ms)
    before, after = _with_power(record.idle_before), _with_power(record.idle_after)
    changes: dict[str, object] = dict.fromkeys(DERIVED) | {
        "repeats": repeats,
        "idle_before": before,
        "idle_after": after,
    }
    if start is not None and end is not None and repeats is not None:
        changes |= dataclasses.asdict(round_figures(repeats, start, end, before, after))
    if energy is not None:
        energy = _derived(record.protocol, repeats or 0, start, end, before=before, after=after, energy=energy)
        changes["energy"] = energy
        if energy.segments:
            changes |= segment_times_ms(energy.segments)
        own = next((f for f in energy.figures if f.figure == record.protocol and f.subject == CANDIDATE), None)
        if own is not None:
            changes |= {"adjusted_mj": own.adjusted_mj, "gross_mj": own.gross_mj or changes.get("gross_mj")}
    return dataclasses.replace(record, **changes)  # type: ignore[arg-type]


def _derived(
    protocol: str,
    repeats: int,
    start: WindowEdge | None,
    end: WindowEdge | None,
    *,
    before: IdleWindow | None,
    after: IdleWindow | None,
    energy: EnergyMeasurement,
) -> EnergyMeasurement:
    around = Surroundings(energy.tick_period_s, energy.wander)
    if energy.segments:
        first_s, last_s = span_s(energy)
        counter_j = (energy.segments[-1].end.energy_mj - energy.segments[0].start.energy_mj) / 1000
        return dataclasses.replace(
            energy,
            figures=interleaved_figures(energy.segments, around),
            meters=_meters(energy, lambda samples: _both(counter_j, integrate_j(samples, first_s, last_s), None)),
        )
    first, last = _reading(start), _reading(end)
    aligned = energy.aligned
    if first is None or last is None or before is None or after is None or aligned is None:
        return dataclasses.replace(energy, figures=[])
    audited = energy.audited
    if audited is not None:
        audited = dataclasses.replace(
            audited, idle_before=_powered(audited.idle_before), idle_after=_powered(audited.idle_after)
        )
    return dataclasses.replace(
        energy,
        audited=audited,
        figures=window_figures(
            repeats,
            first,
            last,
            before,
            after,
            aligned=aligned,
            audited=audited,
            around=around,
            settled=protocol == TRIAL,
        ),
        sham=_sham(energy.sham) if energy.sham else None,
        meters=_meters(energy, lambda samples: _around_work(repeats, aligned, samples)),
    )


def span_s(energy: EnergyMeasurement) -> tuple[float, float]:
    """First and last moment that a round's figures rest on, monotonic s; raises ``ValueError`` where it has none."""
    if energy.segments:
        return edge_time_s(energy.segments[0].start), edge_time_s(energy.segments[-1].end)
    if energy.aligned is None:
        raise ValueError("a round without readings has no span")
    return edge_time_s(energy.aligned.idle_before[0]), edge_time_s(energy.aligned.idle_after[-1])


def _sham(sham: ShamWindow) -> ShamWindow:
    before, after = _powered(sham.idle_before), _powered(sham.idle_after)
    windows = Windows(sham.repeats, sham.start, sham.end, before, after)
    energy_mj = sham.end.energy_mj - sham.start.energy_mj
    adjusted = (energy_mj - windows.idle_w * windows.seconds * 1000) / sham.repeats
    return dataclasses.replace(sham, idle_before=before, idle_after=after, adjusted_mj=adjusted)


def _meters(
    energy: EnergyMeasurement, compare: Callable[[Sequence[Sample]], MeterComparison]
) -> MeterComparison | None:
    """Both meters, compared where the samples reach; None where they do not: the sampling gate says why."""
    if energy.trace is None or energy.trace.error is not None:
        return None
    try:
        return compare(read_samples(energy.trace))
    except InvalidMeasurement:
        return None


def _around_work(replays: int, aligned: AlignedReadings, samples: Sequence[Sample]) -> MeterComparison:
    """From the step before the work to the first one after it; and the adjusted energy by sampled power alone."""
    start, tail, end = (edge_time_s(e) for e in (aligned.active_start, aligned.tail_start, aligned.active_end))
    idle = []
    for edges in (aligned.idle_before, aligned.idle_after):
        window = edge_time_s(edges[0]), edge_time_s(edges[-1])
        idle.append(integrate_j(samples, *window) / (window[1] - window[0]))
    above_j = integrate_j(samples, start, end) - statistics.mean(idle) * (end - start)
    counter_j = (aligned.tail_start.energy_mj - aligned.active_start.energy_mj) / 1000
    return _both(counter_j, integrate_j(samples, start, tail), 1000 * above_j / replays)


def _both(counter_j: float, integrated_j: float, power_integral_mj: float | None) -> MeterComparison:
    return MeterComparison(counter_j, integrated_j, integrated_j / counter_j - 1, power_integral_mj)


def _reading(edge: WindowEdge | None) -> CounterReading | None:
    if edge is None or edge.energy_mj is None:
        return None
    return CounterReading(edge.energy_mj, edge.time_s, edge.read_duration_s)


def _powered(window: IdleWindow) -> IdleWindow:
    return dataclasses.replace(window, power_w=idle_power_w(window.start, window.end))


def _with_power(window: IdleWindow | None) -> IdleWindow | None:
    return None if window is None else _powered(window)
