"""From one version of the schema to the next and back, with data in the tables."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from regression.results import migrate
from regression.results.baselines import accept_baseline
from regression.results.loading import load_run
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import energy_run
from tests.integration.regression.example_records import run_record, sha256_of

SHAPE = """
    SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, col_description(c.oid, a.attnum),
           obj_description(c.oid, 'pg_class'), has_table_privilege('nightly_writer', c.oid, 'DELETE')
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
    ORDER BY 1, 2
"""
CONSTRAINTS = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
    ORDER BY 1, 2, 3
"""


def rows(database: Database, statement: str) -> list[Any]:
    with database.admin.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def store(database: Database, *records: Any) -> None:
    for record in records:
        load_run(database.writer, record, sha256_of(record))


def test_back_to_the_first_night_with_data_is_exactly_the_first_schema(roles: Database) -> None:
    migrate.upgrade(roles.owner, "0001")
    first = (rows(roles, SHAPE), rows(roles, CONSTRAINTS))
    migrate.upgrade(roles.owner)
    store(roles, energy_run("good"), energy_run("bad", failed=["sham_window"]), run_record("plain"))
    accept_baseline(roles.writer, energy_run("good").request.run_id, accepted_by="test", reason="for the test")
    migrate.downgrade(roles.owner, "0001")
    assert (rows(roles, SHAPE), rows(roles, CONSTRAINTS)) == first
    kept = rows(roles, "SELECT dag_run_id, energy_trust, adjusted_mj_median FROM run ORDER BY dag_run_id")
    assert kept == [("bad", "unverified", 0.6), ("good", "verified", 0.6), ("plain", "verified", 0.6)]
    assert rows(roles, "SELECT count(*) FROM round") == [(21,)]
    assert rows(roles, "SELECT for_energy, reason FROM baseline") == [(True, "for the test")]


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
    assert rows(roles, "SELECT energy_trust FROM baseline_current") == [("verified",)]
    assert rows(roles, "SELECT count(*), sum(cardinality(failed_gates)) FROM nightly") == [(2, 0)]
    store(roles, run_record("tonight"), energy_run("later"))  # the former changes nothing
    assert rows(roles, "SELECT count(*) FROM run") == [(3,)]
    with pytest.raises(IntegrityError), roles.admin.begin() as connection:
        connection.execute(text("INSERT INTO round SELECT * FROM round"))
    with pytest.raises(IntegrityError), roles.admin.begin() as connection:
        connection.execute(text("UPDATE round SET earlier_attempts = DEFAULT"))
