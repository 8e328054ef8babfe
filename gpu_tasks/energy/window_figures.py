"""Figures of a round that has windows: idle, work, idle, read plainly or at the counter's steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_tasks.energy.figures import idle_power_w
from gpu_tasks.energy.tail import power_tail
from gpu_tasks.energy.uncertainty import Stretch, Surroundings, Term, edge_time_s, uncertainty
from gpu_tasks.records import (
    TRIAL,
    AlignedReadings,
    AuditedReadings,
    CounterEdge,
    CounterReading,
    EnergyFigure,
    IdleWindow,
)

CANDIDATE = "candidate"


@dataclass(frozen=True)
class Windows:
    """Plain readings of one protocol: two idle windows around the active one, and what flowed in each."""

    replays: int
    start: CounterReading
    end: CounterReading
    before: IdleWindow
    after: IdleWindow

    @property
    def seconds(self) -> float:
        return self.end.time_s - self.start.time_s

    @property
    def idle_w(self) -> float:
        return (idle_power_w(self.before.start, self.before.end) + idle_power_w(self.after.start, self.after.end)) / 2

    @property
    def active_w(self) -> float:
        return (self.end.energy_mj - self.start.energy_mj) / 1000 / self.seconds


def window_figures(
    repeats: int,
    start: CounterReading,
    end: CounterReading,
    before: IdleWindow,
    after: IdleWindow,
    *,
    aligned: AlignedReadings,
    audited: AuditedReadings | None,
    around: Surroundings,
    settled: bool = False,
) -> list[EnergyFigure]:
    """The classic and the aligned figure, and the audited one where its windows were read.

    ``before`` and ``after`` are the classic idle windows around the work from ``start`` to ``end``; where the power
    had ``settled`` before both, they are a trial's, and the first figure is called so.
    """
    seconds = end.time_s - start.time_s
    active_w = (end.energy_mj - start.energy_mj) / 1000 / seconds
    idle_w = sum(share * edges_power_w(edges) for share, edges in _idle_shares(aligned))
    tail = power_tail(aligned, end.time_s, active_w, idle_w)
    settled_s = edge_time_s(aligned.active_end) - end.time_s
    found = _plain_figures(
        repeats,
        start,
        end,
        before,
        after,
        audited=audited,
        tail_mj=1000 * tail.energy_j,
        around=around,
        settled=settled,
    )
    return [
        found[0],
        _aligned_figure(repeats, seconds, aligned, around, left_mj=1000 * tail.left_j(settled_s)),
        *found[1:],
    ]


def _plain_figures(
    repeats: int,
    start: CounterReading,
    end: CounterReading,
    before: IdleWindow,
    after: IdleWindow,
    *,
    audited: AuditedReadings | None,
    tail_mj: float,
    around: Surroundings,
    settled: bool,
) -> list[EnergyFigure]:
    """The classic figure, and the audited one where its windows were read; ``tail_mj`` is the energy after the work."""
    classic = Windows(repeats, start, end, before, after)
    if settled:
        return [_plain_figure(TRIAL, classic, tail_bias_mj=-tail_mj / repeats, around=around)]
    # The tail is missing from the active window, and counts as idle power in the window that follows at once.
    after_s = after.end.time_s - after.start.time_s
    bias = -tail_mj / repeats * (1 + classic.seconds / (2 * after_s))
    found = [_plain_figure("classic", classic, tail_bias_mj=bias, around=around)]
    if audited is not None:
        windows = Windows(repeats, start, end, audited.idle_before, audited.idle_after)
        found.append(_plain_figure("audited", windows, tail_bias_mj=-tail_mj / repeats, around=around))
    return found


def _plain_figure(name: str, windows: Windows, *, tail_bias_mj: float, around: Surroundings) -> EnergyFigure:
    """A figure between plain readings: the classic formula on whatever idle windows the protocol has."""
    replays, idle_w, seconds = windows.replays, windows.idle_w, windows.seconds
    gross_mj = windows.end.energy_mj - windows.start.energy_mj
    value = (gross_mj - idle_w * seconds * 1000) / replays
    weight = 1 / replays
    terms = [Term(weight, windows.active_w, windows.end), Term(-weight, idle_w, windows.start)]
    stretches = [Stretch(windows.start.time_s, windows.end.time_s, seconds / replays)]
    for window in (windows.before, windows.after):
        length = window.end.time_s - window.start.time_s
        share = weight * seconds / (2 * length)
        # An idle window that begins with the reading that ended the work begins with power of the work.
        begins = windows.active_w if window.start.energy_mj == windows.end.energy_mj else idle_w
        terms += [Term(-share, idle_w, window.end), Term(share, begins, window.start)]
        stretches.append(Stretch(window.start.time_s, window.end.time_s, -seconds / replays / 2))
    sigma = uncertainty(value, terms, stretches, around, other_bias_mj=tail_bias_mj)
    return EnergyFigure(name, CANDIDATE, value, gross_mj / replays, idle_w, sigma)


def _aligned_figure(
    replays: int, active_s: float, aligned: AlignedReadings, around: Surroundings, *, left_mj: float
) -> EnergyFigure:
    """From step to step: between the two around the work, what is not work is charged at idle power."""
    start, end = aligned.active_start, aligned.active_end
    seconds = edge_time_s(end) - edge_time_s(start)
    shares = _idle_shares(aligned)
    idle_w = sum(share * edges_power_w(edges) for share, edges in shares)
    value = (end.energy_mj - start.energy_mj - 1000 * idle_w * seconds) / replays
    weights: dict[CounterEdge, float] = {}
    stretches = [Stretch(edge_time_s(start), edge_time_s(end), seconds / replays)]

    def add(edge: CounterEdge, weight: float) -> None:
        weights[edge] = weights.get(edge, 0.0) + weight

    add(end, 1 / replays)
    add(start, -1 / replays)
    for share, edges in shares:
        length = edge_time_s(edges[-1]) - edge_time_s(edges[0])
        add(edges[-1], -share * seconds / (length * replays))
        add(edges[0], share * seconds / (length * replays))
        stretches.append(Stretch(edge_time_s(edges[0]), edge_time_s(edges[-1]), -share * seconds / replays))
    # What of the tail comes after the power was taken for settled is missing, and counts as idle power besides.
    after_share, after_s = shares[1][0], edge_time_s(aligned.idle_after[-1]) - edge_time_s(end)
    sigma = uncertainty(
        value,
        [Term(weight, idle_w, edge) for edge, weight in weights.items()],
        stretches,
        around,
        other_bias_mj=-left_mj / replays * (1 + after_share * seconds / after_s),
    )
    return EnergyFigure("aligned", CANDIDATE, value, value + 1000 * idle_w * active_s / replays, idle_w, sigma)


def edges_power_w(edges: Sequence[CounterEdge]) -> float:
    """Mean power in W between the first and the last of counter steps."""
    seconds = edge_time_s(edges[-1]) - edge_time_s(edges[0])
    return (edges[-1].energy_mj - edges[0].energy_mj) / 1000 / seconds


def _idle_shares(aligned: AlignedReadings) -> list[tuple[float, list[CounterEdge]]]:
    """Each idle window with its share in the idle power at the middle of the work.

    On the line through the middles of both windows, so that a steady drift cancels though they are not of one length.
    """
    work = (edge_time_s(aligned.active_start) + edge_time_s(aligned.active_end)) / 2
    before, after = (
        (edge_time_s(edges[0]) + edge_time_s(edges[-1])) / 2 for edges in (aligned.idle_before, aligned.idle_after)
    )
    share = (after - work) / (after - before)
    return [(share, aligned.idle_before), (1 - share, aligned.idle_after)]
