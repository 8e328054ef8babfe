"""Who may do what: the reader writes nothing by any way, the writer what loading needs and no history."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.pool import NullPool

from regression.results import tables
from regression.results.loading import load_run
from regression.results.outcome import settle_verdict
from regression.results.roles import READER_SETTINGS, ensure_roles
from tests.integration.regression.databases import PASSWORDS, Database
from tests.integration.regression.example_comparisons import DAG, DIFFERING, candidate_run, comparison
from tests.integration.regression.example_learner import SETTINGS, memory, qualification
from tests.integration.regression.example_records import run_record, sha256_of

WRITER = {
    "run": "SELECT INSERT UPDATE",
    "check_result": "SELECT INSERT UPDATE DELETE",
    "baseline": "SELECT INSERT UPDATE(retired_at,retired_by,retired_reason)",
    "alert": "SELECT INSERT UPDATE(acknowledged_at,acknowledged_by,acknowledged_reason,baseline_id,baseline_value,"
    "first_run_id,last_run_id,last_seen_at,message,muted_until,occurrences,outcome,resolved_at,state,tell_since,text,"
    "unit,value)",
    "alembic_version": "SELECT",
    **dict.fromkeys(("alert_event", "withdrawal"), "SELECT INSERT"),
    **dict.fromkeys(("device", "environment", "source_state", "payload", "payload_draw"), "SELECT INSERT"),
    **dict.fromkeys(("validation", "round", "round_energy", "round_trace"), "SELECT INSERT DELETE"),
    **dict.fromkeys(("run_energy", "telemetry", "telemetry_trace", "telemetry_gate"), "SELECT INSERT DELETE"),
    **dict.fromkeys(("comparison", "comparison_block", "comparison_difference"), "SELECT INSERT DELETE"),
    **dict.fromkeys(("run_setting", "qualification", "qualification_case"), "SELECT INSERT DELETE"),
    **dict.fromkeys(("task_memory", "memory_storage", "memory_tensor"), "SELECT INSERT DELETE"),
}
PARTS = (
    *("validation", "round", "round_energy", "run_energy", "telemetry", "telemetry_gate"),
    *("comparison", "comparison_block", "comparison_difference"),
    *("run_setting", "qualification", "qualification_case", "task_memory", "memory_storage", "memory_tensor"),
)
"""Tables of what belongs to a run, without the traces, which may be deleted."""
ORDER = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCA", "REFERE", "TRIGGE")
PRIVILEGES = """
    SELECT c.relname, string_agg(DISTINCT privilege || CASE WHEN whole THEN '' ELSE '(' || columns || ')' END, ' ')
    FROM pg_class AS c
    CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS privilege
    CROSS JOIN LATERAL (SELECT has_table_privilege(:role, c.oid, privilege) AS whole) AS on_table
    CROSS JOIN LATERAL (
        SELECT string_agg(attname::text, ',' ORDER BY attname) AS columns FROM pg_attribute
        WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
          AND CASE WHEN privilege IN ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES')
              THEN has_column_privilege(:role, c.oid, attnum, privilege) END
    ) AS on_columns
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = ANY (:kinds) AND (whole OR columns IS NOT NULL)
    GROUP BY c.relname
"""
FORBIDDEN = [
    "DELETE FROM run",
    "UPDATE run SET note = 'x'",
    "INSERT INTO device (kind, uuid, name) VALUES ('cuda', 'u', 'n')",
    "TRUNCATE run CASCADE",
    "INSERT INTO open_alerts (text) VALUES ('x')",
    "COPY run FROM STDIN",
    "COPY run TO '/tmp/kernel-nightly-reader'",
    "COPY run TO PROGRAM 'cat'",
    "CREATE TEMP TABLE mine (a int)",
    "CREATE TEMP VIEW mine AS SELECT 1",
    "SELECT 1 INTO TEMP mine",
    "CREATE TABLE mine (a int)",
    "CREATE SCHEMA mine",
    "CREATE VIEW mine AS SELECT 1 AS a",
    "CREATE SEQUENCE mine",
    "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE EXTENSION file_fdw",
    "CREATE ROLE mine",
    "CREATE DATABASE mine",
    "SELECT lo_create(0)",
    "SELECT lo_creat(-1)",
    "SELECT lo_from_bytea(0, 'x')",
    "SELECT lo_import('/etc/hostname')",
    "SELECT nextval('device_device_id_seq')",
    "SELECT setval('device_device_id_seq', 1)",
    "SELECT run_is_history()",
    "SELECT * FROM run FOR UPDATE",
    "LOCK TABLE run IN ROW EXCLUSIVE MODE",
    "DO $$ BEGIN DELETE FROM run; END $$",
    "WITH gone AS (DELETE FROM run RETURNING 1) SELECT count(*) FROM gone",
    "EXPLAIN ANALYZE DELETE FROM run",
    "PREPARE mine AS DELETE FROM run; EXECUTE mine",
    "SET ROLE nightly_writer",
    "SET ROLE nightly_owner",
    "SET SESSION AUTHORIZATION nightly_writer",
    "GRANT nightly_writer TO nightly_reader",
    "ALTER ROLE nightly_writer PASSWORD 'mine'",
    "ALTER ROLE nightly_reader SUPERUSER",
    "ALTER TABLE run ADD COLUMN mine int",
    "COMMENT ON TABLE run IS 'mine'",
    "DROP VIEW nightly",
    "ALTER SYSTEM SET work_mem = '1GB'",
    "SELECT pg_reload_conf()",
    "SELECT pg_read_file('/etc/hostname')",
    "CREATE TRIGGER mine BEFORE INSERT ON run EXECUTE FUNCTION run_is_history()",
]


def privileges(database: Database, role: str, kinds: str) -> dict[str, str]:
    """Relation to the privileges that the role has on it, in the order of the words above."""
    with database.admin.connect() as connection:
        found = connection.execute(text(PRIVILEGES), {"role": role, "kinds": list(kinds)})
        return {name: " ".join(sorted(words.split(), key=lambda word: ORDER.index(word[:6]))) for name, words in found}


def as_reader_that_may_write(database: Database, statement: str) -> None:
    """Run it in a session in which the reader has lifted the guard that it may lift itself."""
    with database.reader.connect() as connection:
        connection.execute(text("SET default_transaction_read_only = off"))
        connection.commit()
        connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
        connection.commit()


def test_the_reader_reads_every_table_and_view_and_nothing_else(database: Database) -> None:
    everything = {*privileges(database, "nightly_owner", "rv")}
    assert {"alert", "withdrawal", "nightly", "run_detail", "open_alerts"} <= everything
    assert privileges(database, "nightly_reader", "rvmSfp") == dict.fromkeys(everything, "SELECT")
    with database.reader.connect() as connection:
        for name in everything:
            connection.execute(text(f'SELECT * FROM "{name}" LIMIT 1'))


def test_the_writer_has_what_loading_judging_and_alerting_need_and_no_more(database: Database) -> None:
    assert privileges(database, "nightly_writer", "r") == WRITER


def test_the_reader_writes_nothing_by_any_way(database: Database) -> None:
    load_run(database.writer, run_record(), sha256_of(run_record()))
    allowed = []
    for statement in FORBIDDEN:
        try:
            as_reader_that_may_write(database, statement)
        except DBAPIError:
            continue
        allowed.append(statement)
    assert allowed == []
    as_reader_that_may_write(database, "GRANT INSERT ON run TO nightly_reader")  # a warning, and nothing granted
    assert privileges(database, "nightly_reader", "rv")["run"] == "SELECT"
    with database.admin.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM run")).scalar_one() == 1
        assert connection.execute(text("SELECT count(*) FROM pg_largeobject_metadata")).scalar_one() == 0


def test_a_read_only_session_is_the_first_guard(database: Database) -> None:
    for statement in ("DELETE FROM run", "SET transaction_read_only = off; DELETE FROM run"):
        with pytest.raises(DBAPIError), database.reader.begin() as connection:
            connection.execute(text(statement))


def test_the_reader_is_stopped_after_a_while(database: Database) -> None:
    with database.reader.connect() as connection:
        shown = {name: connection.execute(text(f"SHOW {name}")).scalar_one() for name in READER_SETTINGS}
        assert shown == READER_SETTINGS
        connection.execute(text("SET statement_timeout = '50ms'"))
        with pytest.raises(DBAPIError, match="statement timeout"):
            connection.execute(text("SELECT pg_sleep(5)"))


def test_what_a_reader_changed_for_itself_is_put_back_with_the_next_start(database: Database) -> None:
    name = str(database.admin.url.database)
    for statement in (
        f'ALTER ROLE nightly_reader IN DATABASE "{name}" SET statement_timeout = 0',
        f"ALTER ROLE nightly_reader IN DATABASE \"{name}\" SET work_mem = '1GB'",
        "ALTER ROLE nightly_reader SET search_path = pg_catalog",
        "ALTER ROLE nightly_reader PASSWORD 'mine'",
    ):
        as_reader_that_may_write(database, statement)
        engine = create_engine(database.reader.url.set(password="mine"), poolclass=NullPool)
    with engine.connect() as connection:
        assert connection.execute(text("SHOW statement_timeout")).scalar_one() == "0"
    with database.admin.begin() as connection:
        ensure_roles(connection, name, PASSWORDS)
    with pytest.raises(DBAPIError, match="password"):
        engine.connect()
    with database.reader.connect() as connection:
        shown = {name: connection.execute(text(f"SHOW {name}")).scalar_one() for name in READER_SETTINGS}
        assert shown == READER_SETTINGS
        assert connection.execute(text("SHOW work_mem")).scalar_one() != "1GB"


def test_roles_need_a_password_each(database: Database) -> None:
    with pytest.raises(ValueError, match="nightly_reader"), database.admin.begin() as connection:
        ensure_roles(connection, str(database.admin.url.database), {**PASSWORDS, "nightly_reader": ""})


def as_writer(database: Database, statement: str) -> None:
    with database.writer.begin() as connection:
        connection.execute(text(statement))


def test_the_writer_neither_changes_the_schema_nor_deletes_what_is_kept_for_ever(database: Database) -> None:
    load_run(database.writer, run_record(), sha256_of(run_record()))
    for statement in (
        "DROP TABLE run",
        "ALTER TABLE run DISABLE TRIGGER ALL",
        "DELETE FROM run",
        "DELETE FROM baseline",
        "DELETE FROM withdrawal",
        "DELETE FROM alert_event",
        "UPDATE alert_event SET text = 'x'",
        "UPDATE withdrawal SET reason = 'x'",
        "UPDATE baseline SET accepted_by = 'x'",
        "UPDATE alert SET opened_at = now()",
        "UPDATE device SET name = 'x'",
        "UPDATE environment SET driver = 'x'",
        "TRUNCATE run CASCADE",
        "UPDATE alembic_version SET version_num = '9'",
        "CREATE TEMP TABLE mine (a int)",
        "SET session_replication_role = replica",
    ):
        with pytest.raises(ProgrammingError, match=r"permission denied|must be owner"):
            as_writer(database, statement)


def test_a_judged_run_is_history_for_the_writer(database: Database) -> None:
    parts = PARTS
    compared = comparison(differing=list(DIFFERING), differing_total=1)
    record = candidate_run(compared=compared, qualification=qualification(), memory=memory())
    assert record.provision
    record = replace(record, provision=replace(record.provision, settings=list(SETTINGS)))
    load_run(database.writer, record, sha256_of(record))
    before = everything(database)
    with database.writer.begin() as connection:
        settle_verdict(connection, DAG, "tried__1", ())
    judged = everything(database)
    assert judged.pop("run") != before.pop("run")
    assert judged == before
    attempts = [f"DELETE FROM {table}" for table in parts]
    for table in parts:
        given = ", ".join(c.name for c in tables.metadata.tables[table].columns if c.computed is None)
        attempts.append(f"INSERT INTO {table} ({given}) SELECT {given} FROM {table}")
    attempts += [f"UPDATE run SET {change}" for change in ("note = 'x'", "verdict = NULL, exit_code = NULL")]
    attempts += ["UPDATE run SET verdict = 'regression', exit_code = 1, adjusted_mj_median = 0.61"]
    for statement in attempts:
        with pytest.raises(IntegrityError, match="judged"):
            as_writer(database, statement)
    as_writer(database, "UPDATE run SET verdict = 'regression', exit_code = 1")  # judged again
    as_writer(database, "DELETE FROM round_trace")  # too large to be kept for ever
    with database.owner.begin() as connection:  # who owns the tables answers for them
        connection.execute(text("UPDATE run SET note = 'x'"))


def test_a_run_that_the_infrastructure_failed_may_be_replaced(database: Database) -> None:
    load_run(database.writer, run_record(), sha256_of(run_record()))
    as_writer(database, "UPDATE run SET verdict = 'infrastructure_failure', exit_code = 5")
    as_writer(database, "DELETE FROM round")
    as_writer(database, "UPDATE run SET verdict = NULL, exit_code = NULL, note = 'again'")


def everything(database: Database) -> dict[str, list[Any]]:
    """Every row of a run, by table."""
    names = ("run", *PARTS)
    with database.admin.connect() as connection:
        return {
            name: connection.execute(text(f"SELECT {name}::text FROM {name} ORDER BY 1")).scalars().all()
            for name in names
        }
