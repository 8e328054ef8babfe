"""Record files as they were loaded, and views as CSV and Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from gpu_tasks.records import BadInput, RunRecord, to_json
from regression.results import exporting, spool
from regression.results.exporting import Column, columns_of, kept_record, read_view, write_csv
from regression.results.importing import candidate, import_records
from regression.results.parquet import write_parquet
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import energy_run
from tests.integration.regression.example_records import CPU, OTHER_GPU, run_record
from tests.integration.regression.natural import natural
from tests.integration.regression.test_rebuild import lived_in, other

__all__ = ["other"]


def exported(database: Database, folder: Path, wanted: str) -> bytes:
    with database.reader.connect() as connection:
        return kept_record(connection, folder, wanted)


def load(database: Database, folder: Path, *records: RunRecord) -> None:
    for record in records:
        spool.load_record(database.writer, folder, record)


def test_an_exported_record_makes_the_same_rows_in_an_empty_database(
    database: Database, other: Database, tmp_path: Path
) -> None:
    """Byte for byte the file that was loaded; of what was judged here an import knows nothing."""
    records = [energy_run("a"), run_record("b", device=CPU, energies=[None] * 7), energy_run("c", device=OTHER_GPU)]
    load(database, tmp_path, *records)
    contents = [exported(database, tmp_path, record.request.run_id) for record in records]
    assert contents == [to_json(record).encode() for record in records]
    elsewhere = tmp_path / "elsewhere"
    list(import_records(other.writer, elsewhere, [candidate(content, "x") for content in contents]))
    assert natural(other.writer) == natural(database.writer)
    assert exported(other, elsewhere, "a") == contents[0]


@pytest.mark.parametrize("wanted", ["manual__2026", "manual__2026-11", "MANUAL", "%", "_", ""])
def test_a_run_is_named_by_its_unique_beginning(database: Database, tmp_path: Path, wanted: str) -> None:
    load(database, tmp_path, run_record("manual__2026-11-30"), run_record("manual__2026-12-01"), run_record("other"))
    matching = {"manual__2026": 2, "manual__2026-11": 1, "": 3}.get(wanted, 0)
    if matching == 1:
        assert json.loads(exported(database, tmp_path, wanted))["request"]["dag_run_id"] == "manual__2026-11-30"
        return
    with pytest.raises(BadInput) as caught:
        exported(database, tmp_path, wanted)
    assert caught.value.code == ("run_ambiguous" if matching else "run_not_stored")


def test_a_whole_name_is_that_run_even_if_others_begin_with_it(database: Database, tmp_path: Path) -> None:
    records = [run_record("night"), run_record("night-2")]
    load(database, tmp_path, *records)
    assert exported(database, tmp_path, "night") == to_json(records[0]).encode()
    run_id = records[1].request.run_id
    for wanted in (run_id, run_id[:13], run_id[:13].upper()):
        assert exported(database, tmp_path, wanted) == to_json(records[1]).encode()


def test_a_record_that_is_not_kept_or_was_changed_is_not_given_away(database: Database, tmp_path: Path) -> None:
    load(database, tmp_path, run_record())
    path = tmp_path / f"{run_record().request.run_id}.json"
    path.write_text(path.read_text() + " ")
    with pytest.raises(BadInput, match=r"sha256: expected [0-9a-f]{64}, as it was loaded, found") as caught:
        exported(database, tmp_path, "manual__1")
    assert caught.value.code == "record_changed"
    path.unlink()
    with pytest.raises(BadInput, match="another installation loaded it"):
        exported(database, tmp_path, "manual__1")


def rows_of(database: Database, view: str, **filters: Any) -> tuple[list[Column], list[list[str | None]]]:
    with database.reader.begin() as connection:
        columns = columns_of(connection, view)
        return columns, list(read_view(connection, view, columns, **{"since": None, "device": None, **filters}))


def views(database: Database) -> list[str]:
    with database.reader.connect() as connection:
        return list(connection.execute(text("SELECT viewname FROM pg_views WHERE schemaname = 'public'")).scalars())


def as_parquet(folder: Path, columns: list[Column], rows: list[list[str | None]]) -> list[dict[str, Any]]:
    text_file, target = folder / "rows.csv", folder / "rows.parquet"
    with text_file.open("w", encoding="utf-8", newline="") as stream:
        assert write_csv(stream, columns, iter(rows)) == len(rows)
    write_parquet(text_file, columns, target)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.execute("SELECT * FROM read_parquet(?)", [str(target)])
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def comparable(value: Any, kind: str = "") -> Any:
    """The value, JSON from its text where the file has the text."""
    if kind == "jsonb" and value is not None:
        value = json.loads(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return str(value) if isinstance(value, UUID) else value


def test_every_view_comes_out_as_csv_and_as_parquet_with_its_own_values(database: Database, tmp_path: Path) -> None:
    lived_in(database, tmp_path / "records")
    assert len(views(database)) >= 7
    for view in views(database):
        columns, rows = rows_of(database, view)
        with database.reader.connect() as connection:
            expected = [dict(row) for row in connection.execute(text(f"SELECT * FROM {view}")).mappings()]
        assert len(rows) == len(expected), view
        found = as_parquet(tmp_path, columns, rows)
        for column in columns:
            got = [comparable(row[column.name], column.kind) for row in found]
            values = [comparable(row[column.name]) for row in expected]
            assert sorted(map(repr, got)) == sorted(map(repr, values)), (view, column)


def test_rows_are_filtered_by_time_and_device(database: Database, tmp_path: Path) -> None:
    late = run_record("late", started_at="2026-12-24T02:00:00Z", completed_at="2026-12-24T03:00:00Z")
    load(database, tmp_path, run_record("early"), late, run_record("other", device=OTHER_GPU))
    count = lambda **filters: len(rows_of(database, "nightly", **filters)[1])  # noqa: E731
    assert count() == 3
    assert count(since=datetime(2026, 12, 1, tzinfo=UTC)) == 1
    assert count(since=datetime(2026, 12, 24, 2, tzinfo=UTC)) == 1
    assert count(since=datetime(2026, 12, 24, 2, 0, 1, tzinfo=UTC)) == 0
    assert count(device="Test GPU") == count(device="GPU-1") == 2
    assert count(device="Other GPU", since=datetime(2026, 1, 1, tzinfo=UTC)) == 1


@pytest.mark.parametrize("device", ["x' OR '1'='1", "x'; DROP TABLE run; --", "%", ":since", "\\", 'a"b'])
def test_a_filter_is_a_value_and_never_sql(database: Database, tmp_path: Path, device: str) -> None:
    load(database, tmp_path, run_record())
    assert rows_of(database, "nightly", device=device)[1] == []
    assert len(rows_of(database, "nightly")[1]) == 1


@pytest.mark.parametrize("view", ["run", "nightly; DROP TABLE run", "nightly --", 'nightly"', "pg_user", "", "Nightly"])
def test_only_views_are_exported(database: Database, view: str) -> None:
    with pytest.raises(BadInput, match="view: expected one of baseline_current, ") as caught:
        rows_of(database, view)
    assert caught.value.code == "unknown_view"


def test_a_view_without_the_column_has_no_such_filter(database: Database) -> None:
    with database.owner.begin() as connection:
        connection.execute(text('CREATE VIEW "odd view" AS SELECT 1 AS "a b"'))
    with database.reader.begin() as connection:
        columns = columns_of(connection, "odd view")
        assert list(read_view(connection, "odd view", columns, since=None, device=None)) == [["1"]]
        for filters in ({"since": datetime.now(UTC), "device": None}, {"since": None, "device": "x"}):
            with pytest.raises(BadInput) as caught:
                list(read_view(connection, "odd view", columns, **filters))
            assert caught.value.code == "no_such_filter"


def test_rows_come_in_batches_from_a_cursor_of_the_server(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(database, tmp_path, *(run_record(f"night-{n}") for n in range(5)))
    monkeypatch.setattr(exporting, "BATCH", 10)
    with database.reader.begin() as connection:
        rows = read_view(connection, "round_trend", columns_of(connection, "round_trend"), since=None, device=None)
        next(rows)
        assert connection.execute(text("SELECT count(*) FROM pg_cursors WHERE name <> ''")).scalar_one() == 1
        assert 1 + len(list(rows)) == 35


TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20)


@given(
    st.lists(
        st.tuples(TEXT | st.none(), TEXT | st.none(), st.floats(allow_nan=False, allow_infinity=False)), max_size=8
    )
)
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_survives_in_csv_and_in_parquet(
    tmp_path: Path, values: list[tuple[str | None, str | None, float]]
) -> None:
    """Nothing and an empty text stay apart, whatever quotes and line ends there are."""
    columns = [Column("a,b", "text"), Column("c", "text"), Column("d", "double precision")]
    rows: list[list[str | None]] = [[a, c, repr(d)] for a, c, d in values]
    stream = io.StringIO()
    write_csv(stream, columns, iter(rows))
    read = list(csv.reader(io.StringIO(stream.getvalue(), newline="")))
    assert read == [["a,b", "c", "d"], *([a or "", c or "", repr(d)] for a, c, d in values)]
    found = as_parquet(tmp_path, columns, rows)
    assert [(row["a,b"], row["c"], row["d"]) for row in found] == values


def test_no_rows_make_a_file_with_columns(tmp_path: Path) -> None:
    columns = [Column("a", "integer"), Column("b", "text[]")]
    assert as_parquet(tmp_path, columns, []) == []
    with duckdb.connect() as connection:
        kinds = connection.execute(
            "DESCRIBE SELECT * FROM read_parquet(?)", [str(tmp_path / "rows.parquet")]
        ).fetchall()
    assert [(name, kind) for name, kind, *_ in kinds] == [("a", "INTEGER"), ("b", "VARCHAR[]")]


def test_many_rows_are_read_one_after_the_other(tmp_path: Path) -> None:
    def rows() -> Iterator[list[str | None]]:
        for number in range(100_000):
            yield [str(number), "x" * 10]

    path = tmp_path / "rows.csv"
    columns = [Column("n", "bigint"), Column("t", "text")]
    with path.open("w", newline="") as stream:
        assert write_csv(stream, columns, rows()) == 100_000
    write_parquet(path, columns, tmp_path / "rows.parquet")
    with duckdb.connect() as connection:
        query = "SELECT count(*), sum(n), min(n) FROM read_parquet(?)"
        assert connection.execute(query, [str(tmp_path / "rows.parquet")]).fetchone() == (100_000, 4_999_950_000, 0)
