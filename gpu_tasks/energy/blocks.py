"""Figures of each block of interleaved rounds: the pairs that a comparison of two kernels rests on."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from gpu_tasks.energy.interleaved import BASELINE, CANDIDATE, CONTROL, IDLE
from gpu_tasks.energy.uncertainty import edge_time_s
from gpu_tasks.records import BlockFigures, RoundRecord, Segment, TimedTurn


def block_figures(rounds: Sequence[RoundRecord], turns: Sequence[TimedTurn] = ()) -> list[BlockFigures]:
    """One for each block that was measured, in the order of rounds and blocks; those of an invalid round say so.

    Rounds without an energy counter have their times from ``turns``, and no energy.

    Energy of an arm as in ``interleaved_figures``: ``mean((E_k - P_idle*T_k)/N_k)`` over its segments k in the block,
    with the mean power of the block's own idle segments; times are weighted by replays.
    """
    found = []
    for record in rounds:
        timed = [turn for turn in turns if turn.round == record.round]
        parts: Sequence[Segment | TimedTurn] = record.energy.segments if record.energy else timed
        for block in dict.fromkeys(part.block for part in parts):
            own = [part for part in parts if part.block == block]
            arms = {arm: [s for s in own if s.arm == arm] for arm in (CANDIDATE, BASELINE, CONTROL)}
            idle = [_power_w(s) for s in own if s.arm == IDLE and isinstance(s, Segment)]
            idle_w = statistics.mean(idle) if idle else None
            found.append(
                BlockFigures(
                    round=record.round,
                    block=block,
                    valid=record.valid,
                    candidate_mj=_adjusted_mj(arms[CANDIDATE], idle_w),
                    pinned_mj=_adjusted_mj(arms[BASELINE], idle_w),
                    control_mj=_adjusted_mj(arms[CONTROL], idle_w),
                    candidate_cuda_ms=_cuda_ms(arms[CANDIDATE]),
                    pinned_cuda_ms=_cuda_ms(arms[BASELINE]),
                    candidate_wall_ms=_wall_ms(arms[CANDIDATE]),
                    pinned_wall_ms=_wall_ms(arms[BASELINE]),
                )
            )
    return found


def candidate_ms(turns: Sequence[TimedTurn]) -> float | None:
    """The device's time of one replay of the candidate over all its turns; None without one."""
    return _cuda_ms([turn for turn in turns if turn.arm == CANDIDATE])


def _adjusted_mj(parts: Sequence[Segment | TimedTurn], idle_w: float | None) -> float | None:
    segments = [part for part in parts if isinstance(part, Segment)]
    if not segments or idle_w is None:
        return None
    energies = [(s.end.energy_mj - s.start.energy_mj - 1000 * idle_w * _seconds(s)) / s.repeats for s in segments]
    return statistics.mean(energies)


def _cuda_ms(segments: Sequence[Segment | TimedTurn]) -> float | None:
    times = [segment.device_ms * segment.repeats for segment in segments if segment.device_ms is not None]
    if not segments or len(times) < len(segments):
        return None
    return sum(times) / sum(segment.repeats for segment in segments)


def _wall_ms(segments: Sequence[Segment | TimedTurn]) -> float | None:
    if not segments:
        return None
    return 1000 * sum(s.active_s for s in segments) / sum(s.repeats for s in segments)


def _power_w(segment: Segment) -> float:
    return (segment.end.energy_mj - segment.start.energy_mj) / 1000 / _seconds(segment)


def _seconds(segment: Segment) -> float:
    return edge_time_s(segment.end) - edge_time_s(segment.start)
