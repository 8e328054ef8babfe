"""Baselines for energy: what can be one, what can never be compared with one, and those that ship."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from gpu_tasks.records import BadInput, Outcome, RunRecord, write_record
from regression.detectors import Verdict
from regression.results.baselines import FIRST_BASELINE_BY, accept_baseline, ensure_first_baselines
from tests.integration.regression.databases import Database, one
from tests.integration.regression.example_energy import SIMULATED_GPU, energy_run
from tests.integration.regression.example_records import ENVIRONMENT, GPU
from tests.integration.regression.test_verdicts import accept, judge, store


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
