"""A results database with rows in every table, as the programs write them."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from regression.results import tables
from regression.results.baselines import accept_baseline
from regression.results.loading import load_run
from regression.results.withdrawals import withdraw_run
from tests.integration.regression.databases import Database
from tests.integration.regression.example_comparisons import DIFFERING, candidate_run, comparison
from tests.integration.regression.example_energy import energy_run
from tests.integration.regression.example_learner import learner_run
from tests.integration.regression.example_records import sha256_of

ALERT = """
    INSERT INTO alert (workload, device_id, metric, direction, outcome, state, first_run_id, last_run_id, occurrences,
                       value, baseline_value, unit, baseline_id, text)
    SELECT workload, device_id, 'adjusted_energy_per_replay', 'higher', 'regression', 'open', run_id, run_id, 1,
           0.66, 0.6, 'mJ', baseline_id, 'adjusted energy is 10 % higher'
    FROM baseline
"""
STATEMENTS = (
    """
    INSERT INTO check_result (run_id, check_name, step, verdict, metric, unit, value, baseline_value, baseline_low,
                              baseline_high, reason_code, reason, details)
    SELECT run_id, 'energy', 0, 'ok', 'adjusted_energy_per_replay', 'mJ', 0.6, 0.6, 0.59, 0.61, 'within_spread', 'fine',
           '{}' FROM baseline
    """,
    ALERT,
    "INSERT INTO alert_event (alert_id, event, author, text) SELECT alert_id, 'opened', 'a', 'b' FROM alert",
)


def fill(database: Database) -> None:
    """A baseline, a run with energy withdrawn, one of which a gate failed, a candidate, one that trains; an alert."""
    records = energy_run("manual__1"), energy_run("withdrawn"), energy_run("failed", failed=["sham_window"])
    records += (
        candidate_run("tried", comparison(differing=list(DIFFERING), differing_total=1)),
        learner_run("learner"),
    )
    for record in records:
        load_run(database.writer, record, sha256_of(record))
    first, second = records[0].request.run_id, records[1].request.run_id
    accept_baseline(database.writer, first, accepted_by="test", reason="for the test")
    words = {"withdrawn_by": "test", "reason": "for the test", "figures": "0.6 mJ, truly 0.7 mJ"}
    withdraw_run(database.writer, second, scope="energy", successor_run_id=first, **words)
    with database.writer.begin() as connection:
        for statement in STATEMENTS:
            connection.execute(text(statement))
    with database.admin.connect() as connection:
        counts = {
            name: connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one()
            for name in tables.metadata.tables
        }
    assert min(counts.values()) > 0, counts


@pytest.fixture
def full(database: Database) -> Database:
    """The newest schema with rows in every table."""
    fill(database)
    return database
