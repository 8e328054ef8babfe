"""Verdicts on the energy of stored runs: what a run is compared with, and under which conditions."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gpu_tasks.records import GpuState, Outcome, RoundRecord, RunRecord
from regression.detectors import CheckVerdict, Verdict
from regression.results.baselines import retire_baseline
from tests.integration.regression.databases import Database, one
from tests.integration.regression.example_energy import (
    ENERGIES,
    INVALID,
    SIMULATED_GPU,
    STATE,
    energy,
    energy_round,
    energy_run,
    figure,
    telemetry,
)
from tests.integration.regression.example_records import GPU, NO_COUNTER, OTHER_GPU, measured, payload
from tests.integration.regression.test_verdicts import accept, judge, settle

NO_MORE = replace(GPU, energy_counter=False, energy_counter_reason=NO_COUNTER)
GONE: dict[str, Any] = {
    **{"device": NO_MORE, "rounds": [measured(number, None) for number in range(7)]},
    **{"telemetry": [], "gates": [], "energy_trust": "unavailable", "energy_trust_reason": NO_COUNTER},
}
"""What makes a run one without energy, on the same board."""


NO_STATE = replace(STATE, power_limit_w=None, power_kind=None)
MORE = tuple(mj * 1.1 for mj in ENERGIES)
A_LITTLE_MORE = tuple(mj + 0.0105 for mj in ENERGIES)


def at(number: int, power_limit_w: float, **changes: Any) -> RoundRecord:
    """A round of 0.6 mJ under that power limit."""
    state = replace(STATE, power_limit_w=power_limit_w)
    details = energy({"audited": 0.6}, state_before=state, state_after=state)
    return energy_round(number, 0.6, energy=details, **changes)


@pytest.mark.parametrize(
    ("changes", "verdict", "code", "settled"),
    [
        ({}, Verdict.OK, "within_spread", ("ok", 0)),
        ({"energies": MORE}, Verdict.REGRESSED, "energy_above_spread", ("regression", 1)),
        ({"energies": A_LITTLE_MORE}, Verdict.INCONCLUSIVE, "below_detectable_difference", ("inconclusive", 0)),
        ({"unchecked": ["exclusive"]}, Verdict.INCONCLUSIVE, "energy_unverified", ("inconclusive", 0)),
        ({"failed": ["sham_window"]}, Verdict.INVALID, "gate_failed", ("invalid_measurement", 3)),
        ({"device": OTHER_GPU}, Verdict.INCONCLUSIVE, "baseline_other_device", ("inconclusive", 0)),
        ({"device": SIMULATED_GPU}, Verdict.INCONCLUSIVE, "no_baseline", ("inconclusive", 0)),
        (GONE, Verdict.INVALID, "energy_vanished", ("invalid_measurement", 3)),
        (GONE | {"device": replace(NO_MORE, uuid="GPU-3")}, Verdict.UNAVAILABLE, "no_energy_counter", ("ok", 0)),
        (
            {"rounds": [at(n, 320.0) for n in range(7)]},
            Verdict.INCONCLUSIVE,
            "baseline_other_power_limit",
            ("inconclusive", 0),
        ),
        (
            {"rounds": [energy_round(n, mj, **INVALID) for n, mj in enumerate(ENERGIES)]},
            Verdict.INVALID,
            "throttled",
            ("invalid_measurement", 3),
        ),
        (
            {"rounds": [energy_round(n, mj, **(INVALID if n == 2 else {})) for n, mj in enumerate(ENERGIES)]}
            | {"outcome": Outcome.OK, "reason": None},
            Verdict.OK,
            "within_spread",
            ("ok", 0),
        ),
    ],
)
def test_energy_verdicts_of_stored_runs(
    database: Database, changes: dict[str, object], verdict: Verdict, code: str, settled: tuple[str, int]
) -> None:
    accept(database, energy_run("base"))
    found = judge(database, energy_run("tonight", **changes))["energy"]
    assert (found.verdict, found.reason_code) == (verdict, code), found.reason
    told = settle(database, "tonight")
    assert (told["verdict"], told["exit"]) == settled


def test_energy_is_missed_whatever_other_baseline_is_closer(database: Database) -> None:
    """The baseline for energy of the same board is of another set and protocol, and older than those of others."""
    other_set = energy_run("base", **{"verify_payload": replace(energy_run().verify_payload, payload=payload("fresh"))})
    accepted = accept(database, other_set)
    accept(database, energy_run("of another", device=OTHER_GPU))
    accept(database, energy_run("predictions", energy_trust="unverified"))
    found = judge(database, energy_run("tonight", **GONE))["energy"]
    assert (found.verdict, found.reason_code) == (Verdict.INVALID, "energy_vanished")
    assert one(database, "SELECT baseline_id FROM check_result WHERE check_name = 'energy'") == {
        "baseline_id": accepted
    }
    assert found.reason == (
        "the energy of GPU-1 is gone (the reference device has no energy counter): baseline Test GPU base of the same "
        "device has one"
    )


@pytest.mark.parametrize("kind", ["simulated", "cuda"])
def test_energy_that_only_a_simulated_twin_had_is_not_missed_and_the_other_way_round(
    database: Database, kind: str
) -> None:
    twin = replace(GPU, kind=kind)
    accept(database, energy_run("base", device=twin))
    other = replace(NO_MORE, kind="cuda" if kind == "simulated" else "simulated")
    assert judge(database, energy_run("tonight", **GONE | {"device": other}))["energy"].verdict is Verdict.UNAVAILABLE


def test_energy_that_nobody_accepted_any_more_is_not_missed(database: Database) -> None:
    accept(database, energy_run("base"))
    retire_baseline(database.writer, energy_run("base").request.run_id, retired_by="t", reason="old driver")
    assert judge(database, energy_run("tonight", **GONE))["energy"].verdict is Verdict.UNAVAILABLE


def with_states(name: str, state: GpuState | None) -> RunRecord:
    """A run that was all measured in one state of the GPU."""
    rounds = [energy_round(n, mj, energy=energy({"audited": mj}, state_before=state or NO_STATE))
              for n, mj in enumerate(ENERGIES)]  # fmt: skip
    looks = [telemetry(when, state_before=state) for when in ("before", "after")]
    return energy_run(name, rounds=rounds, telemetry=looks)


@pytest.mark.parametrize(
    ("state", "code", "not_compared"),
    [
        (replace(STATE, power_limit_w=320.0), "baseline_other_power_limit", None),
        (replace(STATE, power_kind="average"), "baseline_other_power_kind", None),
        (replace(STATE, power_limit_w=None), "within_spread", ["power_limit"]),
        (replace(STATE, power_limit_w=None, power_kind=None), "within_spread", ["power_limit", "power_kind"]),
        (None, "within_spread", ["power_limit", "power_kind"]),
        (replace(STATE, default_power_limit_w=250.0), "within_spread", []),
    ],
)
def test_power_limit_and_kind_of_power_are_conditions_where_both_sides_say_them(
    database: Database, state: GpuState | None, code: str, not_compared: list[str] | None
) -> None:
    accept(database, energy_run("base"))
    found = judge(database, with_states("tonight", state))["energy"]
    assert (found.reason_code, found.details.get("not_compared")) == (code, not_compared)


@pytest.mark.parametrize(
    ("repeats", "code"), [(1_000_000, "within_spread"), (300_000, "baseline_other_window"), (None, "within_spread")]
)
def test_rounds_that_worked_for_another_time_are_not_compared(
    database: Database, repeats: int | None, code: str
) -> None:
    def night(name: str, repeats: int | None) -> RunRecord:
        return energy_run(
            name, rounds=[energy_round(n, mj, repeats=repeats, wall_ms=0.017) for n, mj in enumerate(ENERGIES)]
        )

    accept(database, night("base", 1_000_000))
    assert judge(database, night("tonight", repeats))["energy"].reason_code == code


def test_the_limit_is_that_of_telemetry_and_of_valid_rounds(database: Database) -> None:
    accept(database, energy_run("base"))
    silent = energy_run("tonight", rounds=[at(n, 320.0) for n in range(3)], telemetry=[])
    found = judge(database, silent)["energy"]
    assert found.reason.endswith("ran under a power limit of 400 W, this run under 320 W")
    looks = [telemetry("before", state_before=replace(STATE, power_limit_w=320.0)), telemetry("after")]
    mixed = judge(database, energy_run("mixed", telemetry=looks))["energy"]
    assert mixed.reason.endswith("ran under a power limit of 400 W, this run under 320 W and 400 W")
    disturbed = [at(0, 320.0, **INVALID), *(at(n, 400.0) for n in range(1, 4))]
    fine = energy_run("later", rounds=disturbed, outcome=Outcome.OK, reason=None)
    assert judge(database, fine)["energy"].reason_code == "within_spread"


def test_a_failed_gate_is_named_with_its_place_and_reason(database: Database) -> None:
    accept(database, energy_run("base"))
    found = judge(database, energy_run("tonight", failed=["reference_load", "sham_window"]))["energy"]
    assert found.reason == (
        "no usable energy, telemetry gate failed: reference_load (before): reference_load is off; "
        "reference_load (after): reference_load is off; sham_window (run): sham_window is off"
    )


def test_aligned_and_classic_are_judged_beside_the_own_figure(database: Database) -> None:
    accept(database, energy_run("base"))
    found = judge(database, energy_run("tonight", energies=MORE))["energy"]
    assert {name: told["verdict"] for name, told in found.details["figures"].items()} == {
        **{"aligned": "regressed", "audited": "regressed", "classic": "regressed"}
    }
    stored = one(database, "SELECT details FROM check_result WHERE check_name = 'energy'")["details"]
    assert stored["figures"] == json.loads(json.dumps(found.details["figures"]))


def test_what_interleaved_rounds_read_of_nothing_is_no_figure_to_be_judged(database: Database) -> None:
    subjects = {"candidate": 0.6, "candidate - baseline": -0.0002, "idle - idle": 0.001}
    figures = [figure("interleaved", mj, subject) for subject, mj in subjects.items()]
    rounds = [energy_round(n, energy=energy({}, figures=figures)) for n in range(3)]
    accept(database, energy_run("base", rounds=rounds))
    found = judge(database, energy_run("tonight", rounds=rounds))["energy"]
    assert list(found.details["figures"]) == ["interleaved", "interleaved candidate - baseline"]


def test_a_check_verdict_is_stored_with_its_details(database: Database) -> None:
    accept(database, energy_run("base"))
    found: CheckVerdict = judge(database, energy_run("tonight"))["energy"]
    stored = one(database, "SELECT details FROM check_result WHERE check_name = 'energy'")["details"]
    assert stored["detectable_mj"] == found.details["detectable_mj"] > 0
