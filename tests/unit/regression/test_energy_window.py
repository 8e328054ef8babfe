"""Energies of rounds that worked for other times are not compared: what they read too little is not the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from regression.detectors import EnergyBaseline, EnergyRun, MeasurementConditions, RoundEnergy, Verdict, judge_energy
from regression.detectors.window import Window, other_window

HERE = MeasurementConditions("A100 (GPU-1)", "manifest", "audited", "driver=1", "ptx")
USUAL = (1_170_000, 20.0)


def rounds(window: Window | None, *values: float) -> tuple[RoundEnergy, ...]:
    return tuple(RoundEnergy(number, True, value, window=window) for number, value in enumerate(values))


BASELINE = EnergyBaseline("night 1", HERE, rounds(USUAL, 0.59, 0.60, 0.61), accepted=True, trust="verified")


def judged(window: Window | None, baseline: EnergyBaseline = BASELINE) -> str:
    found = judge_energy(EnergyRun(HERE, rounds(window, 0.5, 0.5, 0.5), 3, "verified"), baseline)
    assert (found.verdict is Verdict.INCONCLUSIVE) is (found.reason_code == "baseline_other_window")
    return found.reason_code


@pytest.mark.parametrize(
    ("window", "code"),
    [
        (USUAL, "energy_below_spread"),
        ((300_000, 5.1), "baseline_other_window"),  # four times less work: 0.5 % too little would be 6 %
        ((4_700_000, 80.0), "baseline_other_window"),
        ((1_170_000, 40.0), "energy_below_spread"),  # as many replays of a kernel that became slower
        ((585_000, 20.0), "energy_below_spread"),  # as long, with fewer of them
        ((936_000, 16.0), "energy_below_spread"),
        ((930_000, 15.9), "baseline_other_window"),
        (None, "energy_below_spread"),
    ],
)
def test_windows_of_another_length_and_number_are_not_compared(window: Window | None, code: str) -> None:
    assert judged(window) == code


def test_what_the_baseline_does_not_say_is_not_compared() -> None:
    assert judged((300_000, 5.1), replace(BASELINE, rounds=rounds(None, 0.59, 0.60, 0.61))) == "energy_below_spread"


def test_both_windows_are_named() -> None:
    assert other_window([(300_000, 5.12)], [USUAL], "night 1") == (
        "baseline_other_window",
        "baseline night 1 worked 20 s a round (1170000 replays), this run 5.12 s (300000)",
    )


def test_rounds_that_are_not_valid_have_no_say() -> None:
    """One that was cut short is no window of the run."""
    cut = replace(RoundEnergy(3, False, None), window=(100, 0.1))
    run = EnergyRun(HERE, (*rounds(USUAL, 0.60, 0.60, 0.60), cut, replace(cut, round=4)), 5, "verified")
    assert judge_energy(run, BASELINE).reason_code == "within_spread"
