"""One figure of a run against the same figure of its baseline: the round-spread rule and what it can see.

Two tests must agree before a median counts as changed, or as unchanged: it is outside (within) the round spread of the
baseline, and its distance from the baseline's median is at least (at most) what counts: the detectable difference, or
the floor where that is larger. A true change of just the detectable difference moves the measured median by more on one
night and by less on the next: with seven rounds against seven it is found on 45 nights of 100, one of 1.5 times the
size on 84, and without any change 1 in 100 is a false alarm.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regression.detectors.detectable import detectable_difference
from regression.detectors.verdict import CheckVerdict, Verdict

WITHIN = "within_spread"
UNDETECTABLE = "below_detectable_difference"
WIDE = "within_wide_spread"
SMALL = "below_floor"


@dataclass(frozen=True)
class SpreadRule:
    """What is compared. ``name`` begins the reason codes, ``unit`` is that of the figures and of ``details``.

    ``less`` is the verdict on less with the same kernel, and ``less_means`` what is said of it then.
    """

    name: str
    unit: str
    less: Verdict
    less_means: str

    @property
    def above(self) -> str:
        """Reason code of more than the spread."""
        return f"{self.name}_above_spread"

    @property
    def below(self) -> str:
        """Reason code of less than the spread with the same, or an unknown, kernel."""
        return f"{self.name}_below_spread"

    @property
    def below_and_changed(self) -> str:
        """Reason code of less than the spread with another kernel."""
        return f"{self.name}_below_spread_kernel_changed"


@dataclass(frozen=True)
class Comparison:
    """Verdict on one figure, with what it was made from; figures in the unit of ``rule``.

    ``low`` to ``high`` is the round spread of the baseline. ``detectable`` is how far the medians must be apart to
    count as different, ``floor`` how far to matter. ``direction`` is None within the spread and not farther than that.
    """

    rule: SpreadRule
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
    floor: float

    def as_json(self) -> dict[str, Any]:
        """The spreads and the detectable difference, the latter in percent of the baseline's median as well."""
        percent, unit = None, self.rule.unit.lower()
        if self.detectable is not None and self.baseline_median:
            percent = self.detectable / abs(self.baseline_median) * 100
        return {
            f"sample_sd_{unit}": self.sample_sd,
            f"baseline_sample_sd_{unit}": self.baseline_sample_sd,
            f"detectable_{unit}": self.detectable,
            "detectable_percent": percent,
            **({f"floor_{unit}": self.floor} if self.floor else {}),
        }


def compare(
    values: Sequence[float],
    baseline: Sequence[float],
    *,
    rule: SpreadRule,
    kernel_changed: bool,
    floor: float = 0.0,
) -> Comparison:
    """Hold the median of ``values`` against the spread of ``baseline``; both have one value at least.

    Out of the spread but nearer to the baseline's median than the detectable difference is inconclusive: with seven
    rounds the spread alone would fire on one unchanged night in fourteen. So is within the spread but farther: a
    baseline whose rounds scatter must not hide a change. A change that can be seen to be less than ``floor`` is fine.
    """
    median, middle = statistics.median(values), statistics.median(baseline)
    low, high = min(baseline), max(baseline)
    detectable = detectable_difference(values, baseline)
    moved = abs(median - middle)
    direction: str | None = "higher" if median > middle else "lower"
    if low <= median <= high:
        if detectable is None or moved <= max(detectable, floor):
            verdict, code, direction = Verdict.OK, WITHIN, None
        else:
            verdict, code = Verdict.INCONCLUSIVE, WIDE
    elif detectable is None or moved < max(detectable, floor):
        fine = detectable is not None and detectable <= floor
        verdict, code = (Verdict.OK, SMALL) if fine else (Verdict.INCONCLUSIVE, UNDETECTABLE)
    elif direction == "higher":
        verdict, code = Verdict.REGRESSED, rule.above
    elif kernel_changed:
        verdict, code = Verdict.IMPROVED, rule.below_and_changed
    else:
        verdict, code = rule.less, rule.below
    spreads = (_sample_sd(values), _sample_sd(baseline))
    return Comparison(
        rule, verdict, code, direction, median, spreads[0], middle, spreads[1], low, high, detectable, floor
    )


def explain(found: Comparison, figures: str, against: str, *, kernel_changed: bool) -> str:
    """One line on a comparison: ``figures`` are the run's, ``against`` the spread of its baseline."""
    unit, middle = found.rule.unit, found.baseline_median
    counts = None if found.detectable is None else max(found.detectable, found.floor)
    least = _amount(counts, middle, unit)
    if found.direction is None:
        return f"{figures} is within {against}; a change of {least} would have been found about every second time"
    moved = _amount(abs(found.median - middle), middle, unit)
    side = "above" if found.direction == "higher" else "below"
    if found.code == WIDE:
        text = f"{figures} is within {against}, but {moved} {side} its median, and a change counts from {least} on"
        return f"{text}: a spread as wide as that does not show that nothing changed"
    if found.code in (UNDETECTABLE, SMALL):
        return f"{figures} is {side} {against}, but {moved} from its median, and a change counts from {least} on"
    # One percent only, that of the subject of an alert: the distance from the edge decides nothing by itself.
    text = f"{figures} is {side} {against}, {moved} from its median; a change counts from {least} on"
    if kernel_changed:
        return f"{text}; the kernel is another one than the baseline's"
    return f"{text}; {found.rule.less_means}" if found.code == found.rule.below else text


def _sample_sd(values: Sequence[float]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None


def _amount(difference: float | None, of: float, unit: str) -> str:
    """A difference with its unit and, where what it is of is not zero, in percent."""
    if difference is None:
        return "an unknown amount"
    percent = f" ({difference / abs(of) * 100:.2g} %)" if of else ""
    return f"{difference:.3g} {unit}{percent}"


def spread_verdict(check: str, metric: str, found: Comparison, reason: str, details: Mapping[str, Any]) -> CheckVerdict:
    """The comparison as the verdict of a check, with its own figures in ``details`` besides the check's."""
    return CheckVerdict(
        check=check,
        verdict=found.verdict,
        metric=metric,
        unit=found.rule.unit,
        reason_code=found.code,
        reason=reason,
        value=found.median,
        baseline_value=found.baseline_median,
        baseline_low=found.low,
        baseline_high=found.high,
        direction=found.direction,
        details={**found.as_json(), **details},
    )
