"""The migrations make what Python defines, with comments, whoever makes it and however many at once."""

from __future__ import annotations

import threading
from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text

from regression.results import migrate, tables
from tests.integration.regression.databases import Database


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
    """Table, name and expression of every constraint, index and setting of a table, as PostgreSQL understands them."""
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
            UNION ALL
            SELECT relname, 'setting', unnest(reloptions)
            FROM pg_class WHERE relkind = 'r' AND relnamespace = CAST(:schema AS regnamespace)
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


def test_every_relation_column_and_function_has_a_comment(database: Database) -> None:
    uncommented = _rows(
        database,
        """
        SELECT c.relname, a.attname FROM pg_class c
        LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v')
          AND (obj_description(c.oid, 'pg_class') IS NULL OR col_description(c.oid, a.attnum) IS NULL)
        UNION ALL
        SELECT proname, NULL FROM pg_proc
        WHERE pronamespace = 'public'::regnamespace AND obj_description(oid, 'pg_proc') IS NULL
        """,
    )
    assert uncommented == []


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
