"""The generated history of the benchmark is of the rows that the loader writes, and the same from the same seed."""

from __future__ import annotations

import random

from sqlalchemy import text

from regression.results.loading import load_run
from tests.benchmarks.history_asked import VIEWS_BY_RUN
from tests.benchmarks.history_night import night
from tests.benchmarks.history_rows import generate
from tests.benchmarks.history_story import story
from tests.integration.regression.databases import Database
from tests.integration.regression.example_records import sha256_of

BOARDS, NIGHTS, SEED = 3, 20, 5
TABLES = ("run", "validation", "round", "round_energy", "run_energy", "telemetry", "telemetry_gate")
KNOWN_LATER = {"verdict", "exit_code"}


def test_generated_rows_have_what_loaded_ones_have(database: Database) -> None:
    made = generate(database.writer, BOARDS, NIGHTS, SEED, lambda _: None)
    loaded = night("loaded")
    load_run(database.writer, loaded, sha256_of(loaded))
    with database.reader.connect() as connection:
        (example,) = connection.execute(
            text("SELECT run_id FROM nightly WHERE verdict = 'ok' AND rounds_valid = 7 ORDER BY started_at LIMIT 1")
        ).scalars()
        for table in TABLES:
            count = connection.execute(
                text(f"SELECT count(*) FROM {table} WHERE run_id <> :run"), {"run": loaded.request.run_id}
            ).scalar_one()
            assert count == made.rows[table] > 0
            filled = [
                sorted(
                    tuple(name for name, value in row.items() if value is not None and name not in KNOWN_LATER)
                    for row in connection.execute(
                        text(f"SELECT * FROM {table} WHERE run_id = :run"), {"run": run}
                    ).mappings()
                )
                for run in (example, loaded.request.run_id)
            ]
            assert filled[0] == filled[1], table
        for view in VIEWS_BY_RUN:
            assert connection.execute(text(f"SELECT count(*) FROM {view}")).scalar_one() > 0


def test_a_seed_makes_one_history() -> None:
    histories = [list(story(BOARDS, NIGHTS, random.Random(seed))) for seed in (SEED, SEED, SEED + 1)]
    assert histories[0] == histories[1] != histories[2]
    runs = [run for _, of_night in histories[0] for run in of_night]
    assert len({run.run_id for run in runs}) == len(runs)
    assert 0.95 < len(runs) / (BOARDS * NIGHTS) < 1.2
