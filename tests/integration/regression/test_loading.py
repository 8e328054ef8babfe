"""Loading run records into a real PostgreSQL: once and for all, from several at once, and through the spool."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from gpu_tasks.records import BadInput, InfrastructureFailure, Outcome, Reason, RunRecord, write_record
from regression.results.loading import LoadStatus, load_run
from regression.results.outcome import settle_verdict
from regression.results.spool import keep_record, load_kept, waiting
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
]


def load(database: Database, record: RunRecord) -> LoadStatus:
    return load_run(database.writer, record, sha256_of(record)).status


def counts(database: Database) -> dict[str, int]:
    names = ("run", "validation", "round", "device", "environment", "source_state", "payload", "payload_draw")
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


def test_the_spool_drains_older_records_first_and_in_order(database: Database, tmp_path: Path) -> None:
    away = create_engine("postgresql+psycopg2://nobody:x@127.0.0.1:1/none")
    for age, name in enumerate(["fifth", "fourth", "third", "second", "first"]):
        path = keep_record(run_record(name), tmp_path)
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
        with pytest.raises(InfrastructureFailure) as caught:
            load_kept(away, tmp_path, path.stem)
        assert caught.value.code == "results_unavailable"
    assert len(waiting(tmp_path)) == 5
    now = keep_record(run_record("now"), tmp_path)
    load_kept(database.writer, tmp_path, now.stem)
    assert waiting(tmp_path) == []
    with database.reader.connect() as connection:
        loaded = connection.execute(text("SELECT dag_run_id FROM run ORDER BY loaded_at")).scalars().all()
    assert loaded == ["first", "second", "third", "fourth", "fifth", "now"]
    assert len(list(tmp_path.glob("*.json"))) == 6


def test_an_older_record_that_is_refused_does_not_hold_up_tonight(database: Database, tmp_path: Path) -> None:
    broken = keep_record(run_record("broken"), tmp_path)
    broken.write_text("{")
    tonight = keep_record(run_record("tonight"), tmp_path)
    assert load_kept(database.writer, tmp_path, tonight.stem).status is LoadStatus.STORED
    assert waiting(tmp_path) == [broken]


def test_a_record_written_and_read_back_loads_to_the_same_rows(database: Database, tmp_path: Path) -> None:
    from regression.results.baselines import import_record

    load(database, run_record())
    path = tmp_path / "r.json"
    write_record(run_record(), path)
    assert import_record(database.writer, path).status is LoadStatus.UNCHANGED
