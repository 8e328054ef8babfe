"""Energy in the results: what a run is compared with, what can never be compared, and what is learnt from it."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowNotFoundException
from sqlalchemy import Engine, create_engine, text

from gpu_tasks.records import BadInput, GpuState, Outcome, RoundRecord, RunRecord, TelemetryRecord, write_record
from regression.detectors import CheckVerdict, Verdict
from regression.nights import tasks
from regression.results import tables
from regression.results.baselines import (
    FIRST_BASELINE_BY,
    accept_baseline,
    ensure_first_baselines,
    retire_baseline,
)
from regression.results.reference_bands import learnt_bands
from tests.integration.regression.databases import Database, one
from tests.integration.regression.example_energy import (
    ENERGIES,
    INVALID,
    LOAD,
    SIMULATED_GPU,
    STATE,
    energy,
    energy_round,
    energy_run,
    figure,
    telemetry,
)
from tests.integration.regression.example_records import (
    ENVIRONMENT,
    GPU,
    NO_COUNTER,
    OTHER_GPU,
    measured,
    payload,
)
from tests.integration.regression.test_verdicts import accept, judge, settle, store

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


def test_simulated_and_real_devices_never_share_a_baseline_for_energy(database: Database) -> None:
    """Not even when name and uuid are the same."""
    twin = replace(GPU, kind="simulated")
    accept(database, energy_run("real"))
    assert judge(database, energy_run("simulated", device=twin))["energy"].reason_code == "no_baseline"
    with database.writer.begin() as connection:
        connection.execute(text("UPDATE baseline SET retired_at = now()"))
    accept(database, energy_run("simulated base", device=twin))
    assert judge(database, energy_run("real again"))["energy"].reason_code == "no_baseline"
    assert judge(database, energy_run("simulated again", device=twin))["energy"].verdict is Verdict.OK


def test_a_simulated_device_is_compared_whatever_versions_it_runs_with(database: Database) -> None:
    def in_other_versions(record: RunRecord) -> RunRecord:
        assert record.provision
        environment = replace(ENVIRONMENT, driver="999", python="3.12.1")
        return replace(record, provision=replace(record.provision, environment=environment))

    accept(database, energy_run("base", device=SIMULATED_GPU))
    simulated = in_other_versions(energy_run("tonight", device=SIMULATED_GPU))
    assert judge(database, simulated)["energy"].verdict is Verdict.OK
    accept(database, energy_run("real"))
    real = judge(database, in_other_versions(energy_run("real tonight")))["energy"]
    assert real.reason_code == "baseline_other_environment"


@pytest.mark.parametrize(
    ("changes", "for_energy", "message"),
    [
        ({"device": SIMULATED_GPU, "inject": "energy+10%", "seed": 1}, None, "made with injected energy"),
        ({"failed": ["sham_window"]}, None, "outcome invalid_measurement"),
        ({"failed": ["sham_window"], "outcome": Outcome.OK, "reason": None}, True, r"energy, which is failed \(sham"),
        ({"energy_trust": "unavailable"}, True, "energy, which is unavailable"),
    ],
)
def test_what_cannot_be_a_baseline_for_energy_is_refused(
    database: Database, changes: dict[str, object], for_energy: bool | None, message: str
) -> None:
    run_id = store(database, energy_run("x", **changes))
    with pytest.raises(BadInput, match=message):
        accept_baseline(database.writer, run_id, accepted_by="t", reason="r", for_energy=for_energy)


def test_a_run_with_a_failed_gate_may_still_be_a_baseline_for_predictions(database: Database) -> None:
    run_id = store(database, energy_run("x", failed=["sham_window"], outcome=Outcome.OK, reason=None))
    accept_baseline(database.writer, run_id, accepted_by="t", reason="r")
    assert one(database, "SELECT for_agreement, for_energy FROM baseline") == {
        "for_agreement": True,
        "for_energy": False,
    }


def test_every_shipped_record_is_imported_and_accepted_once(database: Database, tmp_path: Path) -> None:
    shipped = [energy_run("qda-a100", energy_trust="unverified"), energy_run("qda-simulated", device=SIMULATED_GPU)]
    for record in shipped:
        write_record(record, tmp_path / f"{record.request.dag_run_id}.json")
    expected = [record.request.run_id for record in shipped]
    assert ensure_first_baselines(database.writer, tmp_path) == ensure_first_baselines(database.writer, tmp_path)
    with database.reader.connect() as connection:
        found = connection.execute(text("SELECT run_id::text, for_energy, reason FROM baseline ORDER BY run_id")).all()
    reason = "record shipped with the repository: reference for predictions and time"
    energy_too = f"{reason} and, its sensor being verified, energy"
    told = zip(expected, [False, True], [reason, energy_too], strict=True)
    assert sorted(map(tuple, found)) == sorted(told)


def test_a_shipped_record_does_not_take_the_place_of_a_users_baseline(database: Database, tmp_path: Path) -> None:
    users = accept(database, energy_run("mine"))
    write_record(energy_run("shipped"), tmp_path / "shipped.json")
    ensure_first_baselines(database.writer, tmp_path)
    with database.reader.connect() as connection:
        assert connection.execute(text("SELECT baseline_id FROM baseline")).scalars().all() == [users]
    with database.admin.begin() as connection:
        connection.execute(text("UPDATE baseline SET accepted_by = :by"), {"by": FIRST_BASELINE_BY})
    ensure_first_baselines(database.writer, tmp_path)  # an older one that was shipped gives way
    newest = one(database, "SELECT dag_run_id FROM baseline_current")
    assert newest == {"dag_run_id": "shipped"}


def test_a_check_verdict_is_stored_with_its_details(database: Database) -> None:
    accept(database, energy_run("base"))
    found: CheckVerdict = judge(database, energy_run("tonight"))["energy"]
    stored = one(database, "SELECT details FROM check_result WHERE check_name = 'energy'")["details"]
    assert stored["detectable_mj"] == found.details["detectable_mj"] > 0


def accepted_runs(database: Database, *names: str, **changes: Any) -> list[str]:
    """Runs accepted one after the other; a later one takes the place of an earlier one of the same key."""
    runs = [energy_run(name, **changes) for name in names]
    for record in runs:
        accept(database, record)
    return [record.request.run_id for record in runs]


def bands(database: Database, *, simulated: bool = False) -> dict[str, list[float]]:
    with database.reader.connect() as connection:
        return learnt_bands(connection, simulated=simulated)


def loads(joules: float, speed: float) -> list[TelemetryRecord]:
    """Telemetry before and after, of which the first costs a little less and is a little faster."""
    load = replace(LOAD, tera_operations_per_s=speed, joules_per_1e12_operations=joules)
    faster = replace(load, tera_operations_per_s=speed + 0.5, joules_per_1e12_operations=joules - 0.1)
    return [telemetry("before", reference_load=faster), telemetry("after", reference_load=load)]


def test_bands_are_learnt_from_accepted_runs_by_model_and_kind(database: Database) -> None:
    accepted_runs(database, "a", "b", telemetry=loads(8.0, 19.0))
    accepted_runs(database, "c", telemetry=loads(9.0, 21.0), device=replace(GPU, uuid="GPU-3"))
    accepted_runs(database, "o1", "o2", "o3", telemetry=loads(5.0, 40.0), device=OTHER_GPU)
    accepted_runs(database, "s1", "s2", "s3", telemetry=loads(1.0, 2.0), device=SIMULATED_GPU)
    store(database, energy_run("never accepted", joules=100.0))
    assert bands(database) == {
        "Other GPU": pytest.approx([0.75 * 4.9, 1.25 * 5.0, 0.75 * 40.0, 1.25 * 40.5]),
        "Test GPU": pytest.approx([0.75 * 7.9, 1.25 * 9.0, 0.75 * 19.0, 1.25 * 21.5]),
    }
    simulated = bands(database, simulated=True)
    assert simulated == {"Simulated GPU": pytest.approx([0.75 * 0.9, 1.25 * 1.0, 0.75 * 2.0, 1.25 * 2.5])}
    assert all(type(edge) is float for edge in simulated["Simulated GPU"])


def test_two_accepted_runs_teach_nothing_however_often_they_are_accepted(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    (run_id, _) = accepted_runs(database, "a", "b")
    accept_baseline(database.writer, run_id, accepted_by="t", reason="again")
    assert bands(database) == {}
    told = "no band of the reference load is learnt for Test GPU: expected 3 accepted runs or more, found 2"
    assert told in caplog.text
    accepted_runs(database, "c")
    assert list(bands(database)) == ["Test GPU"]


@pytest.mark.parametrize(("joules", "learnt"), [(10.17, True), (10.37, False), (4.0, False), (-8.0, False)])
def test_runs_whose_loads_are_far_apart_teach_nothing(
    database: Database, caplog: pytest.LogCaptureFixture, joules: float, learnt: bool
) -> None:
    """The others show 7.9 to 8.0 J; 1.3 times 7.9 are 10.27."""
    caplog.set_level(logging.INFO)
    accepted_runs(database, "a", "b", telemetry=loads(8.0, 19.0))
    accepted_runs(database, "c", telemetry=loads(joules, 19.0))
    assert (list(bands(database)) == ["Test GPU"]) == learnt
    assert ("Test GPU: expected accepted runs within a factor of 1.3, found" in caplog.text) != learnt


def test_bands_are_learnt_neither_from_injected_nor_withdrawn_nor_retired_runs(database: Database) -> None:
    """One of three accepted runs is taken out in each way, and put back before the next."""
    run_ids = accepted_runs(database, "a", "b", "c")
    reason = {"withdrawn_by": "t", "reason": "sensor"}
    with database.admin.begin() as connection:
        connection.execute(text("UPDATE run SET inject = 'sensor*0.5', seed = 1 WHERE run_id = :r"), {"r": run_ids[1]})
    assert bands(database) == {}
    with database.admin.begin() as connection:
        connection.execute(text("UPDATE run SET inject = NULL"))
    assert list(bands(database)) == ["Test GPU"]
    for scope in ("energy", "all"):
        with database.admin.begin() as connection:
            connection.execute(tables.withdrawal.delete())
            connection.execute(tables.withdrawal.insert().values(run_id=run_ids[0], scope=scope, **reason))
        assert bands(database) == {}
    with database.admin.begin() as connection:
        connection.execute(tables.withdrawal.delete())
    retire_baseline(database.writer, run_ids[2], retired_by="t", reason="its sensor is wrong")
    assert bands(database) == {}


def test_no_band_is_learnt_from_a_run_that_made_way_for_one_without_energy(database: Database) -> None:
    run_ids = accepted_runs(database, "a", "b", "c")
    accept_baseline(database.writer, run_ids[2], accepted_by="t", reason="predictions only", for_energy=False)
    assert bands(database) == {}


def test_no_band_is_learnt_from_loads_with_a_wrong_result(database: Database) -> None:
    wrong = replace(LOAD, result_verified=False)
    accepted_runs(database, "a", "b")
    accepted_runs(database, "c", telemetry=[telemetry(when, reference_load=wrong) for when in ("before", "after")])
    assert bands(database) == {}


def test_without_a_database_no_band_is_learnt_and_nothing_fails(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    accepted_runs(database, "a", "b", "c", device=SIMULATED_GPU)

    def no_connection() -> Engine:
        raise AirflowNotFoundException("the connection is not defined")

    away = create_engine("postgresql+psycopg2://nobody:x@127.0.0.1:1/none")
    for engine in (lambda: away, no_connection):
        monkeypatch.setattr(tasks, "results_engine", engine)
        assert tasks._reference_bands("auto") == {}
        assert "no bands of the reference load were learnt" in caplog.text
        caplog.clear()
    monkeypatch.setattr(tasks, "results_engine", lambda: database.reader)
    assert tasks._reference_bands("auto") == tasks._reference_bands("reference") == {}
    assert list(tasks._reference_bands("simulated")) == ["Simulated GPU"]
