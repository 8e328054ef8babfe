"""Figures of interleaved blocks: arms that took turns within seconds, each against the idle segments of its block."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from gpu_tasks.energy.uncertainty import Stretch, Surroundings, Term, edge_time_s, uncertainty
from gpu_tasks.records import CounterEdge, EnergyFigure, Segment

IDLE, CONTROL, BASELINE, CANDIDATE = "idle", "control", "baseline", "candidate"
SHAM = "idle - idle"
DIFFERENCES = ((CANDIDATE, BASELINE), (CANDIDATE, CONTROL), (BASELINE, CONTROL))


def interleaved_figures(segments: Sequence[Segment], around: Surroundings) -> list[EnergyFigure]:
    """Energy of each arm above idle, and the differences between arms, mJ a replay, averaged over the blocks.

    An arm's energy in a block is ``mean((E_k - P_idle*T_k)/N_k)`` over its segments k, with the mean power of the
    block's idle segments. Everything is a weighted sum of segment energies, from which the uncertainty follows. The
    first idle segment of each block against its last, over the time of the candidate, is what nothing reads as.
    """
    idle_w = statistics.mean(_power_w(s) for s in segments if s.arm == IDLE)
    arms = {arm: _coefficients(segments, arm) for arm in (CANDIDATE, BASELINE, CONTROL)}
    wanted = {arm: found for arm, found in arms.items() if found}
    for one, other in DIFFERENCES:
        if one in wanted and other in wanted:
            wanted[f"{one} - {other}"] = [a - b for a, b in zip(arms[one], arms[other], strict=True)]
    wanted[SHAM] = _sham_coefficients(segments, arms[CANDIDATE])
    return [_figure(subject, coefficients, segments, idle_w, around) for subject, coefficients in wanted.items()]


def segment_times_ms(segments: Sequence[Segment]) -> dict[str, float | None]:
    """``cuda_ms`` and ``wall_ms`` of one replay of the candidate, over all its segments."""
    own = [s for s in segments if s.arm == CANDIDATE]
    replays = sum(s.repeats for s in own)
    device = [s.device_ms * s.repeats for s in own if s.device_ms is not None]
    return {
        "cuda_ms": sum(device) / replays if len(device) == len(own) else None,
        "wall_ms": 1000 * sum(s.active_s for s in own) / replays,
    }


def _coefficients(segments: Sequence[Segment], arm: str) -> list[float]:
    """Weight of each segment's energy in the arm's figure (1/replays); empty where the arm has no segment."""
    blocks = sorted({s.block for s in segments})
    found = [0.0] * len(segments)
    for block in blocks:
        own = [k for k, s in enumerate(segments) if s.block == block and s.arm == arm]
        idle = [k for k, s in enumerate(segments) if s.block == block and s.arm == IDLE]
        if not own:
            return []
        for k in own:
            found[k] = 1 / (len(blocks) * len(own) * segments[k].repeats)
        charged = sum(found[k] * _seconds(segments[k]) for k in own)
        for k in idle:
            found[k] = -charged / (len(idle) * _seconds(segments[k]))
    return found


def _sham_coefficients(segments: Sequence[Segment], candidate: Sequence[float]) -> list[float]:
    """The weights that the candidate gives idle segments, the second half of each block's taken off the first."""
    found = [0.0] * len(segments)
    for block in {s.block for s in segments}:
        idle = [k for k, s in enumerate(segments) if s.block == block and s.arm == IDLE]
        for k in idle:
            found[k] = -candidate[k] if k < idle[len(idle) // 2] else candidate[k]
    return found


def _figure(
    subject: str,
    coefficients: Sequence[float],
    segments: Sequence[Segment],
    idle_w: float,
    around: Surroundings,
) -> EnergyFigure:
    value = 0.0
    weights: dict[CounterEdge, float] = {}
    stretches = []
    for weight, segment in zip(coefficients, segments, strict=True):
        value += weight * (segment.end.energy_mj - segment.start.energy_mj)
        # Neighbours share an edge: its error counts once, with what is left of both weights.
        weights[segment.end] = weights.get(segment.end, 0.0) + weight
        weights[segment.start] = weights.get(segment.start, 0.0) - weight
        start, end = edge_time_s(segment.start), edge_time_s(segment.end)
        stretches.append(Stretch(start, end, weight * (end - start)))
    terms = [Term(weight, idle_w, edge) for edge, weight in weights.items()]
    sigma = uncertainty(value, terms, stretches, around)
    return EnergyFigure("interleaved", subject, value, None, idle_w, sigma)


def _seconds(segment: Segment) -> float:
    return edge_time_s(segment.end) - edge_time_s(segment.start)


def _power_w(segment: Segment) -> float:
    return (segment.end.energy_mj - segment.start.energy_mj) / 1000 / _seconds(segment)
