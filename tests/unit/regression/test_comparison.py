"""Candidate against pinned by blocks: words, interval, and what must not matter: order, sides, scale, bad blocks."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from regression.detectors import CheckVerdict, DrawResult, Problem, Verdict
from regression.detectors.compared_predictions import ComparedPredictions
from regression.detectors.comparison import ENERGY, TIME, KernelComparison, amount, judge_comparison, judge_metric
from regression.detectors.paired import MOST_BLOCKS, BlockPair, blocks_needed, detectable, paired_effect

MIRRORED = {Verdict.REGRESSED: Verdict.IMPROVED, Verdict.IMPROVED: Verdict.REGRESSED}
FINE = ComparedPredictions((0,), (DrawResult(0, 10, 10, (), "hash", (True,)),), (DrawResult(0, 10, 10, (), "hash"),))
LOST = Problem("infrastructure_failure", "device_lost", "gone")
NO_COUNTER = Problem("ok", "no_energy_counter", "a CPU device has none")

energies = st.floats(0.1, 10.0)
pairs = st.lists(st.builds(BlockPair, energies, energies), min_size=2, max_size=20)
bad = st.sampled_from(
    [
        *(BlockPair(value, 1.0) for value in (None, math.nan, math.inf, -math.inf)),
        *(BlockPair(1.0, value) for value in (None, math.nan, math.inf)),
        BlockPair(100.0, 0.001, valid=False),
    ]
)


def blocks(*differences: float, pinned: float = 1.0) -> tuple[BlockPair, ...]:
    return tuple(BlockPair(pinned + difference, pinned) for difference in differences)


def around(effect: float, scatter: float, count: int = 8) -> tuple[BlockPair, ...]:
    """``count`` blocks of just that effect and scatter (sample sd), in parts of the pinned kernel's 1."""
    shape = np.linspace(-1, 1, count)
    return blocks(*(effect + scatter * shape / np.std(shape, ddof=1)))


@pytest.mark.parametrize(
    ("effect", "scatter", "verdict", "code"),
    [
        (+0.05, 0.01, Verdict.REGRESSED, "higher"),
        (-0.05, 0.01, Verdict.IMPROVED, "lower"),
        (+0.002, 0.001, Verdict.OK, "higher_within_margin"),
        (-0.002, 0.001, Verdict.OK, "lower_within_margin"),
        (+0.002, 0.004, Verdict.OK, "within_margin"),
        (0.0, 0.0, Verdict.OK, "within_margin"),
        (0.0, 0.02, Verdict.INCONCLUSIVE, "interval_too_wide"),
        (+0.05, 0.2, Verdict.INCONCLUSIVE, "interval_too_wide"),
    ],
)
@pytest.mark.parametrize("rule", [TIME, ENERGY])
def test_words(effect: float, scatter: float, verdict: Verdict, code: str, rule: object) -> None:
    """Better or worse as soon as the interval excludes zero, red only where that matters; same: all of it within."""
    found = judge_metric(around(effect, scatter), rule)  # type: ignore[arg-type]
    assert (found.verdict, found.reason_code) == (verdict, code)
    side = code.partition("_")[0]
    assert found.direction == (side if side in ("higher", "lower") else None)
    word = {"higher": "worse", "lower": "better", "within": "same", "interval": "inconclusive"}[side]
    assert found.details["word"] == word
    json.dumps(found.details, allow_nan=False)


def test_the_interval_is_students_and_the_detectable_difference_has_the_power_that_it_says() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal((0.35, 0.3), 0.1, (8, 2))
    effect = paired_effect([BlockPair(*pair) for pair in values.tolist()])
    assert effect is not None
    test = stats.ttest_rel(values[:, 0], values[:, 1])
    interval = test.confidence_interval(0.95)
    assert (effect.low, effect.high) == pytest.approx((interval.low, interval.high))
    assert effect.differs == (test.pvalue < 0.05)
    assert effect.level == pytest.approx(values.mean())
    freedom, limit = 7, stats.t.ppf(0.975, 7)
    shift = detectable(1.0, 8) * math.sqrt(8)
    assert 1 - stats.nct.cdf(limit, freedom, shift) == pytest.approx(0.8, abs=0.01)


def test_figures_are_in_the_units_of_the_metric_and_in_percent_of_the_pinned_kernel() -> None:
    found = judge_metric(blocks(-0.11, -0.09, -0.1, -0.1, pinned=2.0), ENERGY)
    details = found.details
    assert (found.value, found.baseline_value) == pytest.approx((1.9, 2.0))
    assert (details["effect_mj"], details["effect_percent"]) == pytest.approx((-0.1, -5.0))
    assert (details["low_mj"], details["high_mj"]) == pytest.approx((-0.112992, -0.087008), abs=1e-6)
    assert details["low_percent"] == pytest.approx(50 * details["low_mj"])
    assert details["detectable_mj"] == pytest.approx(0.016986, abs=1e-6)
    assert (details["blocks"], details["blocks_left_out"], details["word"]) == (4, 0, "better")
    assert found.reason == (
        "adjusted energy 1.9 mJ a replay, pinned 2: -0.1 mJ (-5.00 %), 95 % interval -0.113 to -0.087 mJ over 4 "
        "blocks; a difference of 0.017 mJ (0.85 %) would be found in 80 of 100 comparisons"
    )


@pytest.mark.parametrize(
    ("percent", "shown"),
    [
        (None, "-0.0123 mJ"),
        (0.0, "-0.0123 mJ (+0.00 %)"),
        (-0.00069, "-0.0123 mJ (-0.0007 %)"),
        (12.34, "-0.0123 mJ (+12.3 %)"),
    ],
)
def test_a_small_percentage_keeps_its_digits(percent: float | None, shown: str) -> None:
    assert amount(-0.01234, percent, "mJ") == shown


def test_a_figure_that_is_not_above_zero_has_no_percent_and_is_never_taken_for_the_same() -> None:
    found = judge_metric([BlockPair(0.01, -0.01), BlockPair(-0.01, 0.01)], ENERGY)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.details["effect_percent"] is None
    assert "%)" not in found.reason
    json.dumps(found.details, allow_nan=False)


@given(pairs, st.randoms(use_true_random=False))
def test_the_order_of_the_blocks_does_not_matter(given_pairs: list[BlockPair], rng: object) -> None:
    shuffled = given_pairs.copy()
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert judge_metric(shuffled, ENERGY) == judge_metric(given_pairs, ENERGY)


@given(pairs)
def test_with_the_sides_swapped_the_verdict_is_the_mirror_image(given_pairs: list[BlockPair]) -> None:
    one = judge_metric(given_pairs, ENERGY)
    other = judge_metric([BlockPair(pair.pinned, pair.candidate) for pair in given_pairs], ENERGY)
    assert other.verdict is MIRRORED.get(one.verdict, one.verdict)
    assert other.details["effect_mj"] == -one.details["effect_mj"]
    assert (other.details["low_mj"], other.details["high_mj"]) == (-one.details["high_mj"], -one.details["low_mj"])
    assert other.details["detectable_mj"] == one.details["detectable_mj"]
    assert other.details["blocks_needed"] == one.details["blocks_needed"]


@given(pairs, st.integers(-20, 20))
def test_the_unit_does_not_matter(given_pairs: list[BlockPair], power: int) -> None:
    """Powers of two, so that nothing is rounded otherwise."""
    one = judge_metric(given_pairs, TIME)
    scaled = [BlockPair(pair.candidate * 2.0**power, pair.pinned * 2.0**power) for pair in given_pairs]  # type: ignore[operator]
    other = judge_metric(scaled, TIME)
    assert (other.verdict, other.reason_code) == (one.verdict, one.reason_code)
    for name in ("effect_percent", "low_percent", "high_percent", "detectable_percent", "blocks", "blocks_needed"):
        assert other.details[name] == one.details[name], name
    assert other.details["effect_ms"] == one.details["effect_ms"] * 2.0**power


@given(pairs, st.lists(st.tuples(st.integers(0, 30), bad), max_size=5))
def test_blocks_that_cannot_be_used_change_nothing_of_the_others(
    given_pairs: list[BlockPair], put_in: list[tuple[int, BlockPair]]
) -> None:
    one, mixed = judge_metric(given_pairs, ENERGY), given_pairs.copy()
    for place, block in put_in:
        mixed.insert(place, block)
    other = judge_metric(mixed, ENERGY)
    assert other.details.pop("blocks_left_out") == len(put_in)
    del one.details["blocks_left_out"]
    assert other == one


@given(pairs)
def test_blocks_needed_are_more_than_there_were(given_pairs: list[BlockPair]) -> None:
    """Or none that can be had: what was not enough is never said to be."""
    found = judge_metric(given_pairs, ENERGY)
    assume(found.verdict is Verdict.INCONCLUSIVE)
    needed = found.details["blocks_needed"]
    assert needed is None or len(given_pairs) < needed <= MOST_BLOCKS


def test_blocks_needed_decide_and_one_less_does_not() -> None:
    effect = paired_effect(around(0.001, 0.02))
    assert effect is not None
    needed = blocks_needed(effect, 0.01)
    assert needed is not None
    assert detectable(0.02, needed) <= 0.01 < detectable(0.02, needed - 1)
    assert needed == 34
    assert judge_metric(around(0.001, 0.02, needed), TIME).verdict is Verdict.OK
    # A difference of 1 % would be found by eight of these; one of 0.65 % is told neither from nothing nor from 1 %.
    between = judge_metric(around(0.0065, 0.00813), TIME)
    assert between.details["detectable_percent"] < 1
    assert (between.verdict, between.details["blocks_needed"]) == (Verdict.INCONCLUSIVE, 9)
    far = paired_effect(around(0.001, 10.0))
    assert far is not None
    assert blocks_needed(far, 0.01) is None


@pytest.mark.parametrize(
    ("given_pairs", "verdict", "code"),
    [
        ((), Verdict.INVALID, "no_valid_block"),
        ((BlockPair(1.0, 1.0, valid=False), BlockPair(None, 1.0)), Verdict.INVALID, "no_valid_block"),
        ((BlockPair(1.0, 1.0), BlockPair(math.nan, 1.0)), Verdict.INCONCLUSIVE, "too_few_blocks"),
    ],
)
def test_without_two_blocks_nothing_is_judged(given_pairs: tuple[BlockPair, ...], verdict: Verdict, code: str) -> None:
    found = judge_metric(given_pairs, TIME)
    assert (found.verdict, found.reason_code, found.value) == (verdict, code, None)
    assert found.details["effect_ms"] is None
    assert found.details["blocks"] + found.details["blocks_left_out"] == len(given_pairs)


MEASURED = KernelComparison(FINE, around(0.02, 0.001), around(-0.1, 0.001), energy_trust="verified")


def of(comparison: KernelComparison) -> dict[str, CheckVerdict]:
    return {found.check: found for found in judge_comparison(comparison)}


def test_each_metric_is_judged_by_its_own_blocks() -> None:
    found = judge_comparison(MEASURED)
    assert [one.check for one in found] == ["compare_predictions", "compare_time", "compare_energy"]
    assert [one.details["word"] for one in found] == ["same", "worse", "better"]


def test_speed_does_not_matter_where_the_predictions_are_worse() -> None:
    wrong = replace(FINE, candidate=(DrawResult(0, 10, 9, ((3, 1, 2),), "other", (True,)),))
    found = of(replace(MEASURED, predictions=wrong))
    assert found["compare_predictions"].verdict is Verdict.REGRESSED
    for check in ("compare_time", "compare_energy"):
        assert (found[check].verdict, found[check].reason_code) == (Verdict.INCONCLUSIVE, "candidate_wrong")
        assert found[check].value is None


@pytest.mark.parametrize(
    ("trust", "verdict", "code"),
    [
        ("failed", Verdict.INVALID, "gate_failed"),
        ("unverified", Verdict.INCONCLUSIVE, "energy_unverified"),
        ("unavailable", Verdict.UNAVAILABLE, "no_energy_counter"),
    ],
)
def test_energy_that_nothing_vouches_for_is_not_judged_and_time_is(trust: str, verdict: Verdict, code: str) -> None:
    found = of(replace(MEASURED, energy_trust=trust, energy_trust_reason="load off"))
    energy = found["compare_energy"]
    assert (energy.verdict, energy.reason_code) == (verdict, code)
    assert "load off" in energy.reason
    assert (energy.details["effect_mj"] is None) == (trust != "unverified")
    assert found["compare_time"].verdict is Verdict.REGRESSED


def test_unverified_energy_without_a_usable_block_is_invalid() -> None:
    found = of(replace(MEASURED, energy=(BlockPair(None, None),), energy_trust="unverified"))
    assert found["compare_energy"].verdict is Verdict.INVALID


def test_time_needs_no_counter() -> None:
    timed = tuple(replace(pair, candidate=None, pinned=None) for pair in MEASURED.energy)
    found = of(replace(MEASURED, energy=timed, energy_trust="unavailable", energy_trust_reason=NO_COUNTER.message))
    assert found["compare_time"] == of(MEASURED)["compare_time"]
    assert (found["compare_energy"].verdict, found["compare_energy"].reason_code) == (
        Verdict.UNAVAILABLE,
        "no_energy_counter",
    )
    assert NO_COUNTER.message in found["compare_energy"].reason


@pytest.mark.parametrize(
    ("reason", "problem", "verdict", "code"),
    [
        (NO_COUNTER, None, Verdict.UNAVAILABLE, "no_energy_counter"),
        (Problem("ok", "no_blocks", "no blocks were asked for"), None, Verdict.INCONCLUSIVE, "no_blocks"),
        (Problem("ok", "candidate_wrong", "wrong"), None, Verdict.INCONCLUSIVE, "candidate_wrong"),
        (None, LOST, Verdict.INVALID, "device_lost"),
        (Problem("ok", "device_lost", "gone"), LOST, Verdict.INVALID, "device_lost"),
        (Problem("ok", "candidate_wrong", "wrong"), LOST, Verdict.INCONCLUSIVE, "candidate_wrong"),
        (None, None, Verdict.INVALID, "no_valid_block"),
    ],
)
def test_why_there_are_no_blocks_decides(
    reason: Problem | None, problem: Problem | None, verdict: Verdict, code: str
) -> None:
    found = of(KernelComparison(FINE, not_measured=reason, problem=problem, energy_trust="verified"))
    for check in ("compare_time", "compare_energy"):
        assert (found[check].verdict, found[check].reason_code) == (verdict, code)


def test_a_comparison_that_broke_off_is_judged_by_the_blocks_it_has() -> None:
    broken = replace(MEASURED, problem=LOST, predictions=replace(FINE, problem=LOST))
    assert of(broken)["compare_time"].verdict is Verdict.REGRESSED
    assert of(broken)["compare_predictions"].verdict is Verdict.OK
