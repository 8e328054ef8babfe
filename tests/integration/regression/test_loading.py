"""Loading run records into a real PostgreSQL: once and for all, from several at once, and through the spool."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from sqlalchemy import create_engine, text

from gpu_tasks.records import BadInput, InfrastructureFailure, Outcome, Reason, RunRecord, to_json, write_record
from regression.nights import tasks
from regression.nights.folder import Night
from regression.results import tables
from regression.results.loading import LoadStatus, load_run
from regression.results.outcome import settle_verdict
from regression.results.spool import keep_record, load_record, waiting
from tests.integration.regression.databases import Database
from tests.integration.regression.example_records import (
    CPU,
    lost_validation,
    measured,
    run_record,
    sha256_of,
    validation,
)

IMPOSSIBLE = [
    (run_record(rounds=[measured(1), measured(1)]), "record_refused"),
    (run_record(validations=[validation(1, total=900)]), "record_refused"),
    (run_record(request=replace(run_record().request, run_id="not a uuid")), "bad_run_id"),
    (run_record(request=replace(run_record().request, run_id=run_record("other").request.run_id)), "bad_run_id"),
    (run_record(energy_trust="perhaps"), "record_refused"),
    (run_record(outcome=Outcome.REGRESSION, reason=None), "record_refused"),
    (run_record(completed_at="2026-11-29T00:00:00Z"), "record_refused"),
    (run_record(started_at="2026-11-30T02:00:00"), "naive_time"),
    (run_record(reason=Reason("c", "nul \0 here"), outcome=Outcome.REGRESSION), "record_refused"),
    (run_record(rounds=[measured(1, repeats=2**70)]), "record_refused"),
    (run_record("".join(map(chr, range(0x4E00, 0x4E00 + 9000)))), "record_refused"),  # no index has room for the name
]


def load(database: Database, record: RunRecord) -> LoadStatus:
    return load_run(database.writer, record, sha256_of(record)).status


def counts(database: Database) -> dict[str, int]:
    names = [name for name in tables.metadata.tables if name not in ("baseline", "check_result")]
    with database.reader.connect() as connection:
        return {n: connection.execute(text(f"SELECT count(*) FROM {n}")).scalar_one() for n in names}


def everything(database: Database) -> dict[str, list[Any]]:
    with database.reader.connect() as connection:
        return {
            name: sorted(map(repr, connection.execute(text(f"SELECT * FROM {name}"))))
            for name in (*counts(database), "check_result", "baseline")
        }


ONE_RUN = {
    **{"run": 1, "validation": 11, "round": 7, "device": 1, "environment": 1, "source_state": 1},
    **{"payload": 1, "payload_draw": 11},
    **dict.fromkeys(("round_energy", "round_trace", "run_energy", "telemetry", "telemetry_gate", "telemetry_trace"), 0),
    **dict.fromkeys(
        ("comparison", "comparison_block", "comparison_difference", "withdrawal", "alert", "alert_event"), 0
    ),
    **dict.fromkeys(("run_setting", "qualification", "qualification_case"), 0),
    **dict.fromkeys(("task_memory", "memory_storage", "memory_tensor"), 0),
}


def test_the_same_record_twice_changes_nothing(database: Database) -> None:
    assert load(database, run_record()) is LoadStatus.STORED
    before = everything(database)
    assert load(database, run_record()) is LoadStatus.UNCHANGED
    assert everything(database) == before
    assert counts(database) == ONE_RUN


def test_runs_share_what_they_have_in_common(database: Database) -> None:
    load(database, run_record("a"))
    load(database, run_record("b", device=CPU))
    assert counts(database) == ONE_RUN | {"run": 2, "validation": 22, "round": 14, "device": 2}


def test_a_run_that_was_not_judged_is_replaced_whole(database: Database) -> None:
    lost = run_record(validations=[validation(0), lost_validation(1)], energies=[0.6])
    load(database, lost)
    assert load(database, run_record()) is LoadStatus.REPLACED
    assert counts(database) == ONE_RUN
    with database.reader.connect() as connection:
        assert connection.execute(text("SELECT outcome, reason_code FROM run")).one() == ("ok", None)


def test_a_judged_run_is_history_unless_the_infrastructure_failed(database: Database) -> None:
    load(database, run_record(validations=[lost_validation(0)]))
    with database.writer.begin() as connection:
        assert settle_verdict(connection, "nightly_qda", "manual__1", ()).verdict == "infrastructure_failure"
    assert load(database, run_record()) is LoadStatus.REPLACED
    with database.writer.begin() as connection:
        settle_verdict(connection, "nightly_qda", "manual__1", ())
    before = everything(database)
    with pytest.raises(BadInput, match="was judged inconclusive on another record") as caught:
        load(database, run_record(energies=[0.7]))
    assert caught.value.code == "run_already_judged"
    assert everything(database) == before
    assert load(database, run_record()) is LoadStatus.UNCHANGED


def test_a_record_that_cannot_be_is_refused_whole(database: Database) -> None:
    for record, code in IMPOSSIBLE:
        with pytest.raises(BadInput) as caught:
            load(database, record)
        assert caught.value.code == code, caught.value.message
        assert "\n" not in caught.value.message
    assert set(counts(database).values()) == {0}


def test_loaders_at_once_leave_one_complete_run(database: Database) -> None:
    statuses: list[Any] = []
    start = threading.Barrier(6)

    def loader(name: str) -> None:
        start.wait()
        try:
            statuses.append(load(database, run_record(name)))
        except BaseException as error:
            statuses.append(error)

    threads = [threading.Thread(target=loader, args=(name,)) for name in ("a", "b", "a", "b", "a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(statuses) == [LoadStatus.STORED] * 2 + [LoadStatus.UNCHANGED] * 4
    assert counts(database) == ONE_RUN | {"run": 2, "validation": 22, "round": 14}


def files(folder: Path) -> set[str]:
    """Record files in the folder, by path."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*.json")}


def stored_sha256(database: Database, name: str = "manual__1") -> str:
    with database.reader.connect() as connection:
        found = connection.execute(text("SELECT record_sha256 FROM run WHERE dag_run_id = :n"), {"n": name})
        return str(found.scalar_one())


def settled(database: Database, record: RunRecord) -> None:
    with database.writer.begin() as connection:
        settle_verdict(connection, "nightly_qda", record.request.dag_run_id, ())


def test_the_spool_drains_older_records_first_and_in_order(database: Database, tmp_path: Path) -> None:
    away = create_engine("postgresql+psycopg2://nobody:x@127.0.0.1:1/none")
    for age, name in enumerate(["fifth", "fourth", "third", "second", "first"]):
        path = keep_record(run_record(name), tmp_path)
        with pytest.raises(InfrastructureFailure) as caught:
            load_record(away, tmp_path, run_record(name))
        assert caught.value.code == "results_unavailable"
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    assert len(waiting(tmp_path)) == 5
    load_record(database.writer, tmp_path, run_record("now"))
    assert waiting(tmp_path) == []
    with database.reader.connect() as connection:
        loaded = connection.execute(text("SELECT dag_run_id FROM run ORDER BY loaded_at")).scalars().all()
    assert loaded == ["first", "second", "third", "fourth", "fifth", "now"]
    assert len(list(tmp_path.glob("*.json"))) == 6


def test_what_is_kept_is_what_the_database_holds_and_a_refused_record_lies_beside_it(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, other = run_record(), run_record(energies=[0.7])
    run_id = first.request.run_id
    assert load_record(database.writer, tmp_path, first).status is LoadStatus.STORED
    settled(database, first)
    for _ in range(2):
        with pytest.raises(BadInput) as caught:
            load_record(database.writer, tmp_path, other)
        assert caught.value.code == "run_already_judged"
        assert (tmp_path / f"{run_id}.json").read_text() == to_json(first)
        assert stored_sha256(database) == sha256_of(first)
        refused = f"refused/{run_id}-{sha256_of(other)[:12]}.json"
        assert files(tmp_path) == {f"{run_id}.json", refused}
        assert (tmp_path / refused).read_text() == to_json(other)
    assert f"refused, kept as {tmp_path / refused}: run_already_judged" in caplog.text
    assert load_record(database.writer, tmp_path, first).status is LoadStatus.UNCHANGED
    assert files(tmp_path) == {f"{run_id}.json", refused}


def test_a_record_that_gives_way_to_a_later_one_is_kept_too(database: Database, tmp_path: Path) -> None:
    lost, never_loaded, good = run_record(validations=[lost_validation(0)]), run_record(energies=[0.7]), run_record()
    load_record(database.writer, tmp_path, lost)
    keep_record(never_loaded, tmp_path)
    assert load_record(database.writer, tmp_path, good).status is LoadStatus.REPLACED
    run_id = good.request.run_id
    aside = {f"replaced/{run_id}-{sha256_of(record)[:12]}.json" for record in (lost, never_loaded)}
    assert files(tmp_path) == {f"{run_id}.json", *aside}
    assert (tmp_path / f"{run_id}.json").read_text() == to_json(good)


class Crash(Exception):
    """The process ends here."""


def crash_at(nth: int) -> Callable[[Path, Path], Path]:
    """``Path.rename`` that ends the process instead of renaming for the ``nth`` time."""
    calls, rename = count(1), Path.rename

    def renamed(path: Path, target: Path) -> Path:
        if next(calls) == nth:
            raise Crash
        return rename(path, target)

    return renamed


def test_a_crash_between_commit_and_rename_is_healed_by_the_next_load(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, good = run_record(validations=[lost_validation(0)]), run_record()
    load_record(database.writer, tmp_path, lost)
    for nth in (1, 2):  # before the older record is put aside, and after
        with monkeypatch.context() as broken, pytest.raises(Crash):
            broken.setattr(Path, "rename", crash_at(nth))
            load_record(database.writer, tmp_path, good)
        assert [path.name for path in waiting(tmp_path)] == [f"{good.request.run_id}.json"]
        assert stored_sha256(database) == sha256_of(good)
    settled(database, good)
    load_record(database.writer, tmp_path, run_record("next"))
    kept = {f"{record.request.run_id}.json" for record in (good, run_record("next"))}
    assert files(tmp_path) == {*kept, f"replaced/{lost.request.run_id}-{sha256_of(lost)[:12]}.json"}
    assert (tmp_path / f"{good.request.run_id}.json").read_text() == to_json(good)


def test_an_older_record_that_is_refused_does_not_hold_up_tonight(database: Database, tmp_path: Path) -> None:
    broken = keep_record(run_record("broken"), tmp_path)
    broken.write_text("{")
    impossible = keep_record(run_record("impossible", energy_trust="perhaps"), tmp_path)
    assert load_record(database.writer, tmp_path, run_record("tonight")).status is LoadStatus.STORED
    assert waiting(tmp_path) == []
    put_aside = {name.rpartition("-")[0] for name in files(tmp_path) if "/" in name}
    assert put_aside == {f"refused/{path.stem}" for path in (broken, impossible)}


def test_what_cannot_be_read_does_not_hold_up_what_waits_behind_it(database: Database, tmp_path: Path) -> None:
    keep_record(run_record("older"), tmp_path)
    (tmp_path / "pending" / "x.json").mkdir()
    os.utime(tmp_path / "pending" / "x.json", (1, 1))
    load_record(database.writer, tmp_path, run_record("tonight"))
    assert [path.name for path in waiting(tmp_path)] == ["x.json"]
    assert counts(database)["run"] == 2


def test_two_processes_may_drain_one_spool(database: Database, tmp_path: Path) -> None:
    for number in range(6):
        keep_record(run_record(f"older-{number}"), tmp_path)
    ends: list[Any] = []

    def loader(name: str) -> None:
        try:
            ends.append(load_record(database.writer, tmp_path, run_record(name)).status)
        except BaseException as error:
            ends.append(error)

    threads = [threading.Thread(target=loader, args=(name,)) for name in ("a", "b", "a")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(ends) == [LoadStatus.STORED, LoadStatus.STORED, LoadStatus.UNCHANGED]
    assert (waiting(tmp_path), len(list(tmp_path.glob("*.json")))) == ([], 8)


def test_loading_a_night_twice_keeps_one_result(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTLY_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("NIGHTLY_RECORDS", str(tmp_path / "records"))
    monkeypatch.setattr(tasks, "results_engine", lambda: database.writer)
    night = Night("nightly_qda", "manual__1")
    write_record(run_record(), night.run_file)
    context = {"dag": SimpleNamespace(dag_id=night.dag_id), "run_id": night.dag_run_id}
    assert [tasks.load(context)["status"] for _ in range(2)] == ["stored", "unchanged"]
    with pytest.raises(AirflowException, match="not_loaded"):  # whatever an earlier attempt left in the database
        tasks.report(context, None, ())
    assert tasks.report(context, {"status": "unchanged"}, ())["exit"] == 0
    assert tasks.load(context)["status"] == "unchanged"
    write_record(run_record(energies=[0.7]), night.run_file)
    with pytest.raises(AirflowFailException, match=r"^bad_input \(exit 2\): run_already_judged"):
        tasks.load(context)
    assert counts(database)["run"] == 1
    assert stored_sha256(database) == sha256_of(run_record())


def test_a_record_written_and_read_back_loads_to_the_same_rows(database: Database, tmp_path: Path) -> None:
    from regression.results.baselines import import_record

    load(database, run_record())
    path = tmp_path / "r.json"
    write_record(run_record(), path)
    assert import_record(database.writer, path).status is LoadStatus.UNCHANGED
