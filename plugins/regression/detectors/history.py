"""History shift: has the figure moved, to the side and for as many nights as it takes to be sure?

The newest nights are held against the usual behaviour of the nights before them (``reference``). For each of the last
nights, the evidence for a lasting step that began there is computed; a step is told when the evidence exceeds a
threshold and the step is as large as both floors of the metric. One large step is told on its first night, a smaller
one when enough nights agree: the test over all onsets is the sequential one of Willsky and Jones (1976), whose power is
near to that of a CUSUM (Page, Biometrika 41, 1954) made for the very step. The threshold is calibrated by simulation
under re-analysis every night, for the whole of it: ``docs/detection.md`` has the figures and the command.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from regression.detectors.reference import Recent, Reference, hold_against, learn, raw_threshold, step_evidence
from regression.detectors.robust import hodges_lehmann
from regression.detectors.series import HIGHER, LOWER, Floats, Metric, Nights, Series, usable_nights
from regression.detectors.verdict import CheckVerdict, Verdict

CHECK = "history"
WORSE = (Verdict.INCONCLUSIVE, Verdict.OK, Verdict.IMPROVED, Verdict.REGRESSED, Verdict.INVALID)
"""In rising order, of two looks at one figure: that one of them lacks history takes nothing from the other."""
CAP_OVER_THRESHOLD = 1.08
"""How far over the threshold of a first night one night may count: not enough to carry a quiet one after it."""


@dataclass(frozen=True)
class HistorySettings:
    """``threshold`` is a normal score; it is ``first_night`` higher for a single night, and grows by ``late_growth``
    for each night that an onset is older than six.

    At most ``window_nights`` newest nights are searched for an onset (a fifth of a short history); the reference is
    the ``reference_nights`` before them at most and ``minimum_reference`` at least.
    """

    threshold: float = 3.86
    first_night: float = 0.06
    late_growth: float = 0.04
    window_nights: int = 20
    reference_nights: int = 180
    minimum_reference: int = 12

    @property
    def needed(self) -> int:
        """Usable nights, the one under judgement among them, of a history that can be judged."""
        return self.minimum_reference + 1

    def thresholds(self, nights: int) -> Floats:
        """Threshold for an onset at each of the last ``nights`` nights, the oldest first."""
        age = np.arange(nights, 0, -1, dtype=np.float64)
        found = self.threshold + self.late_growth * np.maximum(0.0, age - 6)
        found[-1] += self.first_night
        return found


DEFAULT = HistorySettings()


def judge_history(series: Series, settings: HistorySettings = DEFAULT) -> CheckVerdict:
    """Judge the newest figure of ``series`` by those before it; figures in the unit of its metric."""
    return history_shift(series.metric, usable_nights(series), settings)


def history_shift(metric: Metric, nights: Nights, settings: HistorySettings = DEFAULT) -> CheckVerdict:
    """The same on nights that are in order already."""
    missing = nothing_to_judge(CHECK, metric, nights, settings.needed)
    if missing:
        return missing
    settings = replace(settings, threshold=shared_threshold(settings.threshold, metric.looks))
    count = len(nights)
    window = max(1, min(settings.window_nights, count // 5, count - settings.minimum_reference))
    first = max(0, count - window - settings.reference_nights)
    steps = nights.steps()
    reference = learn(nights.values[first : count - window], steps[first : count - window - 1])
    if reference.scale == 0:
        return _judge_constant(metric, nights, reference, window)
    recent = hold_against(
        reference,
        nights.values[count - window - 1 :],
        steps[count - window - 1 :],
        CAP_OVER_THRESHOLD * raw_threshold(reference, settings.threshold + settings.first_night),
    )
    evidence = step_evidence(reference, recent)
    thresholds = settings.thresholds(window)
    best = int(np.argmax(np.abs(evidence) - thresholds))
    found = Shift(
        nights.date(count - window + best),
        window - best,
        hodges_lehmann(nights.values[count - window + best :]) - reference.location,
        float(evidence[best]),
        float(thresholds[best]),
    )
    detectable = _first_night(reference, recent, settings)
    return verdict_of(CHECK, metric, nights, reference=reference, found=found, detectable=detectable)


@dataclass(frozen=True)
class Shift:
    """The likeliest change: when it began, for how many nights it lasts, how large it is (metric's unit).

    ``statistic`` is its evidence as a normal score, with the sign of the shift; None where nothing ever varied.
    """

    since: str
    nights: int
    size: float
    statistic: float | None
    threshold: float | None
    kind: str = "shift"

    def found(self) -> bool:
        """Whether the evidence is enough, and for the side to which the nights themselves lie."""
        if self.statistic is None or self.threshold is None:
            return self.size != 0
        return abs(self.statistic) >= self.threshold and self.statistic * self.size > 0


def shared_threshold(threshold: float, looks: int) -> float:
    """The threshold at which each of so many looks is wrong as rarely as one alone, divided by their number.

    However the looks depend on each other, all of them together are wrong no more often than the sum (Bonferroni).
    """
    normal = NormalDist()
    return -normal.inv_cdf(normal.cdf(-threshold) / looks) if looks > 1 else threshold


def worse_of(one: CheckVerdict, other: CheckVerdict) -> CheckVerdict:
    """The worse of two looks at one figure; a change below the floor rather than none, and else the first."""
    return max(one, other, key=lambda found: (WORSE.index(found.verdict), found.reason_code == "below_floor"))


def nothing_to_judge(check: str, metric: Metric, nights: Nights, needed: int) -> CheckVerdict | None:
    """The verdict when there is no figure tonight or too little history; None when there is enough."""
    details = nights.as_json()
    if nights.last_dropped is not None or (len(nights) == 0 and not nights.dropped):
        why = (nights.last_dropped or "missing").replace("_", " ")
        text = f"no usable figure tonight ({why})"
        return CheckVerdict(check, Verdict.INVALID, metric.name, metric.unit, "no_figure", text, details=details)
    if len(nights) >= needed:
        return None
    usable = f"{len(nights)} usable {'night' if len(nights) == 1 else 'nights'}"
    tonight = f"{_amount(nights.values[-1], metric)} tonight"
    text = f"{tonight}, not judged: {usable}, {needed} needed{dropped_text(nights)}"
    return CheckVerdict(
        check,
        Verdict.INCONCLUSIVE,
        metric.name,
        metric.unit,
        "short_history",
        text,
        value=float(nights.values[-1]),
        details={**details, "nights_needed": needed},
    )


def verdict_of(
    check: str, metric: Metric, nights: Nights, *, reference: Reference, found: Shift, detectable: float
) -> CheckVerdict:
    """Verdict on the likeliest change: enough evidence, and as large as both floors."""
    floor = max(metric.relative_floor * abs(reference.location), metric.absolute_floor)
    direction = HIGHER if found.size > 0 else LOWER
    seen, large = found.found(), abs(found.size) >= floor
    verdict, code = Verdict.OK, f"no_{found.kind}"
    if seen and large:
        verdict = Verdict.REGRESSED if direction == metric.worse else Verdict.IMPROVED
        code = f"{found.kind}_{direction}"
    elif seen:
        code = "below_floor"
    return CheckVerdict(
        check=check,
        verdict=verdict,
        metric=metric.name,
        unit=metric.unit,
        reason_code=code,
        reason=_reason(metric, nights, reference, found, code, unseen=max(detectable, floor), floor=floor),
        value=float(nights.values[-1]),
        baseline_value=reference.location,
        direction=direction if seen else None,
        details={**nights.as_json(), **reference.as_json(), **_shift_json(found), "floor": floor},
    )


def dropped_text(nights: Nights) -> str:
    """What was left out, in words; empty when nothing was."""
    parts = [f"{count} {reason.replace('_', ' ')}" for reason, count in nights.dropped.items()]
    return f" (left out: {', '.join(parts)})" if parts else ""


def _judge_constant(metric: Metric, nights: Nights, reference: Reference, window: int) -> CheckVerdict:
    """A history without any spread: the first night that differs by more than rounding is a change."""
    values = nights.values[-window:] - reference.location
    rounding = 1e-9 * max(abs(reference.location), abs(float(nights.values[-1])))
    same = np.flatnonzero((np.abs(values) <= rounding) | (np.sign(values) != np.sign(values[-1])))
    begin = int(same[-1]) + 1 if len(same) else 0
    size = float(values[-1]) if begin < window else 0.0
    begin = min(begin, window - 1)
    found = Shift(nights.date(len(nights) - window + begin), window - begin, size, None, None)
    return verdict_of(CHECK, metric, nights, reference=reference, found=found, detectable=rounding)


def _first_night(reference: Reference, recent: Recent, settings: HistorySettings) -> float:
    """The smallest step that would be told on its first night every other time, in the metric's unit."""
    error = 1 + reference.level_error * float(recent.after[-1]) ** 2
    score = raw_threshold(reference, settings.threshold + settings.first_night) * error**0.5
    return float(score * reference.scale / recent.onset[-1])


def _reason(
    metric: Metric, nights: Nights, reference: Reference, found: Shift, code: str, *, unseen: float, floor: float
) -> str:
    usual = f"usual {_amount(reference.location, metric)} of {reference.nights} nights"
    text = f"{_amount(nights.values[-1], metric)} tonight, {usual}"
    size = f"{_amount(abs(found.size), metric)}{_percent(found.size, reference.location)}"
    side = "higher" if found.size > 0 else "lower"
    since = f"since {found.since[:10]} ({found.nights} night{'' if found.nights == 1 else 's'})"
    if code == "below_floor":
        text += f"; {size} {side} {since}, less than the floor of {_amount(floor, metric)}"
    elif code.startswith("no_"):
        text += f"; no {found.kind}, though one of less than {_amount(unseen, metric)} may go unseen"
    else:
        text += f"; {size} {side} {since}"
    if found.statistic is not None and not code.startswith("no_"):
        text += f", {abs(found.statistic):.1f} standard deviations"
    return text + dropped_text(nights)


def _shift_json(found: Shift) -> dict[str, Any]:
    return {
        "since": found.since,
        "nights_since": found.nights,
        "size": found.size,
        "statistic": found.statistic,
        "threshold": found.threshold,
    }


def _amount(value: float, metric: Metric) -> str:
    return f"{value:.4g} {metric.unit}"


def _percent(size: float, of: float) -> str:
    return f" ({abs(size / of) * 100:.2g} %)" if of else ""
