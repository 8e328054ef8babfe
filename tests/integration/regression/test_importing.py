"""Importing record files: all or nothing, with file and field, and never twice."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from gpu_tasks.records import MAX_SEED, BadInput, InfrastructureFailure, RunRecord, read_record_bytes, to_json
from regression.results import spool
from regression.results.importing import Candidate, candidate, import_records
from regression.results.outcome import settle_verdict
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import energy_run
from tests.integration.regression.example_records import measured, run_record, validation
from tests.integration.regression.test_loading import everything, files

Fields = dict[str, Any]


def of(record: RunRecord, source: str = "a.json") -> Candidate:
    return candidate(to_json(record).encode(), source)


def imported(database: Database, folder: Path, *candidates: Candidate) -> list[str]:
    return [done.result.status.value for done in import_records(database.writer, folder, candidates)]


def test_what_is_imported_is_kept_like_any_other_record_in_its_own_words(database: Database, tmp_path: Path) -> None:
    words = json.dumps(json.loads(to_json(energy_run())), indent=None).encode()  # other white space
    (done,) = import_records(database.writer, tmp_path, [candidate(words, "a.json")])
    assert (done.result.status.value, done.source) == ("stored", "a.json")
    run_id = done.record.request.run_id
    assert spool.kept(tmp_path, run_id).read_bytes() == words
    assert done.result.rows == {
        **{"run": 1, "validation": 11, "round": 7, "round_energy": 21, "round_trace": 7, "run_energy": 3},
        **{"telemetry": 2, "telemetry_trace": 2, "telemetry_gate": len(energy_run().gates)},
    }
    stored = everything(database)
    assert {table: len(stored[table]) for table in done.result.rows} == done.result.rows


def test_the_same_record_again_changes_nothing_whatever_its_white_space(database: Database, tmp_path: Path) -> None:
    assert imported(database, tmp_path, of(run_record())) == ["stored"]
    before, kept = everything(database), files(tmp_path)
    other_words = json.dumps(json.loads(to_json(run_record()))).encode()
    for again in (of(run_record()), candidate(other_words, "b.json")):
        assert imported(database, tmp_path, again) == ["unchanged"]
        assert (everything(database), files(tmp_path)) == (before, kept)


def test_a_judged_run_that_comes_again_in_other_words_is_unchanged(database: Database, tmp_path: Path) -> None:
    imported(database, tmp_path, of(run_record()))
    with database.writer.begin() as connection:
        settle_verdict(connection, "nightly_qda", "manual__1", ())
    other_words = json.dumps(json.loads(to_json(run_record()))).encode()
    assert imported(database, tmp_path, candidate(other_words, "b.json")) == ["unchanged"]
    with pytest.raises(BadInput, match=r"^c\.json: run .* was judged inconclusive on another record"):
        imported(database, tmp_path, of(run_record(energies=[0.7] * 7), "c.json"))


def test_one_refused_file_keeps_the_others_out(database: Database, tmp_path: Path) -> None:
    before = everything(database)
    provision = run_record().provision
    nameless = replace(provision, device=replace(provision.device, uuid=""))
    impossible = of(run_record("b", provision=nameless), "b.json")  # nothing but the database objects
    with pytest.raises(BadInput) as caught:
        imported(database, tmp_path, of(run_record("a")), impossible)
    assert caught.value.code == "record_refused"
    assert caught.value.message.startswith("b.json: ")
    assert (everything(database), files(tmp_path)) == (before, set())


def test_two_files_of_one_run_must_say_the_same(database: Database, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^b\.json: \$\.request\.run_id: .*in a\.json") as caught:
        imported(database, tmp_path, of(run_record()), of(run_record(energies=[0.7] * 7), "b.json"))
    assert caught.value.code == "same_run_twice"
    assert files(tmp_path) == set()
    assert imported(database, tmp_path, of(run_record()), of(run_record(), "b.json")) == ["stored", "unchanged"]


def test_while_the_database_is_away_nothing_is_kept(tmp_path: Path) -> None:
    away = create_engine("postgresql+psycopg2://nobody:x@127.0.0.1:1/none")
    with pytest.raises(InfrastructureFailure):
        list(import_records(away, tmp_path, [of(run_record())]))
    assert files(tmp_path) == set()


def changed(change: Callable[[Fields], Any], record: RunRecord | None = None) -> bytes:
    fields: Fields = json.loads(to_json(record or run_record()))
    change(fields)
    return json.dumps(fields).encode()


def put(path: str, value: Any) -> Callable[[Fields], Any]:
    def change(fields: Fields) -> None:
        *parents, last = path.split(".")
        at: Any = fields
        for name in parents:
            at = at[int(name) if name.isdecimal() else name]
        at[int(last) if last.isdecimal() else last] = value

    return change


def twice(path: str) -> Callable[[Fields], Any]:
    def change(fields: Fields) -> None:
        fields[path].append(fields[path][0])

    return change


NEWER = (
    "$.format: expected 'kernel-nightly/1', found 'kernel-nightly/2', of another version of Kernel Nightly, "
    "which has to read it"
)
WRONG: list[tuple[Callable[[Fields], Any], str, str]] = [
    (put("format", "kernel-nightly/2"), "other_format", NEWER),
    (put("format", "other/1"), "other_format", "$.format"),
    (put("format", None), "other_format", "$.format"),
    (put("kind", "round"), "bad_record", "$.kind: expected 'run'"),
    (put("surprise", 1), "bad_record", "$.surprise: expected no such field"),
    (put("rounds.2.adjusted_uj", 0.6), "bad_record", "$.rounds[2].adjusted_uj: expected no such field"),
    (lambda fields: fields["rounds"][1].pop("repeats"), "bad_record", "$.rounds[1].repeats: expected a value"),
    (put("rounds.1.repeats", "1000"), "bad_record", "$.rounds[1].repeats: expected an integer"),
    (put("rounds.0.cuda_ms", math.nan), "bad_record", "$.rounds[0].cuda_ms: expected a finite number, found NaN"),
    (put("provenance", {"a": [math.inf]}), "bad_record", "$.provenance.a[0]: expected a finite number, found Infinity"),
    (put("request.note", "a\0b"), "bad_record", "$.request.note: expected text without NUL characters"),
    (put("request.dag_run_id", "\ud800"), "bad_record", "$.request.dag_run_id: expected text that UTF-8 can express"),
    (put("request.dag_run_id", "x" * 251), "bad_run_id", "$.request.dag_run_id: expected 1 to 250"),
    *(
        (put("request.seed", seed), "record_contradicts_itself", "$.request.seed: expected 0 to 4294967295, found")
        for seed in (-1, MAX_SEED + 1, 2**63)
    ),
    (put("provenance", {"a": {"b": "\0"}}), "bad_record", "$.provenance.a.b: expected text without NUL characters"),
    (put("provenance", {"a\0": 1}), "bad_record", "$.provenance: expected text without NUL characters"),
    (put("started_at", "2026-11-30T02:00:00"), "naive_time", "$.started_at: expected a time with a UTC offset"),
    (put("rounds.3.created_at", "2026-11-30T02:00:00"), "naive_time", "$.rounds[3].created_at"),
    (put("request.logical_date", "tomorrow"), "bad_time", "$.request.logical_date"),
    (put("completed_at", "2026-11-30T01:00:00Z"), "record_contradicts_itself", "$.completed_at"),
    (put("request.run_id", run_record("other").request.run_id), "bad_run_id", "$.request.run_id: expected "),
    (put("request.dag_run_id", "other"), "bad_run_id", "$.request.run_id"),
    (put("request.trigger", "moon"), "record_contradicts_itself", "$.request.trigger: expected one of scheduled"),
    (put("energy_trust", "perhaps"), "record_contradicts_itself", "$.energy_trust"),
    (put("provision.device.kind", "tpu"), "record_contradicts_itself", "$.provision.device.kind"),
    (put("rounds.0.protocol", "hasty"), "record_contradicts_itself", "$.rounds[0].protocol"),
    (put("rounds.0.workload", "learner"), "record_contradicts_itself", "$.rounds[0].workload"),
    (put("outcome", "regression"), "record_contradicts_itself", "$.reason"),
    (put("validations.4.agreed", 1001), "record_contradicts_itself", "$.validations[4].agreed: expected at most 1000"),
    (put("validations.4.agreed", 999), "record_contradicts_itself", "$.validations[4].mismatches: expected 1 of them"),
    (put("validations.4.device_correct", 1001), "record_contradicts_itself", "$.validations[4].device_correct"),
    (put("validations.4.reference_correct", -1), "record_contradicts_itself", "$.validations[4].reference_correct"),
    (put("validations.4.total", -5), "record_contradicts_itself", "$.validations[4].total: expected 0 or more"),
    (put("validations.4.total", None), "record_contradicts_itself", "$.validations[4].total"),
    (put("validations.4.draw", 3), "record_contradicts_itself", "$.validations[4].draw: expected another one"),
    (put("validations.4.draw", -1), "record_contradicts_itself", "$.validations[4].draw: expected 0 or more"),
    (twice("rounds"), "record_contradicts_itself", "$.rounds[7].round: expected another one than before"),
    (put("rounds.5.round", -1), "record_contradicts_itself", "$.rounds[5].round"),
    (put("rounds.5.repeats", -1000), "record_contradicts_itself", "$.rounds[5].repeats: expected 1 or more"),
    (put("rounds.5.repeats", 2**70), "record_contradicts_itself", "$.rounds[5].repeats"),
    (put("rounds.5.wall_ms", 0.0), "record_contradicts_itself", "$.rounds[5].wall_ms"),
    (put("rounds.5.valid", False), "record_contradicts_itself", "$.rounds[5].reason"),
    (put("rounds.5.outcome", "invalid_measurement"), "record_contradicts_itself", "$.rounds[5].reason"),
    (put("summary.agreed", 10_999), "record_contradicts_itself", "$.summary.agreed: expected 11000"),
    (put("summary.rounds_valid", 6), "record_contradicts_itself", "$.summary.rounds_valid: expected 7"),
    (put("summary.draws_expected", 12), "record_contradicts_itself", "$.summary.draws_expected: expected 11"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "code", "told"), WRONG)
def test_a_file_that_contradicts_itself_is_refused_by_field(
    change: Callable[[Fields], Any], code: str, told: str
) -> None:
    with pytest.raises(BadInput) as caught:
        candidate(changed(change), "folder/a.json")
    assert (caught.value.code, caught.value.outcome.exit_code) == (code, 2)
    assert caught.value.message.startswith(f"folder/a.json: {told}"), caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "record_not_json"),
        (to_json(run_record()).encode()[:-300], "record_not_json"),
        (to_json(run_record()).replace("0.0164", "NaN").encode(), "bad_record"),
        (to_json(run_record()).replace("0.0164", "Infinity").encode(), "bad_record"),
        (b'{"kind": "run", "kind": "run"}', "record_not_json"),
        (b'{"a":' * 50_000, "record_not_json"),
        (b"\xff\xfe{}", "record_not_utf8"),
        (b"[]", "bad_record"),
        (b"7", "bad_record"),
    ],
)
def test_what_is_no_record_is_refused(content: bytes, code: str) -> None:
    with pytest.raises(BadInput) as caught:
        candidate(content, "a.json")
    assert caught.value.code == code
    assert caught.value.message.startswith("a.json: ")


def test_a_file_too_large_to_be_a_record_is_not_even_read(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as stream:
        stream.truncate(100 * 1024 * 1024)
    with pytest.raises(BadInput, match=r"large\.json: size: expected at most 16777216 bytes, found 104857600"):
        read_record_bytes(path)


@pytest.mark.parametrize(
    "record",
    [
        run_record(),
        energy_run(),
        energy_run(failed=["sham_window"]),
        run_record(rounds=[]),
        run_record(validations=[]),
        replace(run_record(), provision=None),
        run_record(rounds=[measured(1), measured(1, arm="baseline")]),
        run_record(validations=[validation(3)]),
    ],
)
def test_records_of_whole_and_of_broken_runs_contradict_nothing(record: RunRecord) -> None:
    expected = replace(
        record.request, draws=list(range(record.summary.draws_expected)), rounds=record.summary.rounds_expected
    )
    assert of(replace(record, request=expected)).record.outcome is record.outcome


def test_an_import_waits_for_no_reader_and_leaves_what_waits_in_order(database: Database, tmp_path: Path) -> None:
    """A record that waits is loaded first, as with every load."""
    spool.keep_record(run_record("older"), tmp_path)
    imported(database, tmp_path, of(run_record("newer")))
    with database.reader.connect() as connection:
        loaded = connection.execute(text("SELECT dag_run_id FROM run ORDER BY loaded_at")).scalars().all()
    assert loaded == ["older", "newer"]
