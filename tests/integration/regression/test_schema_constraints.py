"""Wrong states are impossible: every constraint refuses what it is there for, with rows in every table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Double, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from regression.results import tables
from regression.results.baselines import accept_baseline
from regression.results.loading import load_run
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import energy_run
from tests.integration.regression.example_records import CPU, payload, run_record, sha256_of
from tests.integration.regression.full_database import ALERT
from tests.integration.regression.wrong_states import TARGETS_OF_REFERENCES, statements

WRONG_BASELINES = [
    "UPDATE baseline SET workload = 'learner'",
    "UPDATE baseline SET protocol = 'classic'",
    "UPDATE baseline SET environment_class = 'driver=other'",
    "UPDATE baseline SET device_id = (SELECT max(device_id) FROM device)",
    "UPDATE baseline SET payload_id = (SELECT max(payload_id) FROM payload)",
    "UPDATE run SET device_id = (SELECT max(device_id) FROM device) WHERE dag_run_id = 'manual__1'",
    "UPDATE environment SET environment_class = 'driver=other'",
    "UPDATE baseline SET energy_trust = 'unverified'",
    "UPDATE run SET energy_trust = 'unverified'",
    "UPDATE run SET energy_trust = 'failed'",
]
DANGLING = [
    "INSERT INTO alert_event (alert_id, event, author, text) VALUES (0, 'opened', 'a', 'b')",
    "UPDATE alert SET first_run_id = gen_random_uuid()",
    "UPDATE alert SET device_id = 99",
    "UPDATE alert SET baseline_id = 99",
    "UPDATE withdrawal SET successor_run_id = gen_random_uuid()",
    "UPDATE round_energy SET round = 99 WHERE round = 0",
    "UPDATE round_trace SET round = 99 WHERE round = 0",
    "UPDATE check_result SET baseline_id = 99",
    "DELETE FROM run",
    "DELETE FROM round",
    "DELETE FROM alert",
    "DELETE FROM device",
]
CONSTRAINTS = """
    SELECT conname, conrelid::regclass::text AS table FROM pg_constraint
    WHERE contype IN ('c', 'u') AND connamespace = 'public'::regnamespace
"""


def refused_by(database: Database, statement: str) -> str | None:
    """Constraint that refuses the statement; None: it is allowed. Nothing is changed."""
    with database.admin.connect() as connection:
        try:
            connection.execute(text(statement.replace(":", "\\:")))
        except IntegrityError as error:
            return str(error.orig.diag.constraint_name)  # type: ignore[union-attr]
    return None


def test_every_constraint_refuses_what_it_is_there_for(full: Database) -> None:
    with full.admin.connect() as connection:
        tables_of = {row.conname: row.table for row in connection.execute(text(CONSTRAINTS))}
    wrong = statements(tables_of)
    finite = {name for name in tables_of if name.endswith("_finite_check")}  # column by column below
    assert wrong.keys() == tables_of.keys() - finite - TARGETS_OF_REFERENCES
    assert {name: refused_by(full, statement) for name, statement in wrong.items()} == {name: name for name in wrong}


def figures() -> Iterator[tuple[str, str]]:
    """Every column with a floating-point figure."""
    for table in tables.metadata.tables.values():
        for column in table.columns:
            if isinstance(column.type, Double) and column.computed is None:
                yield table.name, column.name


def test_no_figure_is_infinite_or_not_a_number(full: Database) -> None:
    assert len(list(figures())) > 60
    allowed = [
        (table, column, value)
        for table, column in figures()
        for value in ("NaN", "Infinity", "-Infinity")
        if refused_by(full, f"UPDATE {table} SET {column} = '{value}'") is None
    ]
    assert allowed == []
    readings = """jsonb_set(readings, '{state_before,power_limit_w}', '"Infinity"')"""
    assert refused_by(full, f"UPDATE telemetry SET readings = {readings}") == "telemetry_finite_check"


def test_nothing_refers_to_what_is_not_there(full: Database) -> None:
    assert [statement for statement in DANGLING if not (refused_by(full, statement) or "").endswith("_fk")] == []


def test_a_baseline_cannot_contradict_its_run(database: Database) -> None:
    other = run_record("other", device=CPU, payload=payload("other"))
    for record in (energy_run("manual__1"), other):
        load_run(database.writer, record, sha256_of(record))
    accept_baseline(database.writer, energy_run("manual__1").request.run_id, accepted_by="test", reason="for the test")
    assert [statement for statement in WRONG_BASELINES if refused_by(database, statement) is None] == []


def test_one_current_baseline_a_key_and_one_unresolved_alert_a_key(full: Database) -> None:
    again = """
        INSERT INTO baseline (workload, payload_id, device_id, protocol, environment_id, environment_class, run_id,
                              for_agreement, for_time, for_energy, energy_trust, accepted_by, reason)
        SELECT workload, payload_id, device_id, protocol, environment_id, environment_class, run_id,
               true, true, false, energy_trust, 'b', 'b' FROM baseline
    """
    assert refused_by(full, again) == "baseline_current_key"
    assert refused_by(full, ALERT) == "alert_unresolved_key"
    for state in ("acknowledged", "muted"):
        words = "acknowledged_by = 'a', acknowledged_reason = 'b', acknowledged_at = now()"
        until = "now() + interval '1 day'" if state == "muted" else "NULL"
        with full.admin.begin() as connection:
            connection.execute(text(f"UPDATE alert SET state = '{state}', {words}, muted_until = {until}"))
        assert refused_by(full, ALERT) == "alert_unresolved_key"
    for other in ("'lower'", "'missing'"):
        assert refused_by(full, ALERT.replace("'higher'", other)) is None
    with full.admin.begin() as connection:
        connection.execute(text("UPDATE alert SET state = 'resolved', resolved_at = now()"))
    assert refused_by(full, ALERT) is None


def test_a_night_is_missed_once_though_it_has_no_device(full: Database) -> None:
    missing = """
        INSERT INTO alert (workload, metric, direction, outcome, state, occurrences, text)
        VALUES ('qda', 'night', 'missing', 'infrastructure_failure', 'open', 1, 'no night by 06:00')
    """
    with full.writer.begin() as connection:
        connection.execute(text(missing))
    assert refused_by(full, missing) == "alert_unresolved_key"
    assert refused_by(full, missing.replace("'qda'", "'learner'")) is None


@pytest.mark.parametrize(
    ("scope", "for_energy", "allowed"), [("energy", "true", False), ("energy", "false", True), ("all", "false", False)]
)
def test_what_was_withdrawn_is_no_current_baseline(full: Database, scope: str, for_energy: str, allowed: bool) -> None:
    """Whichever of the two comes second is refused, by the database itself."""
    baseline = f"""
        INSERT INTO baseline (workload, payload_id, device_id, protocol, environment_id, environment_class, run_id,
                              for_agreement, for_time, for_energy, energy_trust, accepted_by, reason)
        SELECT workload, payload_id, device_id, protocol, environment_id, environment_class, run_id,
               true, true, {for_energy}, energy_trust, 'b', 'b' FROM run JOIN environment USING (environment_id)
        WHERE dag_run_id = 'withdrawn'
    """
    withdrawal = f"""
        INSERT INTO withdrawal (run_id, scope, withdrawn_by, reason)
        SELECT run_id, '{scope}', 'a', 'b' FROM run WHERE dag_run_id = 'withdrawn'
    """
    with full.admin.begin() as connection:
        connection.execute(text("UPDATE baseline SET retired_at = now()"))
        connection.execute(text("DELETE FROM withdrawal"))
    for first, second in ((baseline, withdrawal), (withdrawal, baseline)):
        with full.admin.connect() as connection:
            connection.execute(text(first))
            if allowed:
                connection.execute(text(second))
            else:
                with pytest.raises(DBAPIError, match="a current baseline for what was withdrawn"):
                    connection.execute(text(second))
