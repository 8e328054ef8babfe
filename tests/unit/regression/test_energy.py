"""The round-spread rule: both sides, its edges, and everything that keeps two energies from being compared."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regression.detectors import (
    EnergyBaseline,
    EnergyConditions,
    EnergyRun,
    Problem,
    RoundEnergy,
    Verdict,
    judge_energy,
)

HERE = EnergyConditions("A100 (GPU-1)", "manifest", "classic", "driver=1", "ptx")
SPREAD = (0.59, 0.60, 0.61)


def rounds(*values: float | None) -> tuple[RoundEnergy, ...]:
    return tuple(RoundEnergy(number, True, value) for number, value in enumerate(values))


BASELINE = EnergyBaseline("A100 night 1", HERE, rounds(*SPREAD), accepted=True, trust="verified")


def run_of(*values: float | None, **changes: object) -> EnergyRun:
    return replace(EnergyRun(HERE, rounds(*values), len(values), "verified"), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("median", "verdict", "code", "direction"),
    [
        (0.60, Verdict.OK, "within_spread", None),
        (0.59, Verdict.OK, "within_spread", None),
        (0.61, Verdict.OK, "within_spread", None),
        (0.6100001, Verdict.REGRESSED, "energy_above_spread", "higher"),
        (0.5899999, Verdict.REGRESSED, "energy_below_spread", "lower"),
        (-0.1, Verdict.REGRESSED, "energy_below_spread", "lower"),
    ],
)
def test_the_median_is_held_against_the_spread_on_both_sides(
    median: float, verdict: Verdict, code: str, direction: str | None
) -> None:
    found = judge_energy(run_of(median - 5, median, median + 5), BASELINE)
    assert (found.verdict, found.reason_code, found.direction) == (verdict, code, direction)
    assert (found.value, found.baseline_low, found.baseline_high, found.baseline_value) == (median, 0.59, 0.61, 0.60)


def test_the_message_has_figures_units_direction_and_baseline() -> None:
    found = judge_energy(run_of(0.70, 0.71, 0.72), BASELINE)
    assert found.reason == (
        "adjusted energy 0.71 mJ a replay (median of 3 of 3 rounds) is 0.1 mJ (16 %) above the round spread "
        "0.59 to 0.61 mJ of baseline A100 night 1"
    )


def test_less_energy_with_another_kernel_is_an_improvement_and_more_is_not() -> None:
    other = replace(HERE, kernel_sha256="other")
    assert judge_energy(run_of(0.5, conditions=other), BASELINE).verdict is Verdict.IMPROVED
    more = judge_energy(run_of(0.7, conditions=other), BASELINE)
    assert more.verdict is Verdict.REGRESSED and "the kernel is another one" in more.reason
    unknown = replace(HERE, kernel_sha256=None)
    assert judge_energy(run_of(0.5, conditions=unknown), BASELINE).verdict is Verdict.REGRESSED


def test_invalid_rounds_stay_out_on_both_sides() -> None:
    wild = RoundEnergy(9, False, 99.0)
    assert (
        judge_energy(run_of(rounds=(*rounds(0.6, 0.6), wild, wild, wild), rounds_expected=5), BASELINE).verdict
        is Verdict.OK
    )
    widened = replace(BASELINE, rounds=(*BASELINE.rounds, wild))
    assert judge_energy(run_of(0.7), widened).verdict is Verdict.REGRESSED


def test_a_missing_value_has_no_effect_on_the_others() -> None:
    whole = judge_energy(run_of(0.6, 0.7, 0.8), BASELINE)
    for hole in (None, math.nan, math.inf):
        assert judge_energy(run_of(0.6, hole, 0.7, 0.8), BASELINE).value == whole.value


@pytest.mark.parametrize(
    ("baseline", "code"),
    [
        (None, "no_baseline"),
        (replace(BASELINE, conditions=replace(HERE, payload_manifest_sha256="x")), "baseline_other_payload"),
        (replace(BASELINE, conditions=replace(HERE, device="H200 (GPU-2)")), "baseline_other_device"),
        (replace(BASELINE, conditions=replace(HERE, protocol="long")), "baseline_other_protocol"),
        (replace(BASELINE, conditions=replace(HERE, environment_class="driver=2")), "baseline_other_environment"),
        (replace(BASELINE, accepted=False, trust="unverified", trust_reason="sensor"), "baseline_energy_unverified"),
        (replace(BASELINE, accepted=False), "baseline_energy_not_accepted"),
        (replace(BASELINE, rounds=rounds(0.6)), "baseline_without_spread"),
    ],
)
def test_what_may_not_be_compared_is_inconclusive_with_the_reason(baseline: EnergyBaseline | None, code: str) -> None:
    found = judge_energy(run_of(0.6), baseline)
    assert (found.verdict, found.reason_code, found.value) == (Verdict.INCONCLUSIVE, code, 0.6)


def test_no_counter_is_unavailable_and_no_usable_round_invalid() -> None:
    no_counter = Problem("ok", "no_energy_counter", "a CPU has none")
    assert judge_energy(run_of(None, counter_reason=no_counter), BASELINE).verdict is Verdict.UNAVAILABLE
    assert judge_energy(run_of(None, math.nan), BASELINE).reason_code == "no_valid_round"
    assert judge_energy(run_of(), BASELINE).reason_code == "no_rounds"
    lost = Problem("infrastructure_failure", "device_lost", "gone")
    assert judge_energy(run_of(problem=lost), BASELINE).reason_code == "device_lost"


def test_an_unverified_sensor_is_said_with_the_verdict() -> None:
    found = judge_energy(run_of(0.6, trust="unverified", trust_reason="no gate"), BASELINE)
    assert found.verdict is Verdict.OK and found.reason.endswith("[energy of this run is unverified: no gate]")


@given(
    st.lists(st.one_of(st.none(), st.floats(-1e9, 1e9), st.sampled_from([math.nan, math.inf])), max_size=9),
    st.lists(st.booleans(), min_size=9, max_size=9),
)
def test_any_rounds_get_a_verdict_with_finite_figures(values: list[float | None], valid: list[bool]) -> None:
    made = tuple(RoundEnergy(n, ok, value) for n, (value, ok) in enumerate(zip(values, valid, strict=False)))
    found = judge_energy(run_of(rounds=made, rounds_expected=len(made)), BASELINE)
    usable = [r.adjusted_mj for r in made if r.valid and r.adjusted_mj is not None and math.isfinite(r.adjusted_mj)]
    assert (found.verdict is Verdict.INVALID) == (not usable)
    assert found.value is None or math.isfinite(found.value)
