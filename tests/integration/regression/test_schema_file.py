"""sql/schema.sql is what the migrations and views make, and makes it again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from local.errors import LauncherError
from local.schema import SCHEMA_FILE, readable, schema_of, write_schema
from tests.integration.regression.databases import Database
from tests.integration.regression.test_migrations import schema


def dsn(database: Database) -> str:
    return database.admin.url.render_as_string(hide_password=False)


def test_the_file_is_what_the_command_writes(tmp_path: Path) -> None:
    """Stale? ``./nightly schema`` writes it anew."""
    write_schema(tmp_path / "schema.sql")
    assert SCHEMA_FILE.read_text(encoding="utf-8") == (tmp_path / "schema.sql").read_text(encoding="utf-8")


def test_the_file_makes_the_schema_again(database: Database) -> None:
    """All of it but the privileges: nothing was filtered that is the schema's own."""
    made = schema(database)
    with database.admin.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE; CREATE SCHEMA public"))
        script = SCHEMA_FILE.read_text(encoding="utf-8")
        connection.exec_driver_sql(script, execution_options={"no_parameters": True})
        connection.execute(text("INSERT INTO alembic_version VALUES (:version)"), {"version": made["version"][0][0]})
    again = schema(database)
    for what in made.keys() - {"privileges"}:
        assert without_brackets(again[what]) == without_brackets(made[what]), what


def without_brackets(described: list[Any]) -> list[str]:
    """PostgreSQL writes nested conditions with more brackets than those it has read."""
    return sorted(re.sub(r"[()]", "", repr(row)) for row in described)


def test_nothing_of_the_session_or_the_server_is_in_the_file(database: Database) -> None:
    told = schema_of(dsn(database))
    assert told == SCHEMA_FILE.read_text(encoding="utf-8")
    assert not re.search(r"^(SET|GRANT|REVOKE|\\)|OWNER TO|Dumped|public\.", told, re.MULTILINE)


def test_what_is_the_schemas_own_is_kept_as_it_is() -> None:
    dumped = (
        "--\n-- PostgreSQL database dump\n--\n\n\\restrict x1Y2\n\n-- Dumped by pg_dump version 18.6\n\n"
        "SET statement_timeout = 0;\nSELECT pg_catalog.set_config('search_path', '', false);\n\n"
        "CREATE TABLE public.run (\n    note text DEFAULT '-- none'::text\n);\n\n\n--\n-- Name: x\n--\n\n"
        "COMMENT ON TABLE public.run IS 'Runs';\n\n\\unrestrict x1Y2\n\n"
    )
    expected = "CREATE TABLE run (\n    note text DEFAULT '-- none'::text\n);\n\nCOMMENT ON TABLE run IS 'Runs';\n"
    assert readable(dumped) == expected


def test_a_database_that_does_not_answer_is_said_in_one_line(database: Database) -> None:
    with pytest.raises(LauncherError, match=r"^pg_dump: .*nowhere") as caught:
        schema_of(dsn(database).rsplit("/", 1)[0] + "/nowhere")
    assert "\n" not in str(caught.value)
