"""The commands about records and upkeep, on an installation of their own: what they print, leave and refuse."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import psycopg2
import pytest
from sqlalchemy.exc import DBAPIError

from local import backup, cli
from local.databases import engine_of, libpq_uri
from local.errors import LauncherError
from local.paths import ROOT, Home
from local.postgres import Cluster
from local.stack import hold, stop
from regression.results import migrate
from regression.results.judgements import keep_judgement
from regression.results.outcome import settle_verdict
from regression.results.spool import load_record
from tests.integration.regression.example_energy import energy_run
from tests.integration.regression.natural import natural
from tests.support.commands import Run
from tests.support.original_records import MADE, QDA


@pytest.fixture
def originals(tmp_path: Path) -> list[Path]:
    """Files of the original forms."""
    paths = []
    for name, make in MADE.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(make(), indent=2))
        paths.append(path)
    return paths


def rows(home: Home, dsn: str | None = None) -> dict[str, list[Any]]:
    with hold(home, dsn, need_airflow=False) as held, engine_of(held.databases().writer) as engine:
        return natural(engine)


def of_others(found: dict[str, list[Any]], whose: Callable[[dict[str, Any]], bool]) -> dict[str, list[Any]]:
    """What the tables of ``rows`` have, less what is of the runs that ``whose`` is true of."""
    left_out = {dict(row)["run_id"] for row in found["run"] if whose(dict(row))}
    return {table: [row for row in each if dict(row).get("run_id") not in left_out] for table, each in found.items()}


def is_trained(run: dict[str, Any]) -> bool:
    return bool(run["workload"] == "learner")


def is_imported(run: dict[str, Any]) -> bool:
    """Whether it is of the made-up originals, which no baseline is."""
    return is_trained(run) and bool(re.fullmatch(r"learner-(measure|qualification)-[0-9a-f]{12}", run["dag_run_id"]))


def kept(home: Home) -> dict[str, bytes]:
    folder = home.records
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.json")}


def names(home: Home) -> set[str]:
    return {dict(row)["dag_run_id"] for row in rows(home)["run"]}


def test_originals_are_imported_as_they_are_and_only_once(nightly: Run, home: Home, originals: list[Path]) -> None:
    status, output, errors = nightly("import", *originals)
    assert status == 0, errors
    qda, measure, qualification = output.splitlines()
    assert qda.startswith(f"{originals[0]}: unchanged 9fb0d280-736c-5a92-a150-6736bcd08ffd")  # it ships as a baseline
    assert measure.startswith(f"{originals[1]}: stored ")
    assert (
        ": 1 run, 1 validation, 3 round, 1 run_setting, 1 qualification, 4 qualification_case, 1 task_memory" in measure
    )
    assert "(import/learner-qualification-" in qualification
    learners = [run for run in map(dict, rows(home)["run"]) if is_imported(run)]
    assert [(row["protocol"], row["agreed"], row["device_correct"]) for row in learners] == [
        ("trial", 10_000, 8887)
    ] * 2
    assert all(row["provenance"]["original"] for row in learners)
    before = rows(home), kept(home)
    status, output, _ = nightly("import", *originals)
    assert status == 0
    assert [line.split(": ")[1].split()[0] for line in output.splitlines()] == ["unchanged"] * 3
    assert (rows(home), kept(home)) == before


@pytest.mark.parametrize(
    "wrong_one",
    [
        (
            "qda-eleven-draws",
            lambda c: c["rounds"][3].update(adjusted_mj=0.5),
            "$.rounds[3].adjusted_mj: expected 0.010378672372650355, found 0.5",
        ),
        (
            "learner-measure",
            lambda c: c["result"]["energy"].update(repeats_per_trial=7),
            "$.result.energy.repeats_per_trial: expected 108, found 7",
        ),
        ("learner-qualification", lambda c: c.pop("config"), "$.config: expected a value, found nothing"),
        ("learner-qualification", lambda c: c.clear(), "expected the keys of qda, "),
        ("qda-eleven-draws", lambda c: c.update(format="kernel-nightly/2"), "$.kind: expected 'run', found None"),
    ],
)
def test_one_file_that_is_wrong_keeps_all_of_them_out(
    nightly: Run, home: Home, tmp_path: Path, wrong_one: tuple[str, Callable[[Any], Any], str]
) -> None:
    name, change, told = wrong_one
    good, wrong = tmp_path / "good.json", tmp_path / "wrong.json"
    good.write_text(json.dumps(MADE["learner-measure"]() | {"stderr": "another run"}))
    content = MADE[name]()
    change(content)
    wrong.write_text(json.dumps(content))
    before = rows(home), kept(home)
    status, output, errors = nightly("import", good, wrong)
    assert (status, output) == (2, "")
    assert errors.startswith(f"nightly: {wrong}: {told}"), errors
    assert len(errors.splitlines()) == 1
    assert (rows(home), kept(home)) == before


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff", b"[1]"])
def test_what_is_no_record_is_said_in_one_line(nightly: Run, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_bytes(content)
    status, output, errors = nightly("import", path)
    assert (status, output) == (2, "")
    assert errors.startswith(f"nightly: {path}: ")
    assert len(errors.splitlines()) == 1


def test_a_run_is_exported_and_its_file_says_the_same_elsewhere(
    nightly: Run, home: Home, tmp_path: Path, originals: list[Path]
) -> None:
    nightly("import", *originals)
    out = tmp_path / "out" / "run.json"
    status, output, errors = nightly("export", "qda-eleven", "--out", out)
    assert (status, output) == (0, "")
    assert errors.splitlines()[-1] == f"{out}: the record of run qda-eleven, {out.stat().st_size} bytes"
    assert out.read_bytes() == QDA.read_bytes()
    status, output, _ = nightly("export", "9fb0d280")
    assert (status, output) == (0, QDA.read_text())
    status, output, errors = nightly("export", "learner")
    assert (status, output) == (2, "")
    assert "expected one run, found import/learner-" in errors
    assert nightly("export", "no such run")[2] == "nightly: run no such run: expected a stored run, found none\n"
    assert nightly("import", out)[1].startswith(f"{out}: unchanged 9fb0d280")


def test_a_view_is_exported_as_csv_and_as_parquet(nightly: Run, tmp_path: Path, originals: list[Path]) -> None:
    nightly("import", *originals)
    status, output, errors = nightly("export", "--view", "round_trend", "--device", "GPU-made-up")
    assert status == 0, errors
    assert len(output.splitlines()) == 7
    parquet = tmp_path / "rounds.parquet"
    status, output, errors = nightly("export", "--view", "round_trend", "--since", "2026-09-15", "--out", parquet)
    assert (status, output) == (0, "")
    assert errors.startswith(f"{parquet}: ")
    with duckdb.connect() as connection:
        query = (
            "SELECT count(*), sum(adjusted_mj) > 0 FROM read_parquet(?) WHERE workload = 'qda' AND arm = 'candidate'"
        )
        count, positive = connection.execute(query, [str(parquet)]).fetchone() or (0, None)
    assert count >= 7 and positive
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    csv = tmp_path / "rounds.csv"
    assert nightly("export", "--view", "round_trend", "--out", csv)[0] == 0
    assert csv.read_text().startswith("night,workload,device,")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["a", "--view", "nightly"],
        ["a", "--since", "2026-01-01"],
        ["--view", "run"],
        ["--view", "nightly", "--format", "parquet"],
        ["--view", "nightly", "--since", "yesterday"],
        ["--view", "nightly", "--since", "2026-01-01T00:00:00"],
        ["--view", "nightly", "--format", "xlsx"],
        ["--view", "nightly", "--out", "/dev/null"],
    ],
)
def test_exports_that_mean_nothing_are_bad_input(nightly: Run, arguments: list[str]) -> None:
    try:
        status, output, _ = nightly("export", *arguments)
    except SystemExit as refused:  # argparse's own
        status, output = int(str(refused.code)), ""
    assert (status, output) == (2, "")


def test_a_database_is_rebuilt_elsewhere_from_the_files(
    nightly: Run, home: Home, originals: list[Path], postgres_server: Cluster
) -> None:
    nightly("import", *originals)
    with hold(home, None, need_airflow=False) as held, engine_of(held.databases().writer) as engine:
        load_record(engine, home.records, energy_run("a night"))
        with engine.begin() as connection:
            verdict = settle_verdict(connection, "nightly_qda", "a night", ())
            keep_judgement(connection, home.records, verdict.run_id)
    before = kept(home)
    shipped = len(list((ROOT / "gpu_tasks/baselines").glob("*.json*")))  # and the withdrawal of an energy
    target = postgres_server.admin_dsn("kernel_nightly_rebuilt")
    status, output, errors = nightly("rebuild", "--into", target)
    assert status == 0, errors
    assert output == f"{len(names(home))} runs, {shipped + 1} decisions, 1 judgements, 0 alerts\n"
    assert kept(home) == before
    with hold(home, None, need_airflow=False) as held:
        writer = held.databases().writer
        copy = writer.replace(writer.rpartition("@")[2], target.rpartition("@")[2])
        with engine_of(copy) as engine:
            assert natural(engine) == rows(home)
    status, output, errors = nightly("rebuild", "--into", target)
    assert (status, output) == (2, "")
    assert "the results database: expected an empty one, found " in errors
    with psycopg2.connect(libpq_uri(target)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_database WHERE datname = 'kernel_nightly_rebuilt_airflow'")
        assert cursor.fetchone() == (0,)  # nothing but results is made there
    connection.close()


def test_a_rebuild_says_what_it_left_out_and_ends_with_2(
    nightly: Run, home: Home, originals: list[Path], postgres_server: Cluster
) -> None:
    nightly("import", *originals)
    broken = home.records / "00000000-0000-4000-8000-000000000000.json"
    broken.write_text("{")
    try:
        status, output, errors = nightly("rebuild", "--into", postgres_server.admin_dsn("kernel_nightly_broken"))
    finally:
        broken.unlink()
    assert status == 2
    assert output.startswith(f"{len(names(home))} runs, ")
    assert f"left out: {broken}: expected JSON" in errors
    assert errors.endswith("nightly: 1 file could not be used (named above)\n")


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


@pytest.mark.parametrize("command", ["import", "export", "rebuild", "backup", "restore", "retention"])
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0
    assert f"usage: nightly {command}" in capsys.readouterr().out
