"""A run that tried a kernel as a file: imported, exported, brought back, and dropped in part when it is old."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from gpu_tasks.records import BadInput, ComparisonRecord, RunRecord, to_json
from regression.results import baseline_reports
from regression.results.exporting import kept_record
from regression.results.importing import candidate as importable
from regression.results.importing import import_records
from regression.results.judgements import keep_judgement
from regression.results.promotion import promote_run
from regression.results.rebuild import rebuild
from regression.results.record_checks import check_run
from regression.results.retention import retain
from regression.results.spool import load_record
from tests.integration.regression.databases import Database
from tests.integration.regression.example_comparisons import DIFFERING, candidate_run, timed, wrong_run
from tests.integration.regression.example_energy import energy_run
from tests.integration.regression.example_nights import asked
from tests.integration.regression.example_records import validation
from tests.integration.regression.natural import natural
from tests.integration.regression.test_promotion import tried
from tests.integration.regression.test_rebuild import other

__all__ = ["other"]


def lived_in(database: Database, folder: Path) -> None:
    """A candidate that was promoted, one that is wrong, and a night."""
    for record in (energy_run("a night"), candidate_run(), wrong_run()):
        load_record(database.writer, folder, record)
        if record.candidate:
            tried(database, record)
            with database.writer.begin() as connection:
                keep_judgement(connection, folder, record.request.run_id)
    promote_run(
        database.writer, candidate_run().request.run_id, promoted_by="ben", reason="a tenth less", records=folder
    )


def test_everything_of_it_comes_back(database: Database, other: Database, tmp_path: Path) -> None:
    lived_in(database, tmp_path)
    assert rebuild(other.writer, tmp_path).broken == []
    assert natural(other.writer) == natural(database.writer)
    for view in ("candidate_runs", "kernel_lineage"):
        statement = f"SELECT to_jsonb({view}) - 'baseline_id' FROM {view} ORDER BY started_at, run_id"
        assert asked(other, statement) == asked(database, statement) != []


def test_what_is_exported_makes_the_same_rows_elsewhere(database: Database, other: Database, tmp_path: Path) -> None:
    for record in (candidate_run(), wrong_run()):
        load_record(database.writer, tmp_path, record)
    with database.reader.connect() as connection:
        contents = [kept_record(connection, tmp_path, name) for name in ("tried__1", "wrong__1")]
    assert contents[0] == to_json(candidate_run()).encode()
    list(import_records(other.writer, tmp_path / "elsewhere", [importable(content, "x") for content in contents]))
    assert natural(other.writer) == natural(database.writer)


def test_a_record_of_before_there_were_candidates_is_read(database: Database, tmp_path: Path) -> None:
    import json

    fields = json.loads(to_json(energy_run()))
    for name in ("candidate", "comparison"):
        del fields[name]
    for name in ("candidate", "against", "blocks", "kernel_changed"):
        del fields["request"][name]
    list(import_records(database.writer, tmp_path, [importable(json.dumps(fields).encode(), "old.json")]))
    assert asked(database, "SELECT candidate, candidate_origin FROM run") == [(False, None)]
    assert asked(database, "SELECT count(*) FROM nightly") == [(1,)]


def compared(**changes: Any) -> Callable[[RunRecord], RunRecord]:
    return lambda record: replace(record, comparison=replace(_comparison(record), **changes))


def _comparison(record: RunRecord) -> ComparisonRecord:
    assert record.comparison
    return record.comparison


def first_turn(**changes: Any) -> Callable[[RunRecord], RunRecord]:
    return compared(turns=[replace(TURN, **changes)])


BLOCKS, ROUNDS = _comparison(candidate_run()).blocks, _comparison(candidate_run()).rounds
TURN = timed().turns[0]
CONTRADICTIONS: dict[str, Callable[[RunRecord], RunRecord]] = {
    r"\$\.comparison: expected none": lambda r: replace(r, candidate=None, request=replace(r.request, candidate=None)),
    r"\$\.candidate: expected none": lambda r: replace(r, request=replace(r.request, candidate=None)),
    r"\$\.comparison\.energy_trust: expected one of": compared(energy_trust="perhaps"),
    r"\$\.comparison\.validations: expected none": compared(validations=[validation(0)]),
    r"\$\.comparison\.emulated\[1\]\.draw: expected another": compared(emulated=[validation(3), validation(3)]),
    r"\$\.comparison\.pinned_validations\[0\]\.mismatches: expected 1": compared(
        pinned_validations=[validation(0, agreed=999)]
    ),
    r"\$\.comparison\.rounds\[0\]\.arm: expected 'comparison'": compared(rounds=[replace(ROUNDS[0], arm="candidate")]),
    r"\$\.comparison\.rounds\[0\]\.created_at": compared(rounds=[replace(ROUNDS[0], created_at="yesterday")]),
    r"\$\.comparison\.rounds\[1\]\.round: expected another": compared(rounds=[ROUNDS[0], ROUNDS[0]]),
    r"\$\.comparison\.rounds\[0\]\.repeats": compared(rounds=[replace(ROUNDS[0], repeats=0)]),
    r"\$\.comparison\.blocks\[0\]\.round: expected a round": compared(rounds=[ROUNDS[1]]),
    r"\$\.comparison\.blocks\[0\]\.valid: expected what its round says": compared(
        blocks=[replace(BLOCKS[0], valid=False)]
    ),
    r"\$\.comparison\.turns\[0\]\.round: expected 0 or more": first_turn(round=-1),
    r"\$\.comparison\.turns\[0\]\.block: expected 0 or more": first_turn(block=-1),
    r"\$\.comparison\.turns\[0\]\.arm: expected one of candidate, baseline": first_turn(arm="control"),
    r"\$\.comparison\.turns\[0\]\.repeats: expected 1 to": first_turn(repeats=0),
    r"\$\.comparison\.turns\[0\]\.active_s: expected more than 0": first_turn(active_s=0.0),
    r"\$\.comparison\.turns\[0\]\.device_ms: expected more than 0": first_turn(device_ms=-0.01),
    r"\$\.comparison\.blocks\[1\]\.block: expected another": compared(blocks=[BLOCKS[0], BLOCKS[0]]),
    r"\$\.comparison\.differing_total: expected 1 or more": compared(differing=list(DIFFERING), differing_total=0),
    r"\$\.comparison\.differing\[0\]\.frozen: expected another class": compared(
        differing=[replace(DIFFERING[0], candidate=2)], differing_total=1
    ),
    r"\$\.comparison\.differing\[1\]\.index: expected another": compared(differing=[*DIFFERING, *DIFFERING]),
    r"\$\.comparison\.reason: expected a reason": compared(outcome=wrong_run().outcome),
    r"\$\.comparison\.workload": compared(workload="learner"),
    r"\$\.candidate\.workload": lambda r: replace(
        r, candidate=r.candidate and replace(r.candidate, workload="learner")
    ),
    r"\$\.rounds\[7\]\.arm: expected another than": lambda r: replace(r, rounds=[*r.rounds, ROUNDS[0]]),
}


@pytest.mark.parametrize("expected", CONTRADICTIONS)
def test_a_file_that_contradicts_itself_is_refused_with_its_field(expected: str) -> None:
    for fine in (candidate_run(), wrong_run(), candidate_run(compared=timed())):
        check_run(fine, "run.json")
    with pytest.raises(BadInput, match=rf"^run\.json: {expected}"):
        check_run(CONTRADICTIONS[expected](candidate_run()), "run.json")


def test_rounds_go_when_they_are_old_and_what_was_seen_of_the_two_kernels_stays(
    database: Database, tmp_path: Path
) -> None:
    lived_in(database, tmp_path)
    for record in (energy_run("of another"), candidate_run("another")):
        load_record(database.writer, tmp_path, record)
    with database.owner.begin() as connection:
        connection.execute(text("UPDATE run SET started_at = started_at - interval '10 years'"))
        connection.execute(text("UPDATE run SET completed_at = started_at + interval '5 minutes'"))
    views = "SELECT to_jsonb(candidate_runs) FROM candidate_runs ORDER BY run_id"
    before = asked(database, views), asked(database, "SELECT count(*) FROM comparison_block")
    dropped = {entry.table: entry.rows for entry in retain(database.owner, "90d", "2y", dry_run=False)}
    assert dropped["round"] == 7 + 7 + 9, "those of the promoted run stay, whatever they are of"
    assert asked(database, "SELECT arm, count(*) FROM round GROUP BY arm ORDER BY arm") == [
        ("candidate", 7),
        ("comparison", 2),
    ]
    assert (asked(database, views), asked(database, "SELECT count(*) FROM comparison_block")) == before
    with database.reader.connect() as connection:
        assert len(baseline_reports.rounds_of(connection, candidate_run().request.run_id)) == 7
