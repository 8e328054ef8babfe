"""The round-spread rule: both sides, what it cannot see, and everything that keeps two energies from being compared."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from regression.detectors import (
    EnergyBaseline,
    EnergyRun,
    FailedGate,
    MeasurementConditions,
    Problem,
    RoundEnergy,
    Verdict,
    judge_energy,
)

HERE = MeasurementConditions(
    *("A100 (GPU-1)", "manifest", "classic", "driver=1", "ptx"),
    uuid="GPU-1",
    power_limits_w=(400.0,),
    power_kinds=("instantaneous",),
)
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
        (0.6100001, Verdict.INCONCLUSIVE, "below_detectable_difference", "higher"),
        (0.5899999, Verdict.INCONCLUSIVE, "below_detectable_difference", "lower"),
        (0.6303, Verdict.INCONCLUSIVE, "below_detectable_difference", "higher"),
        (0.6304, Verdict.REGRESSED, "energy_above_spread", "higher"),
        (0.5697, Verdict.INCONCLUSIVE, "below_detectable_difference", "lower"),
        (0.5696, Verdict.REGRESSED, "energy_below_spread", "lower"),
        (-0.1, Verdict.REGRESSED, "energy_below_spread", "lower"),
    ],
)
def test_the_median_is_held_against_the_spread_and_then_against_what_can_be_seen(
    median: float, verdict: Verdict, code: str, direction: str | None
) -> None:
    """Both have a standard deviation of 0.01 mJ over three rounds: 0.03035 mJ is the least that shows."""
    found = judge_energy(run_of(median - 0.01, median, median + 0.01), BASELINE)
    assert (found.verdict, found.reason_code, found.direction) == (verdict, code, direction)
    assert (found.value, found.baseline_low, found.baseline_high, found.baseline_value) == (median, 0.59, 0.61, 0.60)
    expected = (stdtrit(4, 0.975) + stdtrit(4, 0.8)) * math.sqrt(2 * 0.01**2 / 3)
    assert found.details["detectable_mj"] == pytest.approx(expected, rel=1e-9)
    assert found.details["detectable_percent"] == pytest.approx(expected / 0.6 * 100, rel=1e-9)
    assert found.details["sample_sd_mj"] == pytest.approx(0.01) == found.details["baseline_sample_sd_mj"]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (
            (0.70, 0.71, 0.72),
            "adjusted energy 0.71 mJ a replay (median of 3 of 3 rounds) is above the round spread 0.59 to 0.61 mJ of "
            "baseline A100 night 1, 0.11 mJ (18 %) from its median; a change counts from 0.0304 mJ (5.1 %) on",
        ),
        (
            (0.49, 0.5, 0.51),
            "adjusted energy 0.5 mJ a replay (median of 3 of 3 rounds) is below the round spread 0.59 to 0.61 mJ of "
            "baseline A100 night 1, 0.1 mJ (17 %) from its median; a change counts from 0.0304 mJ (5.1 %) on; with "
            "an unchanged kernel that means that work went missing",
        ),
        (
            (0.59, 0.6, 0.61),
            "adjusted energy 0.6 mJ a replay (median of 3 of 3 rounds) is within the round spread 0.59 to 0.61 mJ of "
            "baseline A100 night 1; a change of 0.0304 mJ (5.1 %) would have been found about every second time",
        ),
        (
            (0.61, 0.62, 0.63),
            "adjusted energy 0.62 mJ a replay (median of 3 of 3 rounds) is above the round spread 0.59 to 0.61 mJ of "
            "baseline A100 night 1, but 0.02 mJ (3.3 %) from its median, and a change counts from "
            "0.0304 mJ (5.1 %) on",
        ),
    ],
)
def test_the_message_has_figures_units_direction_baseline_and_what_can_be_seen(
    values: tuple[float, ...], reason: str
) -> None:
    assert judge_energy(run_of(*values), BASELINE).reason == reason


@pytest.mark.parametrize(("median", "side"), [(0.66, "above"), (0.54, "below")])
def test_a_baseline_that_scatters_hides_no_change(median: float, side: str) -> None:
    """One round of nine is far off on each side: everything is within, and what is far from the median is not fine."""
    scattered = replace(BASELINE, rounds=rounds(0.5, *([0.599, 0.6, 0.601] * 3)[1:8], 0.7))
    found = judge_energy(run_of(median - 0.001, median, median + 0.001), scattered)
    assert (found.verdict, found.reason_code) == (Verdict.INCONCLUSIVE, "within_wide_spread")
    assert found.direction == {"above": "higher", "below": "lower"}[side]
    share = found.details["detectable_mj"]
    assert share < 0.06 and found.baseline_value == 0.6
    assert found.reason == (
        f"adjusted energy {median} mJ a replay (median of 3 of 3 rounds) is within the round spread 0.5 to 0.7 mJ of "
        f"baseline A100 night 1, but 0.06 mJ (10 %) {side} its median, and a change counts from {share:.3g} mJ "
        f"({share / 0.6 * 100:.2g} %) on: a spread as wide as that does not show that nothing changed"
    )
    near = judge_energy(run_of(0.609, 0.61, 0.611), scattered)
    assert (near.verdict, near.direction) == (Verdict.OK, None)


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
        (replace(BASELINE, conditions=replace(HERE, power_limits_w=(320.0,))), "baseline_other_power_limit"),
        (replace(BASELINE, conditions=replace(HERE, power_limits_w=(320.0, 400.0))), "baseline_other_power_limit"),
        (replace(BASELINE, conditions=replace(HERE, power_kinds=("average",))), "baseline_other_power_kind"),
    ],
)
def test_what_may_not_be_compared_is_inconclusive_with_the_reason(baseline: EnergyBaseline | None, code: str) -> None:
    found = judge_energy(run_of(0.6), baseline)
    assert (found.verdict, found.reason_code, found.value) == (Verdict.INCONCLUSIVE, code, 0.6)


def test_the_message_names_both_power_limits_and_both_kinds_of_power() -> None:
    mixed = replace(HERE, power_limits_w=(320.0, 350.5))
    assert judge_energy(run_of(0.6, conditions=mixed), BASELINE).reason == (
        "adjusted energy 0.6 mJ (median of 1 of 1 rounds) not judged: baseline A100 night 1 ran under a power limit of "
        "400 W, this run under 320 W and 350.5 W"
    )
    average = replace(HERE, power_kinds=("average",))
    reason = judge_energy(run_of(0.6, conditions=average), BASELINE).reason
    assert reason.endswith("power is instantaneous in baseline A100 night 1, average in this run")


@pytest.mark.parametrize("unsaid", ["run", "baseline"])
def test_conditions_that_one_side_does_not_say_are_not_compared_and_listed(unsaid: str) -> None:
    assert judge_energy(run_of(0.6, 0.6), BASELINE).details["not_compared"] == []
    unknown = replace(HERE, power_limits_w=(), power_kinds=())
    run = run_of(0.6, 0.6, **({"conditions": unknown} if unsaid == "run" else {}))
    baseline = replace(BASELINE, conditions=unknown) if unsaid == "baseline" else BASELINE
    found = judge_energy(run, baseline)
    assert (found.verdict, found.details["not_compared"]) == (Verdict.OK, ["power_limit", "power_kind"])
    limit_only = judge_energy(run_of(0.6, conditions=replace(HERE, power_limits_w=())), BASELINE)
    assert limit_only.details["not_compared"] == ["power_limit"]


def test_energy_that_the_same_device_had_and_has_no_more_is_invalid() -> None:
    gone = run_of(None, trust="unavailable", counter_reason=Problem("ok", "no_energy_counter", "not supported"))
    found = judge_energy(gone, BASELINE)
    assert (found.verdict, found.reason_code, found.value) == (Verdict.INVALID, "energy_vanished", None)
    assert found.reason == (
        "the energy of GPU-1 is gone (not supported): baseline A100 night 1 of the same device has one"
    )
    other_night = replace(HERE, payload_manifest_sha256="x", protocol="long", environment_class="driver=2")
    for_another_set = replace(BASELINE, conditions=other_night)
    assert judge_energy(gone, for_another_set).reason_code == "energy_vanished"


@pytest.mark.parametrize(
    ("run", "baseline"),
    [
        ({}, None),
        ({}, replace(BASELINE, accepted=False)),
        ({}, replace(BASELINE, conditions=replace(HERE, uuid="GPU-2"))),
        ({"conditions": replace(HERE, uuid=None)}, replace(BASELINE, conditions=replace(HERE, uuid=None))),
        ({"conditions": None}, replace(BASELINE, conditions=replace(HERE, uuid=None))),
    ],
)
def test_a_device_that_never_had_energy_as_far_as_anyone_knows_is_unavailable(
    run: dict[str, object], baseline: EnergyBaseline | None
) -> None:
    no_counter = Problem("ok", "no_energy_counter", "a CPU has none")
    found = judge_energy(run_of(None, trust="unavailable", counter_reason=no_counter, **run), baseline)
    assert (found.verdict, found.reason_code, found.reason) == (
        Verdict.UNAVAILABLE,
        "no_energy_counter",
        "a CPU has none",
    )


def test_no_usable_round_is_invalid() -> None:
    assert judge_energy(run_of(None, math.nan), BASELINE).reason_code == "no_valid_round"
    assert judge_energy(run_of(), BASELINE).reason_code == "no_rounds"
    lost = Problem("infrastructure_failure", "device_lost", "gone")
    assert judge_energy(run_of(problem=lost), BASELINE).reason_code == "device_lost"


def test_energy_that_is_not_verified_is_not_judged_by_a_verified_baseline() -> None:
    for values in ((0.6, 0.6), (0.9, 0.9)):
        found = judge_energy(run_of(*values, trust="unverified", trust_reason="no band"), BASELINE)
        assert (found.verdict, found.reason_code) == (Verdict.INCONCLUSIVE, "energy_unverified")
        assert found.reason.endswith("[energy of this run is unverified: no band]")
    by_name = replace(BASELINE, trust="unverified")
    found = judge_energy(run_of(0.6, 0.6, trust="unverified", trust_reason="no band"), by_name)
    assert found.verdict is Verdict.OK and "[energy of this run is unverified: no band]" in found.reason


@pytest.mark.parametrize("baseline", [BASELINE, None, replace(BASELINE, trust="unverified")])
def test_a_failed_gate_is_invalid_and_named_whatever_the_rounds_say(baseline: EnergyBaseline | None) -> None:
    gates = (FailedGate("reference_load", "before", "found 0.07 J"), FailedGate("sham_window", "run", "found 40 %"))
    for run in (run_of(0.6, 0.6), run_of(), run_of(None)):
        found = judge_energy(replace(run, trust="failed", failed_gates=gates), baseline)
        assert (found.verdict, found.reason_code, found.value) == (Verdict.INVALID, "gate_failed", None)
        assert found.reason == (
            "no usable energy, telemetry gate failed: reference_load (before): found 0.07 J; "
            "sham_window (run): found 40 %"
        )
        assert [gate["gate"] for gate in found.details["failed_gates"]] == ["reference_load", "sham_window"]
    many = judge_energy(run_of(0.6, trust="failed", failed_gates=gates * 3), baseline)
    assert many.reason.endswith("; and 3 more")
    nameless = judge_energy(run_of(0.6, trust="failed", trust_reason="sensor"), baseline)
    assert nameless.reason == "no usable energy, telemetry gate failed: sensor"


def test_rounds_that_are_all_invalid_are_counted_by_reason() -> None:
    reasons = ("throttled", "new_process", "throttled")
    made = tuple(RoundEnergy(n, False, 0.6, reason_code=reason) for n, reason in enumerate(reasons))
    found = judge_energy(run_of(rounds=made, rounds_expected=3), BASELINE)
    assert (found.verdict, found.reason_code) == (Verdict.INVALID, "no_valid_round")
    assert found.reason == "none of 3 rounds has a valid adjusted energy (throttled: 2, new_process: 1)"


def with_figures(*values: float, **figures: tuple[float, ...]) -> tuple[RoundEnergy, ...]:
    return tuple(
        RoundEnergy(n, True, value, {name.replace("_", " "): given[n] for name, given in figures.items()})
        for n, value in enumerate(values)
    )


def test_every_figure_has_the_verdict_that_it_alone_would_have_given() -> None:
    baseline = replace(
        BASELINE, rounds=with_figures(0.59, 0.6, 0.61, aligned=(0.599, 0.6, 0.601), classic=(0.5, 0.6, 0.7))
    )
    run = run_of(
        rounds=with_figures(
            *(0.6, 0.61, 0.62),
            **{"aligned": (0.609, 0.61, 0.611), "classic": (0.51, 0.61, 0.71), "audited": (0.6, 0.61, 0.62)},
        ),
        rounds_expected=3,
    )
    found = judge_energy(run, baseline)
    assert (found.verdict, found.reason_code) == (Verdict.OK, "within_spread")
    told = {name: (figure["verdict"], figure["reason_code"]) for name, figure in found.details["figures"].items()}
    assert told == {
        "aligned": ("regressed", "energy_above_spread"),
        "classic": ("ok", "within_spread"),
        "audited": ("inconclusive", "baseline_without_figure"),
    }
    aligned, classic = (found.details["figures"][name] for name in ("aligned", "classic"))
    assert (aligned["median_mj"], aligned["baseline_low_mj"], aligned["baseline_high_mj"]) == (0.61, 0.599, 0.601)
    assert aligned["detectable_mj"] < found.details["detectable_mj"] < classic["detectable_mj"]


def test_where_nothing_is_compared_no_figure_is_either() -> None:
    rounds_ = with_figures(0.6, 0.6, 0.6, aligned=(0.6, 0.7, 0.8))
    for changes, baseline, verdict, code in (
        ({"trust": "failed"}, BASELINE, "invalid", "gate_failed"),
        ({"trust": "unverified"}, BASELINE, "inconclusive", "energy_unverified"),
        ({}, None, "inconclusive", "no_baseline"),
    ):
        found = judge_energy(run_of(rounds=rounds_, rounds_expected=3, **changes), baseline)
        assert found.details["figures"] == {"aligned": {"verdict": verdict, "reason_code": code, "median_mj": 0.7}}


TRIAL = replace(HERE, protocol="trial")
SCATTERED = (1000.0, 1040.0, 1080.0)


def trials(factor: float, shift: float = 0.0) -> EnergyRun:
    """Three trials whose own figure is ``shift`` more, and whose aligned one is ``factor`` of the baseline's."""
    made = with_figures(
        *(mj + shift for mj in SCATTERED), aligned=tuple(mj * factor for mj in (1130.0, 1133.0, 1136.0))
    )
    return run_of(rounds=made, rounds_expected=3, conditions=TRIAL)


OF_TRIALS = EnergyBaseline("A100 trials", TRIAL, trials(1.0).rounds, accepted=True, trust="verified")


@pytest.mark.parametrize(
    ("run", "verdict", "code", "figure"),
    [
        (trials(1.0), Verdict.OK, "within_spread", "trial"),
        (trials(1.05), Verdict.REGRESSED, "energy_above_spread", "aligned"),
        (trials(1.05, 90.0), Verdict.REGRESSED, "energy_above_spread", "aligned"),
        (trials(0.95), Verdict.REGRESSED, "energy_below_spread", "aligned"),
        (trials(1.0, 90.0), Verdict.OK, "within_spread", "aligned"),
        (trials(1.0, 900.0), Verdict.REGRESSED, "energy_above_spread", "trial"),
    ],
)
def test_a_trial_is_judged_by_its_sharper_figure_where_it_cannot_tell(
    run: EnergyRun, verdict: Verdict, code: str, figure: str
) -> None:
    """Three trials against three: their own figure sees 10 % on two nights of five, the aligned one 5 % on each."""
    found = judge_energy(run, OF_TRIALS)
    assert (found.verdict, found.reason_code, found.details["figure"]) == (verdict, code, figure)
    medians = {name: told["median_mj"] for name, told in found.details["figures"].items()}
    assert found.value == (medians["aligned"] if figure == "aligned" else run.rounds[1].adjusted_mj)
    assert f"{figure} energy {found.value:.6g} mJ a replay" in found.reason
    assert " alone: " in found.reason
    if figure == "trial":  # what its own scatter hides, the other one would have shown
        assert "mJ, a change counts from 0." in found.reason


def test_a_trial_whose_baseline_has_no_sharper_figure_is_judged_by_its_own() -> None:
    plain = replace(OF_TRIALS, rounds=rounds(*SCATTERED))
    for run in (trials(1.5), replace(trials(1.5), rounds=(*trials(1.5).rounds[:2], RoundEnergy(2, True, 1080.0)))):
        found = judge_energy(run, plain)
        assert (found.verdict, found.details["figure"]) == (Verdict.OK, "adjusted")
        assert found.reason.startswith("adjusted energy 1040 mJ a replay (median of 3 of 3 rounds) is within")
    part = replace(trials(1.5), rounds=(*trials(1.5).rounds[:2], RoundEnergy(2, True, 1080.0)))
    assert judge_energy(part, OF_TRIALS).details["figure"] == "adjusted"


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
    json.dumps(found.details, allow_nan=False)
