"""Bands of the reference load, learnt from accepted runs."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowNotFoundException
from sqlalchemy import Engine, create_engine, text

from gpu_tasks.records import TelemetryRecord
from regression.nights import tasks
from regression.results import tables
from regression.results.baselines import accept_baseline, retire_baseline
from regression.results.reference_bands import learnt_bands
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import LOAD, SIMULATED_GPU, energy_run, telemetry
from tests.integration.regression.example_records import GPU, OTHER_GPU
from tests.integration.regression.test_verdicts import accept, store


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
