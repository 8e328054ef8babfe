"""Retention: what goes, what stays whatever its age, and that a dry run changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from gpu_tasks.records import BadInput, RunRecord
from regression.results.baselines import accept_baseline, retire_baseline
from regression.results.retention import Dropped, retain
from regression.results.spool import load_record
from tests.integration.regression.databases import Database, one
from tests.integration.regression.example_energy import INVALID, energy_round, energy_run
from tests.integration.regression.example_records import measured, run_record
from tests.integration.regression.natural import natural
from tests.integration.regression.test_rebuild import night

ALL = ("round_trace", "telemetry_trace", "round_energy", "round")


def aged(days: int, make: Any = energy_run, **changes: Any) -> RunRecord:
    """A run that began so many days ago."""
    moment = datetime.now(UTC) - timedelta(days=days)
    times = {
        "started_at": moment.isoformat().replace("+00:00", "Z"),
        "completed_at": (moment + timedelta(hours=1)).isoformat().replace("+00:00", "Z"),
    }
    return make(f"{days}-days-ago", **changes, **times)  # type: ignore[no-any-return]


def counts(database: Database) -> dict[str, dict[str, int]]:
    """Rows of each table by run."""
    found: dict[str, dict[str, int]] = {}
    with database.reader.connect() as connection:
        for table in (*ALL, "run_energy", "validation", "check_result", "telemetry", "telemetry_gate"):
            rows = connection.execute(
                text(f"SELECT dag_run_id, count(*) FROM {table} JOIN run USING (run_id) GROUP BY dag_run_id")
            )
            for name, count in rows:
                found.setdefault(name, {})[table] = count
    return found


def gone(dropped: list[Dropped]) -> dict[str, int]:
    return {entry.table: entry.rows for entry in dropped}


@pytest.fixture
def history(database: Database, tmp_path: Path) -> Database:
    """Nights of 10, 100, 800 and 900 days ago; that of 900 is the baseline."""
    for days in (10, 100, 800, 900):
        night(database, tmp_path, aged(days))
    accept_baseline(database.writer, aged(900).request.run_id, accepted_by="ann", reason="fine")
    return database


def test_traces_go_first_and_rounds_later_and_nothing_else(history: Database) -> None:
    before = counts(history)
    dropped = retain(history.owner, "90d", "2y", dry_run=False)
    assert gone(dropped) == {"round_trace": 21, "telemetry_trace": 6, "round_energy": 21, "round": 7}
    assert all(entry.bytes > 0 for entry in dropped)
    after = counts(history)
    assert after["10-days-ago"] == before["10-days-ago"]
    for name in ("100-days-ago", "900-days-ago"):  # the baseline keeps its rounds whatever its age
        assert after[name] == {k: n for k, n in before[name].items() if "trace" not in k}
    assert after["800-days-ago"] == {k: n for k, n in before["800-days-ago"].items() if k not in ALL}
    assert gone(retain(history.owner, "90d", "2y", dry_run=False)) == dict.fromkeys(ALL, 0)


def test_a_dry_run_says_the_same_and_changes_nothing(history: Database) -> None:
    before = natural(history.writer)
    told = retain(history.owner, "12w", "2y", dry_run=True)
    assert natural(history.writer) == before
    assert retain(history.owner, "12w", "2y", dry_run=False) == told


def test_the_figures_of_a_night_stay_when_its_rounds_go(history: Database) -> None:
    figures = "SELECT count(*) AS figures, min(rounds) AS rounds FROM run_energy JOIN run USING (run_id)"
    night_row = "SELECT adjusted_mj_median, adjusted_mj_min, adjusted_mj_max, verdict FROM nightly"
    before = [one(history, f"{q} WHERE dag_run_id = '800-days-ago'") for q in (figures, night_row)]
    retain(history.owner, "90d", "2y", dry_run=False)
    assert [one(history, f"{q} WHERE dag_run_id = '800-days-ago'") for q in (figures, night_row)] == before
    assert before[0] == {"figures": 3, "rounds": 7}


def test_rounds_without_a_summary_get_one_before_they_go(database: Database, tmp_path: Path) -> None:
    """Runs of the first version have energies in their rounds and no row in run_energy."""
    load_record(database.writer, tmp_path, aged(800, run_record, energies=[0.5, 0.6, 0.7]))
    load_record(database.writer, tmp_path, aged(801, run_record, energies=[None] * 7))  # no counter: nothing to sum up
    load_record(database.writer, tmp_path, aged(802, run_record, energies=[0.5]))
    retain(database.owner, "90d", "2y", dry_run=False)
    with database.reader.connect() as connection:
        rolled = connection.execute(
            text(
                "SELECT dag_run_id, figure, subject, rounds, median_mj, min_mj, max_mj, sample_sd_mj "
                "FROM run_energy JOIN run USING (run_id) ORDER BY dag_run_id"
            )
        ).all()
        left = connection.execute(text("SELECT count(*) FROM round")).scalar_one()
    assert left == 0
    assert [tuple(row) for row in rolled] == [
        ("800-days-ago", "classic", "candidate", 3, 0.6, 0.5, 0.7, pytest.approx(0.1)),
        ("802-days-ago", "classic", "candidate", 1, 0.5, 0.5, 0.5, None),
    ]


def test_invalid_rounds_stay_out_of_what_is_rolled_up(database: Database, tmp_path: Path) -> None:
    rounds = [energy_round(0, 0.6), energy_round(1, 0.7), energy_round(2, 99.0, **INVALID)]
    load_record(database.writer, tmp_path, aged(800, rounds=rounds))
    before = one(database, "SELECT max(max_mj) AS largest FROM run_energy")
    assert before["largest"] < 1
    retain(database.owner, "90d", "2y", dry_run=False)
    assert one(database, "SELECT max(max_mj) AS largest FROM run_energy") == before


def test_a_baseline_that_was_retired_keeps_its_rounds_too(history: Database) -> None:
    retire_baseline(history.writer, aged(900).request.run_id, retired_by="ann", reason="old")
    retain(history.owner, "1d", "1d", dry_run=False)
    assert counts(history)["900-days-ago"]["round"] == 7
    assert "round" not in counts(history)["10-days-ago"]


def test_what_was_dropped_does_not_come_back_with_the_next_load(database: Database, tmp_path: Path) -> None:
    record = aged(800)
    load_record(database.writer, tmp_path, record)
    retain(database.owner, "90d", "2y", dry_run=False)
    assert load_record(database.writer, tmp_path, record).status.value == "unchanged"
    assert one(database, "SELECT count(*) AS rounds FROM round") == {"rounds": 0}


def test_the_writer_may_not_drop_what_was_judged(history: Database) -> None:
    before = natural(history.writer)
    with pytest.raises(Exception, match="judged, its record cannot be changed"):
        retain(history.writer, "90d", "2y", dry_run=False)
    assert natural(history.writer) == before


@pytest.mark.parametrize(
    "given", ["", "90", "d", "0d", "-1d", "90 d", "90m", "1e3d", "99999d", "10000y", "90d; DROP TABLE run", "९d"]
)
def test_what_is_no_age_is_refused(database: Database, given: str) -> None:
    with pytest.raises(BadInput, match=r"^traces-after: expected a time such as 90d, 12w or 2y") as caught:
        retain(database.owner, given, "2y", dry_run=True)
    assert caught.value.code == "bad_span"


@pytest.mark.parametrize(("given", "older", "younger"), [("3d", 4, 2), ("1w", 8, 6), ("1y", 367, 363)])
def test_ages_are_days_weeks_and_years(
    database: Database, tmp_path: Path, given: str, older: int, younger: int
) -> None:
    for age in (older, younger):
        load_record(database.writer, tmp_path, aged(age, run_record, rounds=[measured(0)]))
    retain(database.owner, "90d", given, dry_run=False)
    with database.reader.connect() as connection:
        left = connection.execute(text("SELECT dag_run_id FROM round JOIN run USING (run_id)")).scalars().all()
    assert left == [f"{younger}-days-ago"]
