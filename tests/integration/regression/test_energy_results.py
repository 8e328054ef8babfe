"""Energy in the results: what is stored of a run, how it is asked for, and how it is shown."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace

import pytest
from sqlalchemy import text

from gpu_tasks.records import BadInput, Reason
from regression.nights.table import verdict_table
from regression.results.gates import gates_not_passed
from regression.results.loading import LoadStatus
from regression.results.outcome import run_verdict
from tests.integration.regression.databases import Database, one
from tests.integration.regression.example_energy import (
    ENERGIES,
    LOAD,
    SIMULATED_GPU,
    TRACE,
    energy,
    energy_round,
    energy_run,
    figure,
    gate,
    telemetry,
)
from tests.integration.regression.example_records import run_record
from tests.integration.regression.test_loading import counts, everything, load
from tests.integration.regression.test_verdicts import judge, settle

PARTS = {
    **{"run_energy": 3, "round_energy": 21, "round_trace": 7},
    **{"telemetry": 2, "telemetry_trace": 2, "telemetry_gate": 9},
}


def parts(database: Database) -> dict[str, int]:
    return {name: count for name, count in counts(database).items() if name in PARTS}


def test_every_value_of_a_run_is_stored_as_it_is(database: Database) -> None:
    attempt = Reason("not_ready", "the counter was not ready")
    rounds = [energy_round(n, mj, earlier_attempts=[attempt] if n == 3 else []) for n, mj in enumerate(ENERGIES)]
    rounds[2] = replace(rounds[2], kernel_ptx_sha256="5" * 64, inject="energy+10%")
    record = energy_run(rounds=rounds, device=SIMULATED_GPU, inject="energy+10%", seed=7)
    load_before = replace(LOAD, joules_per_1e12_operations=8.3, low_duty_joules_per_1e12_operations=9.1)
    record = replace(record, telemetry=[telemetry("before", reference_load=load_before), telemetry("after")])
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
    stored = one(database, "SELECT kernel_ptx_sha256, inject FROM round WHERE round = 2")
    assert stored == {"kernel_ptx_sha256": "5" * 64, "inject": "energy+10%"}
    before = one(database, "SELECT * FROM telemetry WHERE moment = 'before'")
    assert (before["reference_low_duty_joules_per_1e12_operations"], before["power_limit_w"]) == (9.1, 400.0)
    assert (before["reference_joules_per_1e12_operations"], before["tick_period_s"]) == (8.3, 0.1)
    assert (before["idle_walk_w_per_sqrt_s"], before["reference_result_verified"]) == (0.02, True)
    assert before["readings"]["state_before"] == dataclasses.asdict(telemetry("before").state_before)


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


def test_gates_that_did_not_pass_come_in_the_order_of_gates_and_of_the_night(database: Database) -> None:
    places = ["run", "after", "round-10", "round-02", "before"]
    gates = [gate("sampling", at, passed=False) for at in places] + [gate("reference_load", "after", passed=None)]
    load(database, energy_run(gates=[*gates, gate("meters_agree", "run", passed=False)]))
    with database.reader.connect() as connection:
        told = gates_not_passed(connection, energy_run().request.run_id)
    in_order = ["before", "round-02", "round-10", "after", "run"]
    expected = [("meters_agree", "run"), *(("sampling", at) for at in in_order), ("reference_load", "after")]
    assert [(line.gate, line.at) for line in told] == expected


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
