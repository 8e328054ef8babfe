"""The commands about upkeep: backup and restore, an older database, retention."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

from local import backup
from local.databases import engine_of
from local.errors import LauncherError
from local.paths import Home
from local.postgres import Cluster
from local.stack import hold, stop
from regression.results import migrate
from regression.results.spool import load_record
from tests.integration.local.stored import is_imported, is_trained, of_others, rows
from tests.integration.regression.example_energy import energy_run
from tests.support.commands import Run


def test_a_backup_comes_back_whole_or_not_at_all(
    nightly: Run, home: Home, tmp_path: Path, originals: list[Path]
) -> None:
    nightly("import", *originals)
    before = rows(home)
    dump = tmp_path / "b" / "results.dump"
    status, output, errors = nightly("backup", dump)
    assert status == 0, errors
    assert output.startswith(f"{dump}: ") and dump.stat().st_mode & 0o077 == 0
    with hold(home, None, need_airflow=False) as held, engine_of(held.databases().writer) as engine:
        load_record(engine, home.records, energy_run("after the backup"))
    later = rows(home)
    status, _, errors = nightly("restore", dump)
    assert status == 2
    assert "expected an empty one, found " in errors
    content = dump.read_bytes()
    assert nightly("backup", dump)[::2] == (
        2,
        f"nightly: {dump}: expected no such file, found one; --replace writes over it\n",
    )
    assert dump.read_bytes() == content
    for length in [len(content) * share // 100 for share in (10, 50, 90, 99)]:
        part = tmp_path / "part.dump"
        part.write_bytes(content[:length])
        status, _, errors = nightly("restore", "--replace", part)
        assert status in (2, 5), length
        assert "found it damaged: " in errors or "it cannot be read to its end" in errors, (length, errors)
        assert rows(home) == later, length
    status, output, errors = nightly("restore", "--replace", dump)
    assert status == 0, errors
    assert rows(home) == before
    # Everybody may still do what he might before.
    assert nightly("sql", "SELECT count(*) FROM nightly")[0] == 0
    assert nightly("backup", "--replace", dump)[0] == 0
    assert dump.read_bytes() != content
    with hold(home, None, need_airflow=False) as held, engine_of(held.databases().writer) as engine:
        assert load_record(engine, home.records, energy_run("after the restore")).status.value == "stored"
    with (
        hold(home, None, need_airflow=False) as held,
        engine_of(held.databases().reader) as engine,
        engine.connect() as connection,
        pytest.raises(DBAPIError, match="read-only transaction"),
    ):
        connection.exec_driver_sql("DELETE FROM run")


def test_a_dump_that_ends_early_between_two_statements_changes_nothing(home: Home) -> None:
    before = rows(home)
    with hold(home, None, need_airflow=False) as held:
        for end in ("exit 1", "kill -9 $$"):
            command = ["sh", "-c", f"echo 'CREATE TABLE public.made (a int);'; {end}"]
            with (
                subprocess.Popen(command, stdout=subprocess.PIPE) as ended,
                pytest.raises(LauncherError, match="nothing was changed: it cannot be read to its end"),
            ):
                backup._apply(held.databases().owner, ended)
    assert rows(home) == before


def test_a_backup_goes_to_another_server(
    nightly: Run, home: Home, tmp_path: Path, originals: list[Path], postgres_server: Cluster
) -> None:
    """On one that has the installation's roles, as every rebuild and every start makes them."""
    nightly("import", *originals)
    dump = tmp_path / "results.dump"
    nightly("backup", dump)
    expected = rows(home)
    elsewhere = Home(Path(tempfile.mkdtemp(prefix="kernel-nightly-home-", dir="/tmp")))
    dsn = postgres_server.admin_dsn("kernel_nightly_restored")
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NIGHTLY_HOME", str(elsewhere.folder))
            status, _, errors = nightly("restore", dump, "--dsn", dsn)
            assert status == 0, errors
            assert rows(elsewhere, dsn) == expected
    finally:
        stop(elsewhere)
        shutil.rmtree(elsewhere.folder)


@pytest.mark.parametrize("content", [None, b"", b"PGDMP", b"not a dump at all" * 100])
def test_what_is_no_backup_is_refused(nightly: Run, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.dump"
    if content is not None:
        path.write_bytes(content)
    status, output, errors = nightly("restore", "--replace", path)
    assert (status, output) == (2, "")
    assert errors.startswith(f"nightly: {path}: expected a backup")


def test_a_backup_of_a_newer_version_is_refused(nightly: Run, home: Home, tmp_path: Path) -> None:
    dump, before = tmp_path / "results.dump", rows(home)
    with hold(home, None, need_airflow=False) as held, engine_of(held.databases().owner) as engine:
        with engine.begin() as connection:
            now = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one()
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        assert nightly("backup", dump)[0] == 0
        with engine.begin() as connection:
            connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{now}'")
    status, _, errors = nightly("restore", "--replace", dump)
    assert status == 2
    assert "found 9999: of a newer version" in errors
    assert rows(home) == before


@pytest.mark.usefixtures("home")  # its interpreter for everything
def test_a_start_brings_an_older_database_along_and_puts_the_readers_defaults_back() -> None:
    """Of the same sources, too: the data may be an older copy."""
    older = Home(Path(tempfile.mkdtemp(prefix="kernel-nightly-home-", dir="/tmp")))
    older.folder.chmod(0o755)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NIGHTLY_HOME", str(older.folder))
            with hold(older, None, need_airflow=False) as held, engine_of(held.databases().owner) as engine:
                before = of_others(rows(older), is_trained)  # whose accounts and states have no place there
                migrate.downgrade(engine, "0003")
                with engine_of(held.databases().reader) as reader, reader.connect() as connection:
                    connection.exec_driver_sql("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE")
                    connection.commit()
                    connection.exec_driver_sql("ALTER ROLE nightly_reader SET statement_timeout = 0")
                    connection.exec_driver_sql("ALTER ROLE nightly_reader PASSWORD 'another'")
                    connection.commit()
            stop(older)
            with hold(older, None, need_airflow=False) as held, engine_of(held.databases().reader) as engine:
                assert of_others(rows(older), is_trained) == before
                with engine.connect() as connection:
                    assert connection.exec_driver_sql("SHOW statement_timeout").scalar_one() == "30s"
                    version = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one()
                    assert version == migrate.revisions()[-1]
    finally:
        stop(older)
        shutil.rmtree(older.folder)


def test_retention_says_what_would_go_and_then_lets_it_go(nightly: Run, home: Home, originals: list[Path]) -> None:
    nightly("import", *originals)
    before = rows(home)
    status, told, errors = nightly("retention", "--dry-run", "--rounds-after", "30d")
    assert (status, rows(home)) == (0, before)
    assert "would go: traces older than 90d, rounds older than 30d" in errors
    assert [line.split()[0] for line in told.splitlines()] == [
        "round_trace",
        "telemetry_trace",
        "round_energy",
        "round",
    ]
    assert told.splitlines()[-1].split()[1:3] == ["6", "rows"]  # the learner's; those of baselines stay
    assert nightly("retention", "--rounds-after", "30d")[1] == told
    left = {dict(row)["run_id"] for row in rows(home)["round"]}
    assert not left & {run["run_id"] for run in map(dict, before["run"]) if is_imported(run)}
    assert nightly("retention", "--traces-after", "soon")[0] == 2
