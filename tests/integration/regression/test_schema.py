"""Migrations, constraints, comments and roles on a real PostgreSQL."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from regression.results import migrate, tables
from regression.results.baselines import accept_baseline
from regression.results.loading import load_run
from regression.results.roles import ensure_roles
from tests.integration.regression.databases import PASSWORDS, Database
from tests.integration.regression.example_energy import energy_run
from tests.integration.regression.example_records import CPU, payload, run_record, sha256_of

WRITES = [
    "DELETE FROM run",
    "INSERT INTO device (kind, uuid, name) VALUES ('cuda', 'u', 'n')",
    "UPDATE run SET note = 'x'",
    "CREATE TABLE mine (a int)",
    "DROP VIEW nightly",
    "SET transaction_read_only = off; DELETE FROM run",
]
WRONG_BASELINES = [
    "UPDATE baseline SET workload = 'learner'",
    "UPDATE baseline SET protocol = 'long'",
    "UPDATE baseline SET environment_class = 'driver=other'",
    "UPDATE baseline SET device_id = (SELECT max(device_id) FROM device)",
    "UPDATE baseline SET payload_id = (SELECT max(payload_id) FROM payload)",
    "UPDATE run SET device_id = (SELECT max(device_id) FROM device) WHERE dag_run_id = 'manual__1'",
    "UPDATE environment SET environment_class = 'driver=other'",
    "UPDATE baseline SET energy_trust = 'failed'",
    "UPDATE run SET energy_trust = 'failed'",
]
WRONG_STATES = [
    "UPDATE run SET agreed = total + 1",
    "UPDATE run SET trigger = 'moon'",
    "UPDATE run SET verdict = 'ok'",
    "UPDATE run SET verdict = 'fine', exit_code = 0",
    "UPDATE run SET completed_at = started_at - interval '1 s'",
    "UPDATE run SET outcome = 'regression', reason_code = NULL",
    "UPDATE run SET rounds_valid = rounds_expected + 1",
    "UPDATE run SET record_sha256 = 'abc'",
    "UPDATE run SET total = NULL",
    "UPDATE run SET agreed = NULL",
    "UPDATE validation SET payload_sha256 = upper(payload_sha256)",
    "UPDATE source_state SET sources_sha256 = 'abc'",
    "UPDATE round SET cuda_ms = NULL",
    "UPDATE round SET cuda_ms_reason_code = 'no_cuda_events'",
    "UPDATE validation SET agreed = 1001",
    "UPDATE validation SET agreed = NULL WHERE draw = 1",
    "UPDATE validation SET draw = 1",
    "UPDATE round SET outcome = 'invalid_measurement', reason_code = 'x'",
    "UPDATE round SET valid = false",
    "UPDATE round SET wall_ms = 0",
    "UPDATE device SET kind = 'tpu'",
    "UPDATE run SET energy_trust = 'perhaps'",
    "UPDATE run SET inject = 'throttle'",
    "UPDATE run SET inject = ' ', seed = 1",
    "UPDATE run SET seed = -1",
    "UPDATE round SET tick_period_s = 0",
    "UPDATE round SET integrated_j = NULL WHERE counter_j IS NOT NULL",
    "UPDATE round SET counter_j = NULL, integrated_j = NULL, meters_relative_difference = NULL",
    "UPDATE round SET earlier_attempts = '{}'",
    "UPDATE run_energy SET figure = 'guess'",
    "UPDATE run_energy SET subject = ' '",
    "UPDATE run_energy SET median_mj = max_mj + 1",
    "UPDATE run_energy SET rounds = 0",
    "UPDATE run_energy SET rounds = 1",
    "UPDATE run_energy SET sample_sd_mj = NULL",
    "UPDATE run_energy SET sample_sd_mj = -1",
    "UPDATE run_energy SET detectable_mj = -1",
    "UPDATE round_energy SET round = 99",
    "UPDATE round_energy SET drift_mj = -0.1",
    "UPDATE round_energy SET combined_mj = -0.1",
    "UPDATE round_energy SET low_mj = high_mj + 1",
    "UPDATE round_energy SET degrees_of_freedom = 0",
    "UPDATE round_energy SET figure = 'classic'",
    "UPDATE round_trace SET round = 99",
    "UPDATE round_trace SET period_s = 0",
    "UPDATE round_trace SET power_kind = 'guessed'",
    "UPDATE round_trace SET error_code = 'x'",
    "UPDATE telemetry SET moment = 'during'",
    "UPDATE telemetry SET outcome = 'invalid_measurement'",
    "UPDATE telemetry SET reference_energy_j = NULL",
    "UPDATE telemetry SET reference_duration_s = 0",
    "UPDATE telemetry SET idle_power_w = NULL WHERE moment = 'before'",
    "UPDATE telemetry_trace SET moment = 'during'",
    "UPDATE telemetry_gate SET gate = 'luck'",
    "UPDATE telemetry_gate SET at = 'later'",
    "UPDATE telemetry_gate SET passed = false",
    "UPDATE telemetry_gate SET passed = NULL",
    "UPDATE telemetry_gate SET low = high + 1",
    "INSERT INTO check_result (run_id, check_name, step, verdict, metric, unit, reason_code, reason, details) "
    "SELECT run_id, 'energy', 0, 'great', 'm', 'mJ', 'x', 'x', '{}' FROM run",
]


def _rows(database: Database, statement: str, **parameters: Any) -> list[Any]:
    with database.admin.connect() as connection:
        return list(connection.execute(text(statement), parameters))


def test_the_migrations_make_exactly_the_tables_of_the_python_definition(database: Database) -> None:
    with database.admin.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), tables.metadata) == []


def test_constraints_and_indexes_are_those_of_the_python_definition_word_by_word(database: Database) -> None:
    with database.admin.begin() as connection:
        migrated = _definitions(connection, "public")
        connection.execute(text("CREATE SCHEMA scratch"))
        connection.execute(text("SET LOCAL search_path TO scratch"))
        tables.metadata.create_all(connection)
        defined = _definitions(connection, "scratch")
    assert len(defined) > 60
    assert {line for line in migrated if line[0] != "alembic_version"} == defined


def _definitions(connection: Connection, schema: str) -> set[tuple[str, str, str]]:
    """Table, name and expression of every constraint and index, as PostgreSQL understands them."""
    connection.execute(text(f"SET LOCAL search_path TO {schema}"))
    found = connection.execute(
        text(
            """
            SELECT relname, conname, pg_get_constraintdef(c.oid)
            FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid
            WHERE r.relnamespace = CAST(:schema AS regnamespace)
            UNION ALL
            SELECT tablename, indexname, replace(indexdef, :schema || '.', '')
            FROM pg_indexes WHERE schemaname = :schema
            """
        ),
        {"schema": schema},
    )
    return {(table, name, definition) for table, name, definition in found}


def test_every_sha256_is_checked(database: Database) -> None:
    unchecked = _rows(
        database,
        """
        SELECT a.attrelid::regclass::text, a.attname FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid
        WHERE r.relkind = 'r' AND a.attname LIKE '%sha256' AND NOT EXISTS (
            SELECT FROM pg_constraint c WHERE c.conrelid = a.attrelid AND c.contype = 'c' AND c.conkey = ARRAY[a.attnum]
        )
        """,
    )
    assert unchecked == []


def test_every_relation_and_column_has_a_comment(database: Database) -> None:
    uncommented = _rows(
        database,
        """
        SELECT c.relname, a.attname FROM pg_class c
        LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v')
          AND (obj_description(c.oid, 'pg_class') IS NULL OR col_description(c.oid, a.attnum) IS NULL)
        """,
    )
    assert uncommented == []


def test_down_and_up_again_leaves_a_working_database(database: Database) -> None:
    load_run(database.writer, run_record(), sha256_of(run_record()))
    migrate.downgrade(database.owner, "base")
    left = _rows(database, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'")
    assert [row[0] for row in left] == ["alembic_version"]
    migrate.upgrade(database.owner)
    load_run(database.writer, run_record(), sha256_of(run_record()))
    assert _rows(database, "SELECT agreed, total FROM nightly") == [(11000, 11000)]


def test_two_upgrades_at_once_and_one_by_the_administrator(roles: Database) -> None:
    failures: list[BaseException] = []

    def upgrade(engine: Any) -> None:
        try:
            migrate.upgrade(engine)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=upgrade, args=(engine,)) for engine in (roles.owner, roles.admin, roles.owner)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert failures == []
    owners = _rows(roles, "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'")
    assert owners == [("nightly_owner",)]


def test_roles_can_be_ensured_again_with_new_passwords(database: Database) -> None:
    name = database.admin.url.database
    assert name
    with database.admin.begin() as connection:
        ensure_roles(connection, name, PASSWORDS)
    with pytest.raises(ValueError, match="nightly_reader"), database.admin.begin() as connection:
        ensure_roles(connection, name, {**PASSWORDS, "nightly_reader": ""})


def test_the_reader_writes_nothing(database: Database) -> None:
    for statement in WRITES:
        with pytest.raises(DBAPIError), database.reader.begin() as connection:
            connection.execute(text(statement))


def test_the_reader_makes_nothing_even_in_a_session_that_may_write(database: Database) -> None:
    rights = "has_database_privilege('nightly_reader', current_database(), '{}')"
    asked = ", ".join(rights.format(right) for right in ("CONNECT", "TEMP", "CREATE"))
    assert _rows(database, f"SELECT {asked}, has_schema_privilege('nightly_reader', 'public', 'CREATE')") == [
        (True, False, False, False)
    ]
    objects = (
        "CREATE TEMP TABLE mine (a int)",
        "CREATE SCHEMA mine",
        "CREATE TABLE mine (a int)",
        "SELECT lo_create(0)",
    )
    for statement in objects:
        with database.reader.connect() as connection:
            connection.execute(text("SET default_transaction_read_only = off"))
            connection.commit()
            with pytest.raises(DBAPIError, match="permission denied"):
                connection.execute(text(statement))


def test_the_reader_sees_views_and_tables_and_is_stopped_after_a_while(database: Database) -> None:
    load_run(database.writer, run_record(), sha256_of(run_record()))
    with database.reader.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM nightly")).scalar_one() == 1
        assert connection.execute(text("SELECT count(*) FROM round")).scalar_one() == 7
        assert connection.execute(text("SHOW statement_timeout")).scalar_one() == "30s"
        connection.execute(text("SET statement_timeout = '50ms'"))
        with pytest.raises(DBAPIError, match="statement timeout"):
            connection.execute(text("SELECT pg_sleep(5)"))


def test_the_writer_neither_changes_the_schema_nor_deletes_runs(database: Database) -> None:
    for statement in (
        "DROP TABLE run",
        "DELETE FROM run",
        "DELETE FROM baseline",
        "UPDATE alembic_version SET version_num = '9'",
    ):
        with pytest.raises(DBAPIError), database.writer.begin() as connection:
            connection.execute(text(statement))


def test_wrong_states_are_impossible(database: Database) -> None:
    load_run(database.writer, energy_run("manual__1"), sha256_of(energy_run("manual__1")))
    allowed = []
    for statement in WRONG_STATES:
        try:
            with database.admin.begin() as connection:
                connection.execute(text(statement))
        except IntegrityError:
            continue
        allowed.append(statement)
    assert allowed == []


def test_a_baseline_cannot_contradict_its_run(database: Database) -> None:
    other = run_record("other", device=CPU, payload=payload("other"))
    for record in (run_record(), other):
        load_run(database.writer, record, sha256_of(record))
    accept_baseline(database.writer, run_record().request.run_id, accepted_by="test", reason="for the test")
    allowed = []
    for statement in WRONG_BASELINES:
        try:
            with database.admin.begin() as connection:
                connection.execute(text(statement))
        except IntegrityError:
            continue
        allowed.append(statement)
    assert allowed == []


def test_the_first_columns_of_the_nightly_view_are_what_a_person_looks_for(database: Database) -> None:
    columns = _rows(
        database,
        "SELECT attname FROM pg_attribute WHERE attrelid = 'nightly'::regclass AND attnum > 0 ORDER BY attnum",
    )
    assert [c[0] for c in columns[:6]] == ["night", "workload", "device", "verdict", "agreed", "total"]
