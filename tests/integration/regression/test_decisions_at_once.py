"""Decisions about baselines that people make at the same time: each stands or is refused in words, none is half."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import text

from gpu_tasks.records import BadInput
from regression.results.baselines import _accept, _acceptable_run, accept_baseline, retire_baseline
from regression.results.decisions import files, keep_decisions
from regression.results.loading import load_run
from regression.results.withdrawals import withdraw_run
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import energy_run
from tests.integration.regression.example_nights import asked
from tests.integration.regression.example_records import sha256_of

SAID = "meant"
NAMES = ("one", "two", "three", "four")


def at_once(database: Database, *decisions: Callable[[], object]) -> list[BadInput]:
    """Make the decisions when all of them wait for the same lock; returns the refusals, anything else fails."""
    refused: list[BadInput] = []
    failed: list[BaseException] = []

    def make(decide: Callable[[], object]) -> None:
        try:
            decide()
        except BadInput as error:
            refused.append(error)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=make, args=(decide,)) for decide in decisions]
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid()")
    with database.admin.begin() as holder, database.admin.connect() as watching:
        holder.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('baseline', 0))"))
        holder.execute(text("LOCK TABLE baseline IN SHARE MODE"))
        for number, thread in enumerate(threads, start=1):
            thread.start()
            while watching.execute(waiting).scalar_one() < number:
                pass
    for thread in threads:
        thread.join(30)
    assert failed == []
    return refused


def run_ids(database: Database, *names: str) -> list[str]:
    records = [energy_run(name) for name in names]
    for record in records:
        load_run(database.writer, record, sha256_of(record))
    return [record.request.run_id for record in records]


def test_of_acceptances_at_once_all_are_kept_and_one_is_current(database: Database, tmp_path: Path) -> None:
    found = run_ids(database, *NAMES)
    decide = [
        lambda run_id=run_id: accept_baseline(database.writer, run_id, accepted_by="ann", reason=SAID, records=tmp_path)
        for run_id in found
    ]
    assert at_once(database, *decide) == []
    assert asked(database, "SELECT count(*), count(retired_at), count(DISTINCT run_id) FROM baseline") == [(4, 3, 4)]
    keep_decisions(database.writer, tmp_path)
    assert len(files(tmp_path)) == 4 + 3


def test_who_began_first_and_decides_last_is_the_last(database: Database) -> None:
    """Its transaction is older than the decision before it."""
    first, second = run_ids(database, "one", "two")
    with database.writer.begin() as early:
        early.execute(text("SELECT now()"))
        accept_baseline(database.writer, first, accepted_by="bob", reason=SAID)
        run = _acceptable_run(early, second)
        purposes = {"for_agreement": True, "for_time": True, "for_energy": None}
        _accept(early, run, {"accepted_by": "ann", "reason": SAID, **purposes})
    statement = "SELECT run_id::text, retired_at IS NULL FROM baseline ORDER BY accepted_at"
    assert asked(database, statement) == [(first, False), (second, True)]


def test_a_clock_that_is_behind_changes_no_order(database: Database) -> None:
    (run_id,) = run_ids(database, "one")
    for _ in range(3):
        accept_baseline(database.writer, run_id, accepted_by="ann", reason=SAID)
        with database.admin.begin() as connection:
            later = "UPDATE baseline SET accepted_at = accepted_at + interval '1 day' WHERE retired_at IS NULL"
            connection.execute(text(later))
    retire_baseline(database.writer, run_id, retired_by="bob", reason=SAID)
    rows = asked(database, "SELECT accepted_at, retired_at FROM baseline ORDER BY baseline_id")
    assert [accepted for accepted, _ in rows] == sorted({accepted for accepted, _ in rows})
    assert all(accepted <= retired for accepted, retired in rows)


def test_what_is_withdrawn_while_it_is_accepted_is_no_baseline(database: Database) -> None:
    (run_id,) = run_ids(database, "one")
    decide = [
        lambda: withdraw_run(database.writer, run_id, scope="all", withdrawn_by="bob", reason="the fan"),
        lambda: accept_baseline(database.writer, run_id, accepted_by="ann", reason=SAID),
    ]
    for order in (decide, decide[::-1]):
        with database.admin.begin() as connection:
            connection.execute(text("TRUNCATE baseline, withdrawal CASCADE"))
        refused = at_once(database, *order)
        assert {error.code for error in refused} <= {"run_withdrawn"}
        assert asked(database, "SELECT count(*) FROM baseline WHERE retired_at IS NULL") == [(0,)]
        assert asked(database, "SELECT count(*) FROM withdrawal") == [(1,)]


def test_one_baseline_is_ended_once_by_whoever_is_first(database: Database) -> None:
    first, second = run_ids(database, "one", "two")
    accept_baseline(database.writer, first, accepted_by="ann", reason=SAID)
    refused = at_once(
        database,
        lambda: retire_baseline(database.writer, first, retired_by="bob", reason=SAID),
        lambda: retire_baseline(database.writer, first, retired_by="cem", reason=SAID),
        lambda: accept_baseline(database.writer, second, accepted_by="ann", reason=SAID),
    )
    assert {error.code for error in refused} == {"no_baseline"}
    assert asked(database, "SELECT count(*), count(retired_at) FROM baseline") == [(2, 1)]
