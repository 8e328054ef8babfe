"""Derived figures: the one place where raw counters become milliseconds, millijoules and watts.

Every stored figure can be recomputed from the stored readings with these functions, to the last bit: the order of
the operations is part of the definition.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from gpu_tasks.energy.quantiles import detectable_difference
from gpu_tasks.records import (
    CounterReading,
    FigureSummary,
    IdleWindow,
    RoundRecord,
    Summary,
    TelemetryRecord,
    ValidationRecord,
    WindowEdge,
)

TRIAL_MS, MOST_TRIAL_REPEATS = 5000.0, 1000
"""A trial is as many tasks as fill this time, up to a limit."""


@dataclass(frozen=True)
class RoundFigures:
    """Figures of one round; per replay where the unit is ms or mJ. Energy is null without a counter."""

    wall_ms: float
    gross_mj: float | None
    adjusted_mj: float | None
    idle_before_w: float | None
    idle_after_w: float | None
    average_power_w: float | None


def trial_repeats(calibration_ms: float) -> int:
    """Tasks of a trial: ``min(1000, ceil(5000 / calibration_ms))``."""
    return min(MOST_TRIAL_REPEATS, math.ceil(TRIAL_MS / calibration_ms))


def idle_power_w(start: CounterReading, end: CounterReading) -> float:
    """Mean power of an idle window in W: ``dE / 1000 / dt`` with dE in mJ and dt in s."""
    return (end.energy_mj - start.energy_mj) / 1000 / (end.time_s - start.time_s)


def round_figures(
    repeats: int, start: WindowEdge, end: WindowEdge, before: IdleWindow | None, after: IdleWindow | None
) -> RoundFigures:
    """Figures of ``repeats`` replays between two edges, with the idle windows on either side.

    ``wall_ms = 1000*(t_end - t_start)/repeats``; ``gross_mj = (E_end - E_start)/repeats``;
    ``adjusted_mj = (E_end - E_start - mean(idle_before_w, idle_after_w)*(t_end - t_start)*1000)/repeats``, which may be
    negative and is kept so; ``average_power_w = (E_end - E_start)/1000/(t_end - t_start)``.
    """
    seconds = end.time_s - start.time_s
    wall_ms = 1000 * seconds / repeats
    if start.energy_mj is None or end.energy_mj is None or before is None or after is None:
        return RoundFigures(wall_ms, None, None, None, None, None)
    energy_mj = end.energy_mj - start.energy_mj
    before_w, after_w = idle_power_w(before.start, before.end), idle_power_w(after.start, after.end)
    return RoundFigures(
        wall_ms=wall_ms,
        gross_mj=energy_mj / repeats,
        adjusted_mj=(energy_mj - (before_w + after_w) / 2 * seconds * 1000) / repeats,
        idle_before_w=before_w,
        idle_after_w=after_w,
        average_power_w=energy_mj / 1000 / seconds,
    )


def summarise(
    draws_expected: int,
    validations: Sequence[ValidationRecord],
    rounds_expected: int,
    rounds: Sequence[RoundRecord],
    telemetry: Sequence[TelemetryRecord] = (),
) -> Summary:
    """Counts over the draws that ran and medians over the valid rounds.

    A median is null unless every valid round has the figure: a median of what happens to be there would be of
    another sample than its neighbours.
    """
    ran = [record for record in validations if record.agreed is not None]
    valid = [record for record in rounds if record.valid]
    adjusted = _all_or_nothing([record.adjusted_mj for record in valid])
    loads = [record.reference_load.joules_per_1e12_operations for record in telemetry if record.reference_load]
    reference = statistics.mean(loads) if loads else None
    return Summary(
        draws_expected=draws_expected,
        draws_validated=len(ran),
        total=_total([record.total for record in ran]),
        agreed=_total([record.agreed for record in ran]),
        device_correct=_total([record.device_correct for record in ran]),
        reference_correct=_total([record.reference_correct for record in ran]),
        all_replays_equal_eager=all(all(record.replays_equal_eager) for record in ran) if ran else None,
        rounds_expected=rounds_expected,
        rounds_valid=len(valid),
        cuda_ms_median=_median([record.cuda_ms for record in valid]),
        wall_ms_median=_median([record.wall_ms for record in valid]),
        gross_mj_median=_median([record.gross_mj for record in valid]),
        adjusted_mj_median=statistics.median(adjusted) if adjusted else None,
        adjusted_mj_min=min(adjusted, default=None),
        adjusted_mj_max=max(adjusted, default=None),
        adjusted_mj_sample_sd=statistics.stdev(adjusted) if len(adjusted) > 1 else None,
        negative_adjusted_rounds=sum(value < 0 for value in adjusted) if adjusted else None,
        energy=figure_summaries(valid, reference),
        reference_joules_per_1e12_operations=reference,
    )


def figure_summaries(valid: Sequence[RoundRecord], reference_j: float | None) -> list[FigureSummary]:
    """Every energy figure that all ``valid`` rounds have, summarised over them.

    ``reference_j`` are the joules per 10^12 operations of the reference load in the same run; a median in mJ divided
    by them is in units of 10^9 operations.
    """
    figures = [record.energy.figures for record in valid if record.energy is not None]
    if not figures or len(figures) < len(valid):
        return []
    found = []
    for first in figures[0]:
        same = [
            f.adjusted_mj for each in figures for f in each if (f.figure, f.subject) == (first.figure, first.subject)
        ]
        if len(same) < len(valid):
            continue
        sd = statistics.stdev(same) if len(same) > 1 else None
        median = statistics.median(same)
        found.append(
            FigureSummary(
                figure=first.figure,
                subject=first.subject,
                rounds=len(same),
                median_mj=median,
                min_mj=min(same),
                max_mj=max(same),
                sample_sd_mj=sd,
                detectable_mj=None if sd is None else detectable_difference(sd, len(same)),
                per_reference_load=median / reference_j if reference_j and reference_j > 0 else None,
            )
        )
    return found


def _all_or_nothing(values: Sequence[float | None]) -> list[float]:
    present = [value for value in values if value is not None]
    return present if len(present) == len(values) else []


def _median(values: Sequence[float | None]) -> float | None:
    present = _all_or_nothing(values)
    return statistics.median(present) if present else None


def _total(counts: Sequence[int | None]) -> int | None:
    present = [count for count in counts if count is not None]
    return sum(present) if present else None
