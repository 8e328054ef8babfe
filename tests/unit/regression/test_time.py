"""CUDA time against the round spread: the rule of the energy with a floor, less is better, and what is not compared."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regression.detectors import MeasurementConditions, Problem, Verdict
from regression.detectors.time import RoundTime, TimeBaseline, TimeRun, judge_time

HERE = MeasurementConditions(
    *("A100 (GPU-1)", "manifest", "classic", "driver=1", "ptx"),
    uuid="GPU-1",
    power_limits_w=(400.0,),
    power_kinds=("instantaneous",),
)
SPREAD = (0.999, 1.0, 1.001)


def rounds(*values: float | None, repeats: int = 100_000) -> tuple[RoundTime, ...]:
    return tuple(RoundTime(number, True, value, repeats) for number, value in enumerate(values))


BASELINE = TimeBaseline("A100 night 1", HERE, rounds(*SPREAD), accepted=True)


def run_of(*values: float | None, **changes: object) -> TimeRun:
    return replace(TimeRun(HERE, rounds(*values), len(values)), **changes)  # type: ignore[arg-type]


def around(median: float, spread: float = 0.001) -> TimeRun:
    return run_of(median - spread, median, median + spread)


@pytest.mark.parametrize(
    ("median", "verdict", "code", "direction"),
    [
        (1.0, Verdict.OK, "within_spread", None),
        (1.001, Verdict.OK, "within_spread", None),
        (1.0015, Verdict.OK, "below_floor", "higher"),
        (1.0099, Verdict.OK, "below_floor", "higher"),
        (1.0101, Verdict.REGRESSED, "time_above_spread", "higher"),
        (0.9901, Verdict.OK, "below_floor", "lower"),
        (0.9899, Verdict.IMPROVED, "time_below_spread", "lower"),
    ],
)
def test_a_change_needs_spread_and_floor(median: float, verdict: Verdict, code: str, direction: str | None) -> None:
    """Three rounds of 0.1 % tell 0.3 % apart; under one percent that is of no interest, and is said."""
    found = judge_time(around(median), BASELINE)
    assert (found.verdict, found.reason_code, found.direction) == (verdict, code, direction)
    assert (found.value, found.baseline_low, found.baseline_high, found.baseline_value) == (median, 0.999, 1.001, 1.0)
    assert found.details["floor_ms"] == pytest.approx(0.01)
    assert found.details["detectable_ms"] == pytest.approx(0.003035, rel=1e-3)
    json.dumps(found.details, allow_nan=False)


def test_noise_that_hides_more_than_the_floor_is_inconclusive_and_never_fine() -> None:
    noisy = replace(BASELINE, rounds=rounds(0.99, 1.0, 1.01))
    found = judge_time(around(1.015, 0.01), noisy)
    assert (found.verdict, found.reason_code) == (Verdict.INCONCLUSIVE, "below_detectable_difference")
    assert judge_time(around(1.05, 0.01), noisy).verdict is Verdict.REGRESSED
    wide = replace(BASELINE, rounds=rounds(*([1.0] * 9), 1.05))
    found = judge_time(run_of(*([1.03] * 9)), wide)
    assert (found.verdict, found.reason_code) == (Verdict.INCONCLUSIVE, "within_wide_spread")


def test_a_certain_change_within_the_spread_and_the_floor_is_within() -> None:
    """A baseline with a stray round on each side: 0.6 % more could be told, and is of no interest."""
    strays = replace(BASELINE, rounds=rounds(0.992, *([1.0] * 19), 1.008))
    found = judge_time(run_of(*([1.006] * 21)), strays)
    assert found.details["detectable_ms"] < 0.006 < found.details["floor_ms"]
    assert (found.verdict, found.reason_code, found.direction) == (Verdict.OK, "within_spread", None)


def test_990_ns_and_then_1100_ns_is_eleven_percent_and_the_timer_can_tell() -> None:
    """github-action-benchmark 122; a timer that cannot tell them apart has the last word."""
    slower = (0.001099, 0.0011, 0.001101)
    for repeats, verdict in ((100_000, Verdict.REGRESSED), (5, Verdict.OK)):
        baseline = replace(BASELINE, rounds=rounds(0.000989, 0.00099, 0.000991, repeats=repeats))
        found = judge_time(run_of(rounds=rounds(*slower), rounds_expected=3), baseline)
        assert found.verdict is verdict
    assert found.reason_code == "below_floor"
    assert found.details["floor_ms"] == pytest.approx(2 * 0.0005 / 5)


def test_the_lines_say_figures_units_side_baseline_and_what_counts() -> None:
    assert judge_time(around(1.03), BASELINE).reason == (
        "CUDA time 1.03 ms a replay (median of 3 of 3 rounds) is above the round spread 0.999 to 1.001 ms of "
        "baseline A100 night 1, 0.03 ms (3 %) from its median; a change counts from 0.01 ms (1 %) on"
    )
    assert judge_time(around(1.005), BASELINE).reason == (
        "CUDA time 1.005 ms a replay (median of 3 of 3 rounds) is above the round spread 0.999 to 1.001 ms of "
        "baseline A100 night 1, but 0.005 ms (0.5 %) from its median, and a change counts from 0.01 ms "
        "(1 %) on"
    )
    assert judge_time(around(0.9), BASELINE).reason.endswith(
        "; with an unchanged kernel that means other clocks, or that work went missing"
    )


@pytest.mark.parametrize(
    ("kernel", "code", "end"),
    [
        ("other", "time_below_spread_kernel_changed", "the kernel is another one than the baseline's"),
        (None, "time_below_spread", "work went missing"),
        ("ptx", "time_below_spread", "work went missing"),
    ],
)
def test_less_time_is_better_whatever_the_kernel(kernel: str | None, code: str, end: str) -> None:
    found = judge_time(replace(around(0.9), conditions=replace(HERE, kernel_sha256=kernel)), BASELINE)
    assert (found.verdict, found.reason_code) == (Verdict.IMPROVED, code)
    assert found.reason.endswith(end)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"payload_manifest_sha256": "other"}, "baseline_other_payload"),
        ({"payload_manifest_sha256": None}, "baseline_other_payload"),
        ({"device": "H100 (GPU-1)"}, "baseline_other_device"),
        ({"protocol": "audited"}, "baseline_other_protocol"),
        ({"environment_class": "driver=2"}, "baseline_other_environment"),
        ({"power_limits_w": (300.0,)}, "baseline_other_power_limit"),
    ],
)
def test_times_of_other_conditions_are_not_compared(change: dict[str, object], code: str) -> None:
    """conbench 1412 and 225: an A100 and an H100 are two devices."""
    found = judge_time(replace(around(2.0), conditions=replace(HERE, **change)), BASELINE)  # type: ignore[arg-type]
    assert (found.verdict, found.reason_code, found.value) == (Verdict.INCONCLUSIVE, code, 2.0)
    assert found.reason.startswith("CUDA time 2 ms (median of 3 of 3 rounds) not judged: ")


def test_how_power_was_read_says_nothing_of_a_time() -> None:
    averaged = replace(HERE, power_kinds=("average",), power_limits_w=())
    found = judge_time(replace(around(1.0), conditions=averaged), BASELINE)
    assert (found.reason_code, found.details["not_compared"]) == ("within_spread", ["power_limit"])


def test_what_is_missing_is_named() -> None:
    assert judge_time(around(1.0), None).reason_code == "no_baseline"
    assert judge_time(around(1.0), replace(BASELINE, accepted=False)).reason_code == "baseline_time_not_accepted"
    assert judge_time(around(1.0), replace(BASELINE, rounds=rounds(1.0))).reason_code == "baseline_without_spread"


def test_a_cpu_device_has_no_gpu_time_and_a_gpu_without_a_valid_one_is_no_good_measurement() -> None:
    cpu = replace(around(1.0), no_gpu_time=Problem("ok", "no_gpu_time", "the reference device has no GPU"))
    assert (judge_time(cpu, BASELINE).verdict, judge_time(cpu, BASELINE).reason_code) == (
        Verdict.UNAVAILABLE,
        "no_gpu_time",
    )
    for run, code, text in (
        (run_of(), "no_rounds", "no round was measured and no record says why"),
        (run_of(None, float("nan"), 0.0, -1.0), "no_valid_round", "none of 4 rounds has a valid CUDA time"),
        (run_of(problem=Problem("x", "device_lost", "gone")), "device_lost", "no usable round: gone"),
        (
            run_of(rounds=tuple(replace(r, valid=False, reason_code="throttled") for r in rounds(1.0, 1.0))),
            "no_valid_round",
            "none of 2 rounds has a valid CUDA time (throttled: 2)",
        ),
        (run_of(1.0, conditions=None), "no_valid_round", "none of 1 rounds has a valid CUDA time"),
    ):
        found = judge_time(run, BASELINE)
        assert (found.verdict, found.reason_code, found.reason) == (Verdict.INVALID, code, text)


def test_a_failed_measurement_stored_as_zero_counts_on_neither_side() -> None:
    """dotnet/performance 3121."""
    found = judge_time(run_of(0.999, 1.0, 1.001, 0.0), replace(BASELINE, rounds=rounds(*SPREAD, 0.0)))
    assert (found.verdict, found.baseline_low, found.details["rounds_used"]) == (Verdict.OK, 0.999, [0, 1, 2])
    assert found.details["baseline_rounds"] == 3


@given(st.floats(0.9, 1.1), st.floats(0.0, 0.02), st.integers(0, 1000))
def test_red_is_slower_by_the_floor_and_by_what_can_be_seen(median: float, noise: float, seed: int) -> None:
    made = (median + noise * np.random.default_rng(seed).normal(size=7)).tolist()
    found = judge_time(run_of(*made), BASELINE)
    counts = max(found.details["floor_ms"], found.details["detectable_ms"])
    value, low, high = found.value, found.baseline_low, found.baseline_high
    assert value is not None
    assert low is not None
    assert high is not None
    assert (found.verdict is Verdict.REGRESSED) == (value > high and value - 1.0 >= counts)
    assert (found.verdict is Verdict.IMPROVED) == (value < low and 1.0 - value >= counts)
    if found.verdict is Verdict.OK:
        assert abs(value - 1.0) <= counts
