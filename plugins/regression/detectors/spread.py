"""One energy figure of a run against the same figure of its baseline: the round-spread rule and what it can see.

Two tests must agree before a median counts as changed, or as unchanged: it is outside (within) the round spread of the
baseline, and its distance from the baseline's median is at least (at most) the detectable difference. A true change of
just that size moves the measured median by more on one night and by less on the next: with seven rounds against seven
it is found on 45 nights of 100, one of 1.5 times the size on 84, and without any change 1 in 100 is a false alarm.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regression.detectors.detectable import detectable_difference
from regression.detectors.verdict import Verdict

WITHIN, ABOVE, BELOW = "within_spread", "energy_above_spread", "energy_below_spread"
BELOW_AND_CHANGED = "energy_below_spread_kernel_changed"
UNDETECTABLE = "below_detectable_difference"
WIDE = "within_wide_spread"


@dataclass(frozen=True)
class Comparison:
    """Verdict on one figure, with what it was made from; energies in mJ a replay.

    ``low`` to ``high`` is the round spread of the baseline. ``detectable`` is how far the medians must be apart to
    count as different. ``direction`` is None within the spread and not farther than that.
    """

    verdict: Verdict
    code: str
    direction: str | None
    median: float
    sample_sd: float | None
    baseline_median: float
    baseline_sample_sd: float | None
    low: float
    high: float
    detectable: float | None

    def as_json(self) -> dict[str, Any]:
        """The spreads and the detectable difference, the latter in percent of the baseline's median as well."""
        percent = None
        if self.detectable is not None and self.baseline_median:
            percent = self.detectable / abs(self.baseline_median) * 100
        return {
            "sample_sd_mj": self.sample_sd,
            "baseline_sample_sd_mj": self.baseline_sample_sd,
            "detectable_mj": self.detectable,
            "detectable_percent": percent,
        }


def compare(values: Sequence[float], baseline: Sequence[float], *, kernel_changed: bool) -> Comparison:
    """Hold the median of ``values`` against the spread of ``baseline``; both have one value at least.

    Out of the spread but nearer to the baseline's median than the detectable difference is inconclusive: with seven
    rounds the spread alone would fire on one unchanged night in fourteen. So is within the spread but farther: a
    baseline whose rounds scatter must not hide a change. Less energy is an improvement only where the kernel is known
    to be another one.
    """
    median, middle = statistics.median(values), statistics.median(baseline)
    low, high = min(baseline), max(baseline)
    detectable = detectable_difference(values, baseline)
    moved = abs(median - middle)
    direction: str | None = "higher" if median > middle else "lower"
    if low <= median <= high:
        if detectable is None or moved <= detectable:
            verdict, code, direction = Verdict.OK, WITHIN, None
        else:
            verdict, code = Verdict.INCONCLUSIVE, WIDE
    elif detectable is None or moved < detectable:
        verdict, code = Verdict.INCONCLUSIVE, UNDETECTABLE
    elif direction == "higher":
        verdict, code = Verdict.REGRESSED, ABOVE
    elif kernel_changed:
        verdict, code = Verdict.IMPROVED, BELOW_AND_CHANGED
    else:
        verdict, code = Verdict.REGRESSED, BELOW
    spreads = (_sample_sd(values), _sample_sd(baseline))
    return Comparison(verdict, code, direction, median, spreads[0], middle, spreads[1], low, high, detectable)


def explain(found: Comparison, figures: str, against: str, *, kernel_changed: bool) -> str:
    """One line on a comparison: ``figures`` are the run's, ``against`` the spread of its baseline."""
    least = _amount(found.detectable, found.baseline_median)
    if found.direction is None:
        return f"{figures} is within {against}; a change of {least} would have been found about every second time"
    moved = _amount(abs(found.median - found.baseline_median), found.baseline_median)
    side = "above" if found.direction == "higher" else "below"
    if found.code == WIDE:
        text = f"{figures} is within {against}, but {moved} {side} its median, and a change counts from {least} on"
        return f"{text}: a spread as wide as that does not show that nothing changed"
    edge = found.high if found.direction == "higher" else found.low
    text = f"{figures} is {_amount(abs(found.median - edge), edge)} {side} {against}"
    if found.code == UNDETECTABLE:
        return f"{text}, but {moved} from its median, and a change counts from {least} on"
    text += f"; a change counts from {least} on"
    if kernel_changed:
        return f"{text}; the kernel is another one than the baseline's"
    return f"{text}; with an unchanged kernel that means that work went missing" if found.code == BELOW else text


def _sample_sd(values: Sequence[float]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None


def _amount(difference: float | None, of: float) -> str:
    """A difference in mJ and, where what it is of is not zero, in percent."""
    if difference is None:
        return "an unknown amount"
    percent = f" ({difference / abs(of) * 100:.2g} %)" if of else ""
    return f"{difference:.3g} mJ{percent}"
