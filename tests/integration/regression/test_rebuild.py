"""An empty database is made whole again from files, and says the same as the one that was lost."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import psycopg2
import pytest
from sqlalchemy import text

from gpu_tasks.records import BadInput, RunRecord, to_json, write_record
from local.postgres import Cluster
from regression.detectors import Verdict
from regression.nights import tasks
from regression.nights.folder import Night
from regression.results import decisions, judgements, migrate
from regression.results.baselines import accept_baseline, ensure_first_baselines, retire_baseline
from regression.results.importing import candidate, import_records
from regression.results.judgements import keep_judgement, keep_missing
from regression.results.loading import load_run
from regression.results.outcome import settle_verdict
from regression.results.rebuild import rebuild, record_files
from regression.results.roles import ensure_roles
from regression.results.spool import keep_record, load_record
from regression.results.withdrawals import withdraw_run
from tests.integration.regression.databases import PASSWORDS, Database, _engine, one
from tests.integration.regression.example_energy import SIMULATED_GPU, energy_run
from tests.integration.regression.example_records import (
    CPU,
    GPU,
    lost_validation,
    payload,
    run_record,
    sha256_of,
    validation,
)
from tests.integration.regression.natural import natural
from tests.integration.regression.test_verdicts import WRONG, judge


@pytest.fixture
def other(postgres_server: Cluster, database: Database) -> Iterator[Database]:
    """Another database with the newest schema on the same server, and nothing in it."""
    name = "rebuilt_" + urlsplit(str(database.admin.url)).path.lstrip("/")
    server = psycopg2.connect(postgres_server.admin_dsn())
    server.autocommit = True
    try:
        with server.cursor() as cursor:
            cursor.execute(f'CREATE DATABASE "{name}"')
        dsn = postgres_server.admin_dsn(name)
        admin = _engine(dsn)
        with admin.begin() as connection:
            ensure_roles(connection, name, PASSWORDS)
        found = Database(admin, *(_engine(dsn, role) for role in ("nightly_owner", "nightly_writer", "nightly_reader")))
        migrate.upgrade(found.owner)
        yield found
        with server.cursor() as cursor:
            cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    finally:
        server.close()


def night(database: Database, folder: Path, record: RunRecord) -> None:
    """Load, check and report as a night does."""
    load_record(database.writer, folder, record)
    judge(database, record)
    settle(database, folder, record)


def settle(database: Database, folder: Path, record: RunRecord) -> None:
    with database.writer.begin() as connection:
        verdict = settle_verdict(connection, "nightly_qda", record.request.dag_run_id, ("agreement", "energy"))
        keep_judgement(connection, folder, verdict.run_id)


def accepted(database: Database, folder: Path, record: RunRecord, **purposes: Any) -> str:
    run_id = record.request.run_id
    accept_baseline(database.writer, run_id, accepted_by="ann", reason="looks right", records=folder, **purposes)
    return run_id


def lived_in(database: Database, folder: Path) -> None:
    """Some nights of every kind, with everything that people decided in between."""
    shipped = folder.parent / "shipped"
    write_record(energy_run("shipped", device=SIMULATED_GPU), shipped / "simulated.json")
    ensure_first_baselines(database.writer, shipped, folder)
    first, second = energy_run("first"), energy_run("second", energies=(0.6, 0.61, 0.62, 0.6, 0.61, 0.62, 0.6))
    night(database, folder, first)
    accepted(database, folder, first)
    night(database, folder, second)
    accepted(database, folder, second)  # retires the first
    wrong = [validation(draw, WRONG if draw == 3 else ()) for draw in range(11)]
    night(database, folder, energy_run("regressed", validations=wrong))
    night(database, folder, energy_run("failed", failed=["sham_window"]))
    night(database, folder, run_record("on a cpu", device=CPU, energies=[None] * 7))
    night(database, folder, run_record("fresh draws", payload=payload("fresh")))
    lost = run_record("twice", validations=[lost_validation(0)])
    night(database, folder, lost)
    night(database, folder, run_record("twice"))  # in its place
    load_record(database.writer, folder, run_record("never reported"))
    kept = energy_run("kept", device=replace(GPU, uuid="GPU-9"))
    night(database, folder, kept)
    accepted(database, folder, kept)
    retire_baseline(database.writer, kept.request.run_id, retired_by="bob", reason="fan broken", records=folder)
    withdraw_run(
        database.writer,
        second.request.run_id,
        scope="energy",
        withdrawn_by="ann",
        reason="sensor off",
        successor_run_id=first.request.run_id,
        figures="0.61 mJ, truly 0.6 mJ",
        records=folder,
    )
    withdraw_run(database.writer, lost.request.run_id, scope="all", withdrawn_by="bob", reason="wrong board")
    words = json.dumps(json.loads(to_json(run_record("imported", trigger="import")))).encode()
    list(import_records(database.writer, folder, [candidate(words, "imported.json")]))  # puts bob's word on file, too


def test_everything_comes_back(database: Database, other: Database, tmp_path: Path) -> None:
    folder = tmp_path / "records"
    lived_in(database, folder)
    told: list[tuple[str, int, int]] = []
    done = rebuild(other.writer, folder, lambda *step: told.append(step))
    assert done.broken == []
    assert (done.runs, done.decisions, done.judgements, done.waiting) == (11, 9, 8, 0)
    assert natural(other.writer) == natural(database.writer)
    assert {what: last for what, _, last in told} == {"runs": 11, "decisions": 6, "judgements": 8, "alerts": 0}
    assert [number for what, number, _ in told if what == "runs"] == list(range(12))


def test_what_comes_back_can_be_lost_and_brought_back_again(
    database: Database, other: Database, tmp_path: Path
) -> None:
    """From the files alone: moved elsewhere, and after another night in the rebuilt database."""
    lived_in(database, tmp_path / "records")
    moved = tmp_path / "moved"
    shutil.copytree(tmp_path / "records", moved)
    rebuild(other.writer, moved)
    for at in (database, other):
        folder = tmp_path / "records" if at is database else moved
        night(at, folder, energy_run("after"))
    with database.writer.connect() as here, other.writer.connect() as there:
        verdicts = [
            c.execute(text("SELECT verdict FROM run WHERE dag_run_id = 'after'")).scalar() for c in (here, there)
        ]
    assert verdicts[0] == verdicts[1] is not None


def test_only_an_empty_database_is_rebuilt(database: Database, other: Database, tmp_path: Path) -> None:
    folder = tmp_path / "records"
    lived_in(database, folder)
    before = natural(database.writer)
    with pytest.raises(BadInput, match="expected an empty one, found 10 runs") as caught:
        rebuild(database.writer, folder)
    assert caught.value.code == "database_not_empty"
    assert natural(database.writer) == before


def test_a_new_database_with_its_first_baselines_counts_as_empty_and_begins_where_the_old_one_ended(
    database: Database, other: Database, tmp_path: Path
) -> None:
    folder = tmp_path / "records"
    lived_in(database, folder)
    shipped = energy_run("shipped", device=SIMULATED_GPU)
    retire_baseline(database.writer, shipped.request.run_id, retired_by="ann", reason="mine is better", records=folder)
    ensure_first_baselines(other.writer, tmp_path / "shipped", folder)
    assert one(other, "SELECT accepted_by, retired_by FROM baseline") == {
        "accepted_by": "kernel-nightly",
        "retired_by": "ann",
    }
    assert rebuild(other.writer, folder).broken == []
    assert natural(other.writer) == natural(database.writer)
    assert decisions.keep_decisions(other.writer, folder) == []


def test_files_that_cannot_be_used_are_named_and_the_rest_comes_back(
    database: Database, other: Database, tmp_path: Path
) -> None:
    folder = tmp_path / "records"
    lived_in(database, folder)
    paths = {name: folder / f"{run_record(name).request.run_id}.json" for name in ("first", "regressed", "on a cpu")}
    paths["first"].write_text(paths["first"].read_text()[:-100])
    paths["on a cpu"].rename(folder / f"{run_record('somebody else').request.run_id}.json")
    judgement = judgements.path_of(folder, run_record("regressed").request.run_id)
    judgement.write_text(judgement.read_text().replace('"regression"', '"perhaps"'))
    withdrawal = next((folder / "decisions").glob("*withdrawal*all.json"))
    withdrawal.write_text("{}")
    (folder / "decisions" / "20261130T000000.000000Z-nonsense.json").write_text('{"kind": "nonsense"}')
    done = rebuild(other.writer, folder)
    told = "\n".join(done.broken)
    for path in (paths["first"], judgement, withdrawal):
        assert str(path) in told
    assert "$.request.run_id: expected" in told  # the file under another run's name
    assert "$.kind: expected one of baseline_accepted" in told
    assert "to be there, found nothing of" in told  # decisions about the run that is missing
    assert f"the baseline {paths['first'].stem} of " in told  # and checks that compared with it
    with other.reader.connect() as connection:
        names = set(connection.execute(text("SELECT dag_run_id FROM run")).scalars())
    assert names == {
        "shipped",
        "second",
        "regressed",
        "failed",
        "fresh draws",
        "twice",
        "never reported",
        "kept",
        "imported",
    }
    # The judgement that could not be stored left nothing behind, not even its checks.
    regressed = "SELECT verdict, (SELECT count(*) FROM check_result c WHERE c.run_id = r.run_id) AS checks FROM run r"
    assert one(other, f"{regressed} WHERE dag_run_id = 'regressed'") == {"verdict": None, "checks": 0}


def test_a_record_that_was_changed_after_it_was_judged_is_not_passed_off_as_judged(
    database: Database, other: Database, tmp_path: Path
) -> None:
    record = energy_run("first")
    night(database, tmp_path, record)
    path = tmp_path / f"{record.request.run_id}.json"
    path.write_text(path.read_text().replace('"note": null', '"note": "edited"'))
    done = rebuild(other.writer, tmp_path)
    assert len(done.broken) == 1
    assert "$.record_sha256: expected that of the kept record" in done.broken[0]
    assert one(other, "SELECT verdict FROM run")["verdict"] is None


def test_the_judgement_of_a_replaced_record_is_put_aside_with_it(
    database: Database, other: Database, tmp_path: Path
) -> None:
    """The later record was never reported: nothing may judge it."""
    night(database, tmp_path, run_record("twice", validations=[lost_validation(0)]))
    load_record(database.writer, tmp_path, run_record("twice"))
    run_id = run_record("twice").request.run_id
    assert not judgements.path_of(tmp_path, run_id).exists()
    (aside,) = (tmp_path / "replaced").glob(f"{run_id}-judgement-*.json")
    assert judgements.read_judgement(aside).verdict == "infrastructure_failure"
    assert rebuild(other.writer, tmp_path).broken == []
    assert natural(other.writer) == natural(database.writer)


def test_a_failure_in_the_middle_leaves_the_database_empty(
    database: Database, other: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived_in(database, tmp_path / "records")

    def break_down(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken, pytest.raises(KeyboardInterrupt):
        broken.setattr(decisions, "store_decision", break_down)
        rebuild(other.writer, tmp_path / "records")
    assert one(other, "SELECT count(*) AS runs FROM run") == {"runs": 0}
    assert rebuild(other.writer, tmp_path / "records").runs == 11


def test_pending_records_are_left_for_the_next_load(database: Database, other: Database, tmp_path: Path) -> None:
    load_record(database.writer, tmp_path, run_record("stored"))
    keep_record(run_record("waiting"), tmp_path)
    done = rebuild(other.writer, tmp_path)
    assert (done.runs, done.waiting) == (1, 1)
    load_record(other.writer, tmp_path, run_record("next"))
    assert one(other, "SELECT count(*) AS runs FROM run") == {"runs": 3}


def test_what_a_device_was_first_seen_with_stays(database: Database, other: Database, tmp_path: Path) -> None:
    """Records come back in the order in which they were loaded, not in that of their names."""
    names = sorted(("a", "b", "c", "d"), key=lambda name: run_record(name).request.run_id, reverse=True)
    for number, name in enumerate(names):
        load_record(database.writer, tmp_path, run_record(name, device=replace(GPU, multiprocessors=100 + number)))
        path = tmp_path / f"{run_record(name).request.run_id}.json"
        os.utime(path, (1_700_000_000 + number,) * 2)
    assert [path.stem for path in record_files(tmp_path)] == [run_record(name).request.run_id for name in names]
    rebuild(other.writer, tmp_path)
    assert natural(other.writer) == natural(database.writer)
    assert one(other, "SELECT multiprocessors FROM device") == {"multiprocessors": 100}


def test_decisions_are_files_complete_in_themselves_and_in_order(database: Database, tmp_path: Path) -> None:
    lived_in(database, tmp_path / "records")
    paths = decisions.files(tmp_path / "records")
    kinds = [path.name.split("Z-")[1].rsplit("-", 5)[0] for path in paths]
    assert sorted(kinds) == sorted(
        ["baseline-accepted"] * 4 + ["baseline-retired"] * 3 + [kind for kind in kinds if kind.startswith("withdrawal")]
    )
    times = [path.name.split("-", 1)[0] for path in paths]
    assert times == sorted(times)
    found, broken = decisions.read_decisions(paths)
    assert (len(found), broken) == (len(paths), [])
    with database.writer.connect() as connection:
        assert sorted(map(repr, decisions.stored_decisions(connection))) == sorted(map(repr, found))
    retired = next(d for d in found if isinstance(d, decisions.BaselineRetired) and d.retired_by == "bob")
    assert retired.retired_reason == "fan broken"


def test_a_decision_that_was_committed_before_a_crash_is_written_with_the_next_load(
    database: Database, tmp_path: Path
) -> None:
    load_record(database.writer, tmp_path, energy_run("a"))
    accept_baseline(database.writer, energy_run("a").request.run_id, accepted_by="ann", reason="fine")
    assert decisions.files(tmp_path) == []
    load_record(database.writer, tmp_path, energy_run("b"))
    (path,) = decisions.files(tmp_path)
    assert json.loads(path.read_text())["accepted_by"] == "ann"
    path.write_text(path.read_text().replace("ann", "eve"))  # files are never written twice
    load_record(database.writer, tmp_path, energy_run("c"))
    assert json.loads(path.read_text())["accepted_by"] == "eve"


def test_judgements_of_an_older_version_are_written_once(database: Database, tmp_path: Path) -> None:
    judge(database, energy_run("a"))
    with database.writer.begin() as connection:
        settle_verdict(connection, "nightly_qda", "a", ())
    load_run(database.writer, energy_run("b"), sha256_of(energy_run("b")))
    with database.writer.connect() as connection:
        assert [keep_missing(connection, tmp_path) for _ in range(2)] == [1, 0]
    found = judgements.read_judgement(judgements.path_of(tmp_path, energy_run("a").request.run_id))
    assert (found.verdict, found.exit_code, [check.check_name for check in found.checks]) == (
        *("inconclusive", 0),
        ["agreement", "energy"],
    )


def test_the_report_of_a_night_keeps_its_judgement(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTLY_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("NIGHTLY_RECORDS", str(tmp_path / "records"))
    monkeypatch.setattr(tasks, "results_engine", lambda: database.writer)
    at = Night("nightly_qda", "manual__1")
    write_record(run_record(), at.run_file)
    context = {"dag": SimpleNamespace(dag_id=at.dag_id), "run_id": at.dag_run_id}
    tasks.load(context)
    verdict = tasks.report(context, {"status": "stored"}, ())
    kept = judgements.read_judgement(judgements.path_of(tmp_path / "records", verdict["run_id"]))
    assert (kept.verdict, kept.exit_code) == (verdict["verdict"], verdict["exit"])
    assert kept.record_sha256 == sha256_of(run_record())
    assert Verdict.OK.value not in [check.verdict for check in kept.checks]


def test_a_judgement_that_cannot_be_kept_is_not_settled(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First the file, then the commit: what the database has judged is on file."""
    load_record(database.writer, tmp_path, run_record())
    (tmp_path / "judgements").write_text("in the way")
    with pytest.raises(OSError):
        settle(database, tmp_path, run_record())
    assert one(database, "SELECT verdict FROM run")["verdict"] is None


def test_withdrawals_end_baselines_for_what_they_withdraw(database: Database, tmp_path: Path) -> None:
    for name, scope in (("a", "energy"), ("b", "all")):
        device = replace(GPU, uuid=f"GPU-{name}")
        load_record(database.writer, tmp_path, energy_run(name, device=device))
        accepted(database, tmp_path, energy_run(name, device=device), for_energy=False)
        run_id = energy_run(name).request.run_id
        withdraw_run(database.writer, run_id, scope=scope, withdrawn_by="ann", reason="off", records=tmp_path)
    with database.reader.connect() as connection:
        current = connection.execute(text("SELECT dag_run_id FROM baseline_current")).scalars().all()
    assert current == ["a"]  # still one for predictions and time
    with pytest.raises(BadInput) as caught:
        withdraw_run(database.writer, run_id, scope="all", withdrawn_by="ann", reason="off")
    assert caught.value.code == "withdrawn_before"
    for wrong in ({"run_id": run_record("none").request.run_id}, {"scope": "time"}):
        given = {"run_id": run_id, "scope": "energy", "withdrawn_by": "ann", "reason": "off"} | wrong
        with pytest.raises(BadInput):
            withdraw_run(database.writer, **given)
