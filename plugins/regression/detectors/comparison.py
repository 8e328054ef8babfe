"""A candidate kernel against the pinned one, metric by metric: better, worse, same or inconclusive.

Correctness comes first: a candidate that predicts something wrong is worse, however fast it is, and its time and energy
are not judged. Time and energy are judged by the blocks in which both kernels took turns: *better* and *worse* when the
95 % interval of the mean difference excludes zero, *same* when it includes zero and lies within what matters, and
*inconclusive* otherwise, with the number of blocks that it would take. A better or worse of which the whole interval
lies within what matters is told as that, and its verdict is ok.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regression.detectors.compared_predictions import ComparedPredictions, judge_predictions
from regression.detectors.paired import BlockPair, PairedEffect, blocks_needed, paired_effect
from regression.detectors.verdict import CheckVerdict, Problem, Verdict

VERIFIED, FAILED, NO_ENERGY = "verified", "failed", "unavailable"
UNAVAILABLE = ("no_energy_counter", "no_gpu_time")
"""Why a device cannot have the figure; any other reason for there being no blocks is one of this comparison."""

WORDS = {
    Verdict.IMPROVED: "better",
    Verdict.REGRESSED: "worse",
    Verdict.OK: "same",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.INVALID: "invalid",
    Verdict.UNAVAILABLE: "unavailable",
}


@dataclass(frozen=True)
class MetricRule:
    """What is judged by its blocks. ``margin`` is the share of both kernels' mean from which on a difference matters.

    ``noun`` begins the texts, ``unit`` is that of the figures and, in small letters, of the keys in ``details``.
    """

    check: str
    metric: str
    unit: str
    noun: str
    margin: float

    def key(self, name: str) -> str:
        """Name of a figure in ``details``."""
        return f"{name}_{self.unit.lower()}"


TIME = MetricRule("compare_time", "cuda_time_per_replay", "ms", "CUDA time", margin=0.01)
ENERGY = MetricRule("compare_energy", "adjusted_energy_per_replay", "mJ", "adjusted energy", margin=0.01)
"""1 % is what no check of a night tells from nothing, in either figure: less than that nobody is ever told of."""


@dataclass(frozen=True)
class KernelComparison:
    """Everything that was seen of the two kernels on one device.

    ``time`` in ms and ``energy`` in mJ a replay, above the idle power of the block, a pair for each block of each
    round. ``not_measured`` says why there are none; ``problem`` what went wrong as a whole. ``energy_trust`` is of
    these rounds.
    """

    predictions: ComparedPredictions
    time: tuple[BlockPair, ...] = ()
    energy: tuple[BlockPair, ...] = ()
    not_measured: Problem | None = None
    energy_trust: str = NO_ENERGY
    energy_trust_reason: str | None = None
    problem: Problem | None = None


def judge_comparison(found: KernelComparison) -> list[CheckVerdict]:
    """The verdicts on predictions, time and energy, in this order."""
    predictions = judge_predictions(found.predictions)
    predictions.details["word"] = WORDS[predictions.verdict]
    if predictions.verdict is Verdict.REGRESSED:
        code, text = "candidate_wrong", "not judged: the predictions of the candidate are worse, which comes first"
        plain = [_plain(rule, Verdict.INCONCLUSIVE, code, text) for rule in (TIME, ENERGY)]
        return [predictions, *plain]
    reason = _why_not_measured(found)
    return [predictions, _judge_time(found, reason), _judge_energy(found, reason)]


def judge_metric(pairs: Sequence[BlockPair], rule: MetricRule) -> CheckVerdict:
    """The verdict on one figure from its blocks; blocks of invalid rounds and without a figure are left out."""
    effect = paired_effect(pairs)
    if effect is None:
        return _too_few(pairs, rule)
    margin = rule.margin * effect.level
    word = None
    if effect.differs:
        higher = effect.effect > 0
        verdict, code = (Verdict.REGRESSED, "higher") if higher else (Verdict.IMPROVED, "lower")
        word = WORDS[verdict]
        if effect.farthest <= margin:
            # Told, and nothing to be red for: of two equal kernels one in ten comparisons says as much of one figure.
            verdict, code = Verdict.OK, f"{code}_within_margin"
    elif effect.farthest <= margin:
        verdict, code = Verdict.OK, "within_margin"
    else:
        verdict, code = Verdict.INCONCLUSIVE, "interval_too_wide"
    needed = blocks_needed(effect, margin) if verdict is Verdict.INCONCLUSIVE else None
    details = _details(pairs, rule, verdict, effect) | {"blocks_needed": needed} | ({"word": word} if word else {})
    return CheckVerdict(
        check=rule.check,
        verdict=verdict,
        metric=rule.metric,
        unit=rule.unit,
        reason_code=code,
        reason=_reason(rule, effect, code, needed),
        value=effect.candidate,
        baseline_value=effect.pinned,
        direction=code.removesuffix("_within_margin") if effect.differs else None,
        details=details,
    )


def percent_of(value: float, effect: PairedEffect) -> float | None:
    """A difference in percent of the pinned kernel's figure; None where that is not above zero."""
    return 100 * value / effect.pinned if effect.pinned > 0 else None


def amount(value: float, percent: float | None, unit: str, sign: str = "+") -> str:
    """A difference with its unit and in percent, for people; ``sign`` "" leaves out a plus."""
    if percent is None:
        return f"{value:{sign}.3g} {unit}"
    return f"{value:{sign}.3g} {unit} ({percent:{sign}.{percent_digits(percent)}f} %)"


def percent_digits(*percents: float) -> int:
    """Decimals with which none of them looks like zero that is not, nor any longer than it has to be."""
    if any(0 < abs(percent) < 0.01 for percent in percents):
        return 4
    return 2 if any(abs(percent) < 10 for percent in percents) else 1


def _why_not_measured(found: KernelComparison) -> Problem | None:
    """The reason that the record gives; with the outcome of the whole where that failed for the very same reason."""
    reason, problem = found.not_measured, found.problem
    if reason is None or (problem is not None and problem.code == reason.code):
        return problem
    return reason


def _judge_time(found: KernelComparison, reason: Problem | None) -> CheckVerdict:
    return judge_metric(found.time, TIME) if found.time else _without_blocks(TIME, reason)


def _judge_energy(found: KernelComparison, reason: Problem | None) -> CheckVerdict:
    """As the time, as far as anything vouches for the sensor."""
    why = f" ({found.energy_trust_reason})" if found.energy_trust_reason else ""
    if not found.energy:
        return _without_blocks(ENERGY, reason)
    if found.energy_trust == FAILED:
        return _plain(ENERGY, Verdict.INVALID, "gate_failed", f"no usable energy, a telemetry gate failed{why}")
    if found.energy_trust == NO_ENERGY:
        return _plain(ENERGY, Verdict.UNAVAILABLE, "no_energy_counter", f"there is no energy here{why}")
    judged = judge_metric(found.energy, ENERGY)
    if found.energy_trust == VERIFIED or judged.verdict is Verdict.INVALID:
        return judged
    return CheckVerdict(
        check=ENERGY.check,
        verdict=Verdict.INCONCLUSIVE,
        metric=ENERGY.metric,
        unit=ENERGY.unit,
        reason_code="energy_unverified",
        reason=f"not judged, nothing vouches for the sensor{why}; as it reads: {judged.reason}",
        value=judged.value,
        baseline_value=judged.baseline_value,
        details=judged.details | {"word": WORDS[Verdict.INCONCLUSIVE], "energy_trust": found.energy_trust},
    )


def _without_blocks(rule: MetricRule, reason: Problem | None) -> CheckVerdict:
    if reason is None:
        return _plain(rule, Verdict.INVALID, "no_valid_block", "no block was measured and no record says why")
    if reason.code == "no_energy_counter":
        # Time needs no counter: a device with neither a counter nor blocks has no time of its own.
        why = f"not measured, neither time nor energy: {reason.message}"
        return _plain(rule, Verdict.UNAVAILABLE, reason.code, why)
    if reason.code in UNAVAILABLE:
        return _plain(rule, Verdict.UNAVAILABLE, reason.code, f"not measured: {reason.message}")
    if reason.outcome == "ok":
        return _plain(rule, Verdict.INCONCLUSIVE, reason.code, f"not measured: {reason.message}")
    return _plain(rule, Verdict.INVALID, reason.code, f"not measured: {reason.message}")


def _too_few(pairs: Sequence[BlockPair], rule: MetricRule) -> CheckVerdict:
    usable = sum(pair.usable is not None for pair in pairs)
    if usable:
        text = f"{usable} of {len(pairs)} blocks has a valid {rule.noun}, and one difference has no spread"
        return _plain(rule, Verdict.INCONCLUSIVE, "too_few_blocks", text, pairs)
    text = f"none of {len(pairs)} blocks has a valid {rule.noun}"
    return _plain(rule, Verdict.INVALID, "no_valid_block", text, pairs)


def _plain(rule: MetricRule, verdict: Verdict, code: str, text: str, pairs: Sequence[BlockPair] = ()) -> CheckVerdict:
    """A verdict without a comparison."""
    return CheckVerdict(
        rule.check, verdict, rule.metric, rule.unit, code, text, details=_details(pairs, rule, verdict, None)
    )


def _details(
    pairs: Sequence[BlockPair], rule: MetricRule, verdict: Verdict, effect: PairedEffect | None
) -> dict[str, Any]:
    """The same keys whatever was found; figures that there are none of are null."""
    usable = sum(pair.usable is not None for pair in pairs)
    figures = ("effect", "low", "high", "detectable", "sample_sd")
    values = {name: getattr(effect, name) if effect else None for name in figures}
    return {
        "word": WORDS[verdict],
        "blocks": usable,
        "blocks_left_out": len(pairs) - usable,
        **{rule.key(name): value for name, value in values.items()},
        **{
            f"{name}_percent": percent_of(value, effect) if effect and value is not None else None
            for name, value in values.items()
        },
        "margin_percent": 100 * rule.margin,
        "blocks_needed": None,
    }


def _reason(rule: MetricRule, effect: PairedEffect, code: str, needed: int | None) -> str:
    """One line: both figures, what differs with its interval, and what to make of it."""
    unit, interval = rule.unit, f"{effect.low:+.3g} to {effect.high:+.3g}"
    difference = amount(effect.effect, percent_of(effect.effect, effect), unit)
    figures = (
        f"{rule.noun} {effect.candidate:.6g} {unit} a replay, pinned {effect.pinned:.6g}: {difference}, "
        f"95 % interval {interval} {unit} over {effect.blocks} blocks"
    )
    matters = f"the {100 * rule.margin:g} % that matter"
    smallest = amount(effect.detectable, percent_of(effect.detectable, effect), unit, sign="")
    least = f"a difference of {smallest} would be found in 80 of 100 comparisons"
    if code == "interval_too_wide":
        count = "more blocks than can be measured" if needed is None else f"about {needed} blocks"
        return f"{figures}; neither a difference nor that there is none within {matters}: {count} would decide"
    if code == "within_margin":
        return f"{figures}: within {matters}; {least}"
    if code.endswith("_within_margin"):
        return f"{figures}: a difference, but within {matters}; {least}"
    return f"{figures}; {least}"
