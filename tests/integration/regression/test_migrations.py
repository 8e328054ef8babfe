"""From every version of the schema to the newest and back, with rows in the tables, and interrupted half-way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from regression.results import migrate
from regression.results.baselines import accept_baseline, ensure_first_baselines
from regression.results.loading import load_run
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import energy_run
from tests.integration.regression.example_records import run_record, sha256_of
from tests.integration.regression.full_database import fill

OLDER = ["0001", "0002"]
EVERY_OLDER = migrate.revisions()[:-1]
FIRST_BASELINES = Path(__file__).resolve().parents[3] / "gpu_tasks" / "baselines"
SCHEMA = {
    "columns": """
        SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated, a.attidentity,
               col_description(c.oid, a.attnum), obj_description(c.oid, 'pg_class')
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v')
    """,
    "privileges": """
        SELECT c.relname, a.attname, role, privilege, has_column_privilege(role, c.oid, a.attnum, privilege)
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped,
             unnest(ARRAY['nightly_writer', 'nightly_reader']) AS role,
             unnest(ARRAY['SELECT', 'INSERT', 'UPDATE']) AS privilege
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
        UNION ALL
        SELECT relname, NULL, 'nightly_writer', 'DELETE', has_table_privilege('nightly_writer', oid, 'DELETE')
        FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
    """,
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace
    """,
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "triggers": "SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
    "functions": "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
    "version": "SELECT version_num FROM alembic_version",
}
TABLES = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
KILLED = [*OLDER, "0003"]
LATE = {"0003": "round"}  # a table that the migration from or to this version comes to after others; else check_result
WAITING = """
    SELECT pid FROM pg_locks
    WHERE relation = CAST(:late AS regclass) AND NOT granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
SPANS = """
    SELECT round, (counters #>> '{idle_after,end,time_s}')::float - (counters #>> '{idle_before,start,time_s}')::float
    FROM round
"""
CHANGED = """
    SELECT count(*) FROM pg_locks
    WHERE pid = :pid AND granted AND mode = 'AccessExclusiveLock' AND locktype = 'relation'
"""


def rows(database: Database, statement: str) -> list[Any]:
    with database.admin.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def schema(database: Database) -> dict[str, list[Any]]:
    """Everything there is but rows, as PostgreSQL describes it."""
    return {what: sorted(rows(database, statement), key=repr) for what, statement in SCHEMA.items()}


def contents(database: Database) -> dict[str, list[Any]]:
    """Every row of every table, by name of its columns."""
    names = [name for (name,) in rows(database, TABLES)]
    return {name: sorted(rows(database, f"SELECT to_jsonb({name})::text FROM {name}")) for name in names}


def store(database: Database, *records: Any) -> None:
    for record in records:
        load_run(database.writer, record, sha256_of(record))


@pytest.mark.parametrize("version", EVERY_OLDER)
def test_back_with_rows_in_every_table_is_exactly_the_older_schema(roles: Database, version: str) -> None:
    migrate.upgrade(roles.owner, version)
    older = schema(roles)
    migrate.upgrade(roles.owner)
    fill(roles)
    migrate.downgrade(roles.owner, version)
    assert schema(roles) == older
    kept = rows(roles, "SELECT dag_run_id, energy_trust, adjusted_mj_median FROM run ORDER BY dag_run_id")
    trust = "unverified" if version == "0001" else "failed"  # of the nearest word that the version has
    nights = [("failed", trust, 0.6), ("manual__1", "verified", 0.6), ("withdrawn", "verified", 0.6)]
    assert kept == sorted([*nights, ("tried", "verified", 0.54), ("learner", "verified", 1069.0)])
    compared = version >= "0007"  # else nothing is left of the kernel that it was held against
    rounds = [("candidate", 3), ("candidate", 7), *([("comparison", 2)] if compared else [])]
    assert sorted(rows(roles, "SELECT DISTINCT arm, count(*) FROM round GROUP BY arm, run_id")) == rounds
    assert rows(roles, "SELECT count(*) FROM validation") == [(46 + (22 if compared else 0),)]
    assert rows(roles, "SELECT for_energy, reason FROM baseline") == [(True, "for the test")]


@pytest.mark.parametrize("version", EVERY_OLDER)
def test_forth_and_back_leaves_every_row_of_the_older_version_as_it_was(roles: Database, version: str) -> None:
    migrate.upgrade(roles.owner)
    fill(roles)
    migrate.downgrade(roles.owner, version)
    before = contents(roles)
    assert len(before) >= 11
    migrate.upgrade(roles.owner)
    newest = contents(roles)
    assert {name: len(newest[name]) for name in before} == {name: len(found) for name, found in before.items()}
    migrate.downgrade(roles.owner, version)
    assert contents(roles) == before


def test_runs_of_before_are_nights_and_what_was_tried_is_known_again(roles: Database) -> None:
    """From the request, which every version keeps; what was seen of the other kernel is in the record file alone."""
    migrate.upgrade(roles.owner)
    fill(roles)
    migrate.downgrade(roles.owner, "0006")
    migrate.upgrade(roles.owner)
    assert rows(roles, "SELECT dag_run_id FROM run WHERE candidate") == [("tried",)]
    assert rows(roles, "SELECT spec, origin, pinned_variant, adjusted_mj_median, blocks FROM candidate_runs") == [
        ("kernels/original.py", None, None, 0.54, 0)
    ]
    assert rows(roles, "SELECT count(*) FROM nightly") == [(4,)]
    plain = "params - 'candidate' - 'kernel_changed'"  # as requests were before there was either
    for params in (plain, f'{plain} || \'{{"candidate": null, "kernel_changed": false}}\''):
        migrate.downgrade(roles.owner, "0006")
        with roles.owner.begin() as connection:
            connection.exec_driver_sql(f"UPDATE run SET params = {params}", execution_options={"no_parameters": True})
        migrate.upgrade(roles.owner)
        assert rows(roles, "SELECT DISTINCT candidate FROM run") == [(False,)]


def test_nothing_is_left_at_the_base_and_all_comes_again(roles: Database) -> None:
    migrate.upgrade(roles.owner)
    newest = schema(roles)
    fill(roles)
    migrate.downgrade(roles.owner, "base")
    assert rows(roles, TABLES) == [("alembic_version",)]
    assert schema(roles)["functions"] == []
    migrate.upgrade(roles.owner)
    assert schema(roles) == newest
    fill(roles)


def test_a_view_that_has_a_column_between_others_since_takes_the_place_of_the_one_before(roles: Database) -> None:
    """Without a migration: PostgreSQL replaces a view only by one with the same columns, and more at its end."""
    migrate.upgrade(roles.owner)
    newest = schema(roles)
    with roles.owner.begin() as connection:
        connection.execute(text("DROP VIEW kernel_lineage"))
        connection.execute(text("CREATE VIEW kernel_lineage AS SELECT run_id AS workload, dag_run_id AS gone FROM run"))
    migrate.upgrade(roles.owner)
    assert schema(roles) == newest


def test_an_installation_of_the_first_night_comes_along_with_its_data(roles: Database) -> None:
    migrate.upgrade(roles.owner)
    store(roles, run_record("base"), run_record("tonight"))
    accept_baseline(roles.writer, run_record("base").request.run_id, accepted_by="test", reason="for the test")
    migrate.downgrade(roles.owner, "0001")
    before = rows(roles, "SELECT run_id, round, adjusted_mj, counters FROM round ORDER BY run_id, round")
    migrate.upgrade(roles.owner)
    assert rows(roles, "SELECT run_id, round, adjusted_mj, counters FROM round ORDER BY run_id, round") == before
    assert rows(roles, "SELECT DISTINCT earlier_attempts::text, tick_period_s FROM round") == [("[]", None)]
    assert rows(roles, "SELECT DISTINCT inject, seed FROM run") == [(None, None)]
    assert rows(roles, "SELECT round, last_reading_s - first_reading_s FROM round") == rows(roles, SPANS)
    assert rows(roles, "SELECT energy_trust, for_energy FROM baseline_current") == [("verified", True)]
    assert rows(roles, "SELECT count(*), sum(cardinality(failed_gates)), count(withdrawn) FROM nightly") == [(2, 0, 0)]
    store(roles, run_record("tonight"), energy_run("later"))  # the former changes nothing
    assert rows(roles, "SELECT count(*) FROM run") == [(3,)]
    with pytest.raises(IntegrityError), roles.admin.begin() as connection:
        connection.execute(text("UPDATE round SET earlier_attempts = DEFAULT"))


@pytest.mark.parametrize("version", OLDER)
def test_what_the_authors_withdrew_is_withdrawn_in_older_installations_too(roles: Database, version: str) -> None:
    migrate.upgrade(roles.owner)
    ensure_first_baselines(roles.writer, FIRST_BASELINES)
    withdrawn = "SELECT workload, scope, withdrawn_by, reason, figures, adjusted_mj_median FROM withdrawn"
    expected = rows(roles, withdrawn)
    assert [(row[0], row[1]) for row in expected] == [("qda", "energy")]
    assert "0.59 mJ on healthy boards" in expected[0][4]
    migrate.downgrade(roles.owner, version)
    with roles.owner.begin() as connection:  # somebody had accepted its energy by name
        connection.execute(text("UPDATE baseline SET for_energy = true"))
    migrate.upgrade(roles.owner)
    assert rows(roles, withdrawn) == []
    for _ in range(2):
        ensure_first_baselines(roles.writer, FIRST_BASELINES)
    assert rows(roles, withdrawn) == expected
    of_the_record = "payload = 'original' AND device_kind = 'cuda'"
    current = f"SELECT for_agreement, for_time, for_energy FROM baseline_current WHERE {of_the_record}"
    assert rows(roles, current) == [(True, True, False)]


def test_an_older_database_that_holds_what_cannot_be_stays_as_it_is(roles: Database) -> None:
    migrate.upgrade(roles.owner, "0002")
    with roles.owner.begin() as connection:
        statement = "INSERT INTO device (kind, uuid, name, multiprocessors) VALUES ('cuda', 'u', 'n', 0)"
        connection.execute(text(statement))
    before = schema(roles), contents(roles)
    with pytest.raises(IntegrityError, match="device_size_check"):
        migrate.upgrade(roles.owner)
    assert (schema(roles), contents(roles)) == before


def killed_in_the_middle(database: Database, version: str, migration: Callable[[], None]) -> list[BaseException]:
    """Run a migration whose connection is ended when it has made part of its changes; returns what it raised."""
    raised: list[BaseException] = []
    late = LATE.get(version, "check_result")

    def run() -> None:
        try:
            migration()
        except BaseException as error:
            raised.append(error)

    worker = threading.Thread(target=run)
    with database.admin.connect() as connection:
        connection.execute(text(f"LOCK TABLE {late} IN ACCESS SHARE MODE"))
        worker.start()
        pid = _wait_for_the_lock(connection, late, worker)
        assert connection.execute(text(CHANGED), {"pid": pid}).scalar_one() > 3
        connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
        worker.join(timeout=30)
    return raised


def _wait_for_the_lock(connection: Connection, late: str, worker: threading.Thread) -> int:
    while worker.is_alive():
        found = connection.execute(text(WAITING), {"late": late}).scalar()
        if found is not None:
            return int(found)
        time.sleep(0.02)
    raise AssertionError("the migration ended without coming to the locked table")


@pytest.mark.parametrize("version", KILLED)
def test_an_upgrade_whose_connection_is_killed_leaves_the_old_version_whole(roles: Database, version: str) -> None:
    migrate.upgrade(roles.owner)
    fill(roles)
    migrate.downgrade(roles.owner, version)
    before = schema(roles), contents(roles)
    (error,) = killed_in_the_middle(roles, version, lambda: migrate.upgrade(roles.owner))
    assert isinstance(error, OperationalError)
    assert (schema(roles), contents(roles)) == before
    migrate.upgrade(roles.owner)
    store(roles, energy_run("after"))
    assert rows(roles, "SELECT count(*) FROM nightly") == [(5,)]


@pytest.mark.parametrize("version", [*KILLED, "base"])
def test_a_downgrade_whose_connection_is_killed_leaves_the_newest_version_whole(full: Database, version: str) -> None:
    before = schema(full), contents(full)
    (error,) = killed_in_the_middle(full, version, lambda: migrate.downgrade(full.owner, version))
    assert isinstance(error, DBAPIError)
    assert (schema(full), contents(full)) == before
    assert rows(full, "SELECT count(*) FROM nightly") == [(4,)]
