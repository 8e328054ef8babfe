"""Energy in the results: what a run is compared with, what can never be compared, and what is learnt from it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowNotFoundException
from sqlalchemy import Engine, create_engine, text

from gpu_tasks.records import BadInput, Outcome, RunRecord, write_record
from regression.detectors import CheckVerdict, Verdict
from regression.nights import tasks
from regression.results.baselines import FIRST_BASELINE_BY, accept_baseline, ensure_first_baselines
from regression.results.reference_bands import learnt_bands
from tests.integration.regression.databases import Database, one
from tests.integration.regression.example_energy import (
    ENERGIES,
    INVALID,
    SIMULATED_GPU,
    energy_round,
    energy_run,
)
from tests.integration.regression.example_records import ENVIRONMENT, GPU, OTHER_GPU
from tests.integration.regression.test_verdicts import accept, judge, settle, store

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
    assert stored["figures"] == json.loads(json.dumps(found.details["figures"]))


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
