"""Energy in the results: what is stored of a run, what it is compared with, and what can never be compared."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowNotFoundException
from sqlalchemy import Engine, create_engine, text

from gpu_tasks.records import BadInput, Outcome, Reason, RunRecord, write_record
from regression.detectors import CheckVerdict, Verdict
from regression.nights import tasks
from regression.nights.table import verdict_table
from regression.results.baselines import FIRST_BASELINE_BY, accept_baseline, ensure_first_baselines
from regression.results.gates import gates_not_passed
from regression.results.loading import LoadStatus
from regression.results.outcome import run_verdict
from regression.results.reference_bands import learnt_bands
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import (
    ENERGIES,
    SIMULATED_GPU,
    TRACE,
    energy,
    energy_round,
    energy_run,
    figure,
    gate,
    telemetry,
)
from tests.integration.regression.example_records import ENVIRONMENT, GPU, OTHER_GPU, run_record
from tests.integration.regression.test_loading import counts, everything, load
from tests.integration.regression.test_verdicts import accept, judge, settle, store

PARTS = {
    **{"run_energy": 3, "round_energy": 21, "round_trace": 7},
    **{"telemetry": 2, "telemetry_trace": 2, "telemetry_gate": 8},
}
INVALID = {"valid": False, "outcome": Outcome.INVALID_MEASUREMENT, "reason": Reason("throttled", "too hot")}


def one(database: Database, statement: str) -> dict[str, object]:
    with database.reader.connect() as connection:
        return dict(connection.execute(text(statement)).one()._mapping)


def parts(database: Database) -> dict[str, int]:
    return {name: count for name, count in counts(database).items() if name in PARTS}


def test_every_value_of_a_run_is_stored_as_it_is(database: Database) -> None:
    attempt = Reason("not_ready", "the counter was not ready")
    rounds = [energy_round(n, mj, earlier_attempts=[attempt] if n == 3 else []) for n, mj in enumerate(ENERGIES)]
    record = energy_run(rounds=rounds, device=SIMULATED_GPU, inject="energy+10%", seed=7)
    assert load(database, record) is LoadStatus.STORED
    assert parts(database) == PARTS
    run = one(
        database, "SELECT protocol, energy_trust, inject, seed, reference_joules_per_1e12_operations AS j FROM run"
    )
    expected = {"protocol": "audited", "energy_trust": "verified", "inject": "energy+10%", "seed": 7, "j": 8.4}
    assert run == expected
    (aligned,) = [f for f in record.summary.energy if f.figure == "aligned"]
    stored = one(database, "SELECT * FROM run_energy WHERE figure = 'aligned'")
    assert stored == {"run_id": record.request.run_id, **dataclasses.asdict(aligned)} | {"run_id": stored["run_id"]}
    classic = dataclasses.asdict(figure("classic", ENERGIES[2] + 0.02))
    stored = one(database, "SELECT * FROM round_energy WHERE round = 2 AND figure = 'classic'")
    key = {"run_id": stored["run_id"], "arm": "candidate", "round": 2}
    assert stored == key | classic.pop("uncertainty") | classic
    stored = one(database, "SELECT * FROM round_trace WHERE round = 6")
    assert (stored["csv"], stored["period_s"], stored["error_code"]) == (TRACE.csv, 0.05, None)
    before = one(database, "SELECT * FROM telemetry WHERE moment = 'before'")
    assert (before["reference_joules_per_1e12_operations"], before["tick_period_s"]) == (8.3, 0.1)
    assert (before["idle_walk_w_per_sqrt_s"], before["reference_result_verified"]) == (0.02, True)
    assert before["readings"]["state_before"] == dataclasses.asdict(telemetry("before").state_before)  # type: ignore[index, call-overload]


def test_readings_and_states_of_a_round_are_stored_to_the_last_bit(database: Database) -> None:
    load(database, energy_run())
    stored = one(database, "SELECT * FROM round WHERE round = 0")
    expected = dataclasses.asdict(energy_round(0, ENERGIES[0]))
    measurement = expected["energy"]
    in_columns = {"tick_period_s", "read_latency_s", "figures", "meters", "trace"}
    windows = {name: expected[name] for name in ("measurement_start", "measurement_end", "idle_before", "idle_after")}
    readings = {name: value for name, value in measurement.items() if name not in in_columns}
    assert stored["counters"] == json.loads(json.dumps(windows | readings))
    assert {"aligned", "audited", "segments", "sham", "state_before", "state_after", "seed"} <= readings.keys()
    meters = {"counter_j": 1000.0, "integrated_j": 1002.0, "meters_relative_difference": 0.002}
    meters |= {"power_integral_mj": 0.601, "sham_adjusted_mj": 0.001, "tick_period_s": 0.1, "read_latency_s": 0.0027}
    assert {name: stored[name] for name in meters} == meters


def test_a_run_with_energy_is_loaded_once_and_replaced_whole(database: Database) -> None:
    judge(database, energy_run())
    before = everything(database)
    assert load(database, energy_run()) is LoadStatus.UNCHANGED
    assert everything(database) == before
    fewer = energy_run(rounds=[energy_round(0)], telemetry=[telemetry("after", trace=None)], gates=[gate("sampling")])
    assert load(database, fewer) is LoadStatus.REPLACED
    assert everything(database)["check_result"] == []
    expected = {"run_energy": 3, "round_energy": 3, "round_trace": 1}
    assert parts(database) == expected | {"telemetry": 1, "telemetry_trace": 0, "telemetry_gate": 1}
    assert load(database, run_record("energy__1")) is LoadStatus.REPLACED
    assert parts(database) == dict.fromkeys(PARTS, 0)


@pytest.mark.parametrize(
    "changes",
    [
        {"gates": [gate("sampling"), gate("sampling")]},
        {"gates": [replace(gate("sampling"), passed=False)]},
        {"gates": [gate("luck")]},
        {"gates": [gate("sampling", "round-x")]},
        {"telemetry": [telemetry("before"), telemetry("before")]},
        {"telemetry": [telemetry("during")]},
        {"rounds": [energy_round(0, energy=energy({}, figures=[figure("classic", 1.0), figure("classic", 1.0)]))]},
        {"rounds": [energy_round(0, energy=energy({"guess": 1.0}))]},
        {"inject": "throttle"},
    ],
)
def test_energy_that_cannot_be_is_refused_whole(database: Database, changes: dict[str, object]) -> None:
    with pytest.raises(BadInput) as caught:
        load(database, energy_run(**changes))
    assert caught.value.code == "record_refused"
    assert set(counts(database).values()) == {0}


def test_traces_may_be_deleted_without_anything_else(database: Database) -> None:
    load(database, energy_run())
    with database.writer.begin() as connection:
        connection.execute(text("DELETE FROM round_trace"))
        connection.execute(text("DELETE FROM telemetry_trace"))
    assert parts(database) == PARTS | {"round_trace": 0, "telemetry_trace": 0}


def test_the_nightly_view_shows_energy_gates_and_injection(database: Database) -> None:
    load(database, energy_run("good"))
    load(database, energy_run("bad", failed=["sham_window", "reference_load"], unchecked=["exclusive"]))
    load(database, energy_run("made up", device=SIMULATED_GPU, inject="time+3%", seed=0))
    with database.reader.connect() as connection:
        columns = (
            "dag_run_id, aligned_mj_median, reference_joules_per_1e12_operations, failed_gates, inject, energy_trust"
        )
        found = connection.execute(text(f"SELECT {columns} FROM nightly ORDER BY dag_run_id")).all()
    assert [tuple(row) for row in found] == [
        ("bad", 0.59, 8.4, ["reference_load", "sham_window"], None, "failed"),
        ("good", 0.59, 8.4, [], None, "verified"),
        ("made up", 0.59, 8.4, [], "time+3%", "verified"),
    ]


MORE = tuple(mj * 1.1 for mj in ENERGIES)
A_LITTLE_MORE = tuple(mj + 0.0105 for mj in ENERGIES)


@pytest.mark.parametrize(
    ("changes", "verdict", "code", "settled"),
    [
        ({}, Verdict.OK, "within_spread", ("ok", 0)),
        ({"energies": MORE}, Verdict.REGRESSED, "energy_above_spread", ("regression", 1)),
        ({"energies": A_LITTLE_MORE}, Verdict.INCONCLUSIVE, "below_detectable_difference", ("ok", 0)),
        ({"unchecked": ["exclusive"]}, Verdict.INCONCLUSIVE, "energy_unverified", ("ok", 0)),
        ({"failed": ["sham_window"]}, Verdict.INVALID, "gate_failed", ("invalid_measurement", 3)),
        ({"device": OTHER_GPU}, Verdict.INCONCLUSIVE, "baseline_other_device", ("ok", 0)),
        ({"device": SIMULATED_GPU}, Verdict.INCONCLUSIVE, "no_baseline", ("ok", 0)),
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
    assert stored["figures"] == json.loads(json.dumps(found.details["figures"]))  # type: ignore[index, call-overload]


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
    with database.writer.begin() as connection:
        connection.execute(text("UPDATE baseline SET accepted_by = :by"), {"by": FIRST_BASELINE_BY})
    ensure_first_baselines(database.writer, tmp_path)  # an older one that was shipped gives way
    newest = one(database, "SELECT dag_run_id FROM baseline_current")
    assert newest == {"dag_run_id": "shipped"}


def test_bands_are_learnt_from_accepted_runs_by_model_and_kind(database: Database) -> None:
    accept(database, energy_run("a", joules=8.0))
    accept(database, energy_run("b", joules=9.0, device=replace(GPU, uuid="GPU-3")))
    accept(database, energy_run("other", joules=5.0, device=OTHER_GPU))
    accept(database, energy_run("simulated", joules=1.0, device=SIMULATED_GPU))
    store(database, energy_run("never accepted", joules=100.0))
    with database.reader.connect() as connection:
        real, simulated = (learnt_bands(connection, simulated=kind) for kind in (False, True))
    assert real == {
        "Other GPU": pytest.approx([0.75 * 4.9, 1.25 * 5.1]),
        "Test GPU": pytest.approx([0.75 * 7.9, 1.25 * 9.1]),
    }
    assert simulated == {"Simulated GPU": pytest.approx([0.75 * 0.9, 1.25 * 1.1])}
    assert all(type(edge) is float for band in real.values() for edge in band)


def test_no_band_is_learnt_from_what_is_retired_or_not_for_energy(database: Database) -> None:
    accept(database, energy_run("retired"))
    accept_baseline(
        database.writer, energy_run("retired").request.run_id, accepted_by="t", reason="r", for_energy=False
    )
    with database.reader.connect() as connection:
        assert learnt_bands(connection, simulated=False) == {}


def test_gates_that_did_not_pass_come_in_the_order_of_gates_and_of_the_night(database: Database) -> None:
    places = ["run", "after", "round-10", "round-02", "before"]
    gates = [gate("sampling", at, passed=False) for at in places] + [gate("reference_load", "after", passed=None)]
    load(database, energy_run(gates=[*gates, gate("meters_agree", "run", passed=False)]))
    with database.reader.connect() as connection:
        told = gates_not_passed(connection, energy_run().request.run_id)
    in_order = ["before", "round-02", "round-10", "after", "run"]
    expected = [("meters_agree", "run"), *(("sampling", at) for at in in_order), ("reference_load", "after")]
    assert [(line.gate, line.at) for line in told] == expected


def test_without_a_database_no_band_is_learnt_and_nothing_fails(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    accept(database, energy_run("simulated", device=SIMULATED_GPU))

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


def test_the_table_of_a_run_shows_figures_and_gates_that_did_not_pass(database: Database) -> None:
    judge(database, energy_run("tonight", failed=["sham_window"], unchecked=["exclusive"]))
    settle(database, "tonight")
    with database.reader.connect() as connection:
        lines = verdict_table(run_verdict(connection, "nightly_qda", "tonight")).splitlines()
    assert "  energy of  figure   rounds  median mJ  sd mJ    detectable mJ" in lines
    assert "  candidate  aligned  7       0.59       0.00647  0.01" in lines
    assert "  sham_window  run    failed     sham_window is off" in lines
    assert "  exclusive    run    unchecked  exclusive is off" in lines
    assert not any("sampling" in line for line in lines)


def test_the_table_of_a_run_without_energy_is_as_short_as_ever(database: Database) -> None:
    judge(database, run_record("tonight", energy_trust="unavailable", gates=[gate("exclusive", passed=None)]))
    settle(database, "tonight")
    with database.reader.connect() as connection:
        told = verdict_table(run_verdict(connection, "nightly_qda", "tonight"))
    assert "mJ" not in told.partition("kernels")[2] and "exclusive" not in told


def test_a_check_verdict_is_stored_with_its_details(database: Database) -> None:
    accept(database, energy_run("base"))
    found: CheckVerdict = judge(database, energy_run("tonight"))["energy"]
    stored = one(database, "SELECT details FROM check_result WHERE check_name = 'energy'")["details"]
    assert stored["detectable_mj"] == found.details["detectable_mj"] > 0  # type: ignore[index, call-overload]
