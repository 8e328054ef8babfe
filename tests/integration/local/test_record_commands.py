"""The commands about records and upkeep, on an installation of their own: what they print, leave and refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import psycopg2
import pytest

from local import cli
from local.databases import engine_of, libpq_uri
from local.paths import ROOT, Home
from local.postgres import Cluster
from local.stack import hold
from regression.results.judgements import keep_judgement
from regression.results.outcome import settle_verdict
from regression.results.spool import load_record
from tests.integration.local.stored import is_imported, kept, names, rows
from tests.integration.regression.example_energy import energy_run
from tests.integration.regression.natural import natural
from tests.support.commands import Run
from tests.support.original_records import MADE, QDA


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


@pytest.mark.parametrize("command", ["import", "export", "rebuild", "backup", "restore", "retention"])
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0
    assert f"usage: nightly {command}" in capsys.readouterr().out
