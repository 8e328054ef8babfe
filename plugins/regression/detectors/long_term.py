"""A figure against its own history: the history shift and the slow drift as one verdict, and the figures that have one.

The worse of the two is told. Where both say the same, the shift is: it says since when. A history that is long enough
for the shift and too short for the drift is judged by the shift alone.

Where the rounds of a protocol have its energy by a figure that scatters much less (``energy.SHARPER``), that one has a
history of its own. Both are looked at as soon as it is long enough, each at the threshold that leaves the two of them
together the false alerts of one; the worse is told, and where they agree the sharper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from regression.detectors.drift import DEFAULT as DRIFT
from regression.detectors.drift import DriftSettings, slow_drift
from regression.detectors.energy import SHARPER
from regression.detectors.history import DEFAULT as SHIFT
from regression.detectors.history import HistorySettings, history_shift, worse_of
from regression.detectors.series import Metric, Series, usable_nights
from regression.detectors.time import EVENT_STEP_MS
from regression.detectors.verdict import CheckVerdict, Verdict

ENERGY, TIME = "energy", "time"
COUNTER_STEP_MJ = 1.0
"""What the energy counter tells apart."""
HOST_STEP_MS = 0.001
"""What the host's clock tells apart around a window."""


@dataclass(frozen=True)
class HistoryMetric:
    """A figure that is held against its history: the name of its check, and what it belongs to, energy or time.

    ``step`` is what its meter tells apart at each end of a window, in the metric's unit over all replays of it; None
    for a figure that is not one of replays. ``figure`` is the energy that it is, by its name among those of the rounds;
    None for the run's own.
    """

    check: str
    group: str
    metric: Metric
    step: float | None = None
    figure: str | None = None

    def over(self, repeats: int | None) -> Metric:
        """The metric with the absolute floor of a window of ``repeats`` replays."""
        if not self.step or not repeats:
            return self.metric
        return replace(self.metric, absolute_floor=max(self.metric.absolute_floor, 2 * self.step / repeats))


ADJUSTED = HistoryMetric(
    "energy_history", ENERGY, Metric("adjusted_energy_per_replay", "mJ", positive=False), COUNTER_STEP_MJ
)
GROSS = HistoryMetric("gross_energy_history", ENERGY, Metric("gross_energy_per_replay", "mJ"), COUNTER_STEP_MJ)
IDLE = HistoryMetric(
    "idle_power_history", ENERGY, Metric("idle_power", "W", relative_floor=0.05, absolute_floor=1.0)
)  # the room's temperature alone moves it by a few percent
CUDA = HistoryMetric("time_history", TIME, Metric("cuda_time_per_replay", "ms"), EVENT_STEP_MS)
WALL = HistoryMetric(
    "wall_time_history", TIME, Metric("wall_time_per_replay", "ms", relative_floor=0.02), HOST_STEP_MS
)  # the host's own work is in it
METRICS = (ADJUSTED, GROSS, IDLE, CUDA, WALL)


def looked_at(metric: HistoryMetric, protocol: str) -> tuple[HistoryMetric, ...]:
    """The figures that ``metric`` is judged by in runs of ``protocol``: its own, and the sharper one where it has one.

    Each knows how many they are.
    """
    figure = SHARPER.get(protocol)
    if metric != ADJUSTED or figure is None:
        return (metric,)
    sharper = replace(metric.metric, name=f"{figure}_{metric.metric.name}")
    both = (metric, replace(metric, metric=sharper, figure=figure))
    return tuple(replace(one, metric=replace(one.metric, looks=len(both))) for one in both)


def metric_names(metric: HistoryMetric) -> frozenset[str]:
    """Names of the metrics that its check may be of, whatever the protocol."""
    return frozenset({metric.metric.name}.union(*({m.metric.name for m in looked_at(metric, p)} for p in SHARPER)))


def judge_long_term(
    check: str,
    series: Series,
    shift: HistorySettings = SHIFT,
    drift: DriftSettings = DRIFT,
) -> CheckVerdict:
    """The worse of history shift and slow drift of the newest figure of ``series``, as the verdict of ``check``.

    ``details["detector"]`` names the one that is told, ``details["other"]`` has what the other one says.
    """
    nights = usable_nights(series)
    moved, crept = history_shift(series.metric, nights, shift), slow_drift(series.metric, nights, drift)
    told = worse_of(moved, crept)
    other = crept if told is moved else moved
    return replace(told, check=check, details={**told.details, "detector": told.check, "other": _beside(other)})


def judge_both(check: str, own: Series, sharper: Series, protocol: str) -> CheckVerdict:
    """The worse verdict on a protocol's own figure and on its sharper one; what the other says stands beside.

    Both series know that they are two (``looked_at``). As long as the sharper one has no history to be judged by, its
    own is judged alone, as if there were no other, whether the sharper one is there tonight or not. From then on a
    figure that is gone tonight is invalid, which does not hide that the other one regressed. ``details["figure"]``
    names the one that is told.
    """
    figure, keen = SHARPER[protocol], judge_long_term(check, sharper)
    history = len(usable_nights(sharper))
    if history < SHIFT.needed:
        alone = judge_long_term(check, replace(own, metric=replace(own.metric, looks=1)))
        beside = f"; {figure} not judged yet: {keen.reason_code}" if history else ""
        return replace(alone, reason=alone.reason + beside, details={**alone.details, "figure": protocol})
    plain = judge_long_term(check, own)
    regressed = [one for one in (keen, plain) if one.verdict is Verdict.REGRESSED]
    told = regressed[0] if regressed else worse_of(keen, plain)
    name, other_name, other = (figure, protocol, plain) if told is keen else (protocol, figure, keen)
    amount = "" if other.value is None else f", {other.value:.4g} {own.metric.unit}"
    return replace(
        told,
        metric=own.metric.name,
        reason=f"{name} energy {told.reason}; {other_name} alone: {other.verdict.value}{amount}",
        details={**told.details, "figure": name, "other_figure": _beside(other)},
    )


def _beside(other: CheckVerdict) -> dict[str, str]:
    return {"verdict": other.verdict.value, "reason_code": other.reason_code, "reason": other.reason}
