"""What a workload that trains leaves in the database, and how it comes back: rows, views, files, and no other run's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from gpu_tasks.records import BadInput, LibrarySetting, Outcome, Reason, RunRecord, Storage, read_record_bytes, to_json
from regression.results import spool
from regression.results.exporting import kept_record
from regression.results.importing import candidate, import_records
from regression.results.loading import load_run
from regression.results.migrate import upgrade
from regression.results.rebuild import rebuild
from regression.results.record_checks import check_run
from regression.results.retention import retain
from tests.integration.regression.databases import Database, one
from tests.integration.regression.example_learner import (
    DAG,
    PROFILE,
    SETTINGS,
    STATES,
    cpu_memory,
    inventory,
    learner_run,
    memory,
    not_asked,
    qualification,
    state_validation,
    states,
    trial_round,
)
from tests.integration.regression.example_nights import asked, night, store
from tests.integration.regression.example_records import CPU, digest, sha256_of

ORIGINALS = Path(__file__).resolve().parents[3] / "gpu_tasks" / "baselines"
PARTS = ("run_setting", "qualification", "qualification_case", "task_memory", "memory_storage", "memory_tensor")


def rows(database: Database, table: str, order: str = "1") -> list[Any]:
    return [row for (row,) in asked(database, f"SELECT to_jsonb(t) - 'run_id' FROM {table} AS t ORDER BY {order}")]


def test_every_part_has_its_row_with_every_figure(database: Database) -> None:
    record = learner_run()
    store(database, record)
    looked, qualified = record.memory, record.qualification
    assert looked and looked.memory and looked.inventory and qualified
    assert rows(database, "run_setting", "name DESC") == [asdict(setting) for setting in SETTINGS]
    (found,) = rows(database, "qualification")
    assert {name: found[name] for name in ("checks", "captured", "tolerance")} == {
        **{"checks": 212, "captured": True, "tolerance": {"atol": 2e-5, "rtol": 3e-3}}
    }
    cases = [{"case_name" if k == "name" else k: v for k, v in asdict(case).items()} for case in qualified.cases]
    assert rows(database, "qualification_case", "case_name") == cases
    (found,) = rows(database, "task_memory")
    assert {name: found[name] for name in asdict(looked.memory)} == asdict(looked.memory)
    assert (found["named_storage_bytes"], found["unassigned_bytes"]) == (332_000, 14_237_696 - 332_000)
    assert (found["state_hashes"], found["hashes_matched"], found["profile"]) == (
        *(states(), list(STATES), asdict(PROFILE)),
    )
    assert (found["cache_bytes"], found["invocations"], found["predictions_file"]) == (41_943_040, 5, "predictions.npy")
    assert rows(database, "memory_storage", "storage_id") == [asdict(s) for s in looked.inventory.unique_storages]
    tensors = sorted(looked.inventory.named_tensors, key=lambda tensor: tensor.name)
    assert rows(database, "memory_tensor", "name") == [asdict(tensor) for tensor in tensors]
    draw = one(database, "SELECT * FROM validation WHERE draw = 1")
    assert (draw["state_hashes"], draw["replay_states_equal"]) == (states(1), [True] * 3)
    names = ("name", "expected_sha256", "found_sha256")
    grid = digest("grid", 1)
    assert [draw[f"reference_state_{name}"] for name in names] == ["state_grid_sha256", grid, grid]
    trials = asked(database, "SELECT calibration_ms, figure, count(*) FROM round JOIN round_energy USING (run_id, arm, "
                   "round) GROUP BY 1, 2 ORDER BY 2")  # fmt: skip
    assert trials == [(38.45, "aligned", 3), (38.45, "trial", 3)]
    figures = asked(database, "SELECT median_mj, rounds FROM run_energy WHERE figure = 'trial'")
    assert figures == [(1069.0, 3)]


def test_what_could_not_be_had_is_null_with_its_reason(database: Database) -> None:
    store(database, learner_run("cpu", device=CPU, memory=cpu_memory(), qualification=not_asked(), settings=[]))
    found = one(database, "SELECT * FROM task_memory")
    assert [value for name, value in found.items() if name.endswith(("prepare_bytes", "invoke_bytes"))] == [None] * 5
    assert (found["memory_reason_code"], found["cache_reason_code"], found["profile_reason_code"]) == (
        *("no_allocator", "no_allocator", "not_asked"),
    )
    assert (found["allocator_allocated_bytes"], found["unassigned_bytes"], found["named_storage_bytes"]) == (
        *(None, None, 332_000),
    )
    assert asked(database, "SELECT profile IS NULL, state_hashes IS NULL FROM task_memory") == [(True, False)]
    lost = one(database, "SELECT * FROM qualification")
    assert (lost["passed"], lost["checks"], lost["reason_code"]) == (None, None, "device_lost")
    assert asked(database, "SELECT count(*) FROM run_setting") == [(0,)]
    seen = "SELECT qualified, peak_allocated_bytes, named_storage_bytes FROM nightly"
    assert asked(database, seen) == [(None, None, 332_000)]


def test_a_later_record_of_an_unjudged_run_takes_the_place_of_all_of_it(database: Database) -> None:
    store(database, learner_run())
    bare = learner_run(settings=[], qualification=None, memory=None)
    assert load_run(database.writer, bare, sha256_of(bare)).status.value == "replaced"
    assert [asked(database, f"SELECT count(*) FROM {table}") for table in PARTS] == [[(0,)]] * len(PARTS)


def test_states_are_compared_with_the_run_before_on_the_same_board(database: Database) -> None:
    other = [state_validation(0), state_validation(1, ["scores_sha256", "predictions_sha256"])]
    differs = {"outcome": Outcome.REGRESSION, "reason": Reason("state_not_repeated", "a replay left other scores")}
    unequal = replace(other[1], replay_states_equal=[True, False], **differs)
    store(
        database,
        night(1, of=learner_run),
        night(2, of=learner_run, validations=other),
        night(3, of=learner_run, validations=other),
        night(4, of=learner_run, validations=[replace(other[0], state_hashes=None), unequal]),
    )
    columns = "draw, states_changed, changed_states, all_replay_states_equal, reference_state_found_sha256 IS NOT NULL"
    found = asked(database, f"SELECT {columns} FROM validation_history ORDER BY started_at, draw")
    changed = ["predictions_sha256", "scores_sha256"]
    assert found == [
        *((draw, None, None, True, True) for draw in range(2)),
        *((0, False, None, True, True), (1, True, changed, True, True)),
        *((0, False, None, True, True), (1, False, None, True, True)),
        *((0, None, None, True, True), (1, False, None, False, True)),
    ]


def test_memory_and_qualification_stand_beside_the_run_before(database: Database) -> None:
    store(
        database,
        night(1, of=learner_run, memory=memory(peak=15_000_000)),
        night(2, of=learner_run, device=CPU, memory=cpu_memory()),
        night(3, of=learner_run, memory=None, qualification=not_asked()),
        night(4, of=learner_run, memory=memory(unmatched=["scores_sha256"]), qualification=qualification("reset")),
    )
    columns = "device_kind, peak_allocated_bytes, previous_peak_allocated_bytes, previous_named_storage_bytes"
    assert asked(database, f"SELECT {columns}, unmatched_states FROM memory_history ORDER BY started_at") == [
        ("cuda", 15_000_000, None, None, None),
        ("reference", None, None, None, None),
        ("cuda", 15_663_104, 15_000_000, 332_000, ["scores_sha256"]),
    ]
    columns = "passed, cases_failed, failures, previous_checks, previous_maximum_abs_error"
    assert asked(database, f"SELECT {columns} FROM qualification_history ORDER BY started_at") == [
        (True, [], None, None, None),
        (True, [], None, None, None),
        (None, [], None, 212, 1.2e-6),
        (False, ["training depth 2"], {"training depth 2": ["reset"]}, 212, 1.2e-6),
    ]
    last = "WHERE dag_run_id = 'scheduled__04'"
    detail = one(database, f"SELECT settings, qualification, memory FROM run_detail {last}")
    assert detail["settings"]["CUBLAS_WORKSPACE_CONFIG"] == {"value": ":16:8", "origin": "program"}
    assert [case["passed"] for case in detail["qualification"]["cases"]] == [True, False]
    assert detail["memory"]["prepare_and_invoke_peak_allocated_bytes"] == 15_663_104


def test_a_setting_that_changed_is_a_change_of_the_surroundings(database: Database) -> None:
    other = LibrarySetting("CUBLAS_WORKSPACE_CONFIG", ":4096:8", "environment")
    store(database, night(1, of=learner_run), night(2, of=learner_run), night(3, of=learner_run, settings=[other]))
    columns = "night::text, what, from_value, to_value, detail"
    assert asked(database, f"SELECT {columns} FROM environment_changes") == [
        ("2026-12-03", "CUBLAS_WORKSPACE_CONFIG", ":16:8", ":4096:8", "from program to environment")
    ]


def test_trials_have_their_columns_in_the_trend_of_rounds(database: Database) -> None:
    store(database, learner_run())
    columns = "trial_mj, trial_low_mj, trial_high_mj, aligned_mj, classic_mj, calibration_ms"
    assert asked(database, f"SELECT {columns} FROM round_trend WHERE round = 0") == [
        (1060.0, 1059.995, 1060.003, 1124.0, None, 38.45)
    ]


def test_a_database_comes_back_from_its_records_with_everything(database: Database, roles: Any, tmp_path: Path) -> None:
    """``roles``: a second, empty database."""
    upgrade(roles.owner)
    content = [candidate((ORIGINALS / f"learner-{name}-a100.json").read_bytes(), name) for name in ORIGINAL]
    list(import_records(database.writer, tmp_path, content))
    spool.load_text(database.writer, tmp_path, *_as_text(learner_run()))
    done = rebuild(roles.owner, tmp_path)
    assert (done.runs, done.broken) == (3, [])
    for table in ("run", "validation", "round", *PARTS):
        dropped = "- 'loaded_at' - 'device_id' - 'environment_id' - 'payload_id' - 'source_state_id'"
        statement = f"SELECT to_jsonb(t) {dropped} FROM {table} AS t ORDER BY t::text"
        assert sorted(map(repr, asked(roles, statement))) == sorted(map(repr, asked(database, statement))), table


ORIGINAL = ("measure", "qualification")


@pytest.mark.parametrize("name", ORIGINAL)
def test_an_original_record_comes_back_byte_for_byte_and_its_figures_are_asked_for(
    database: Database, name: str, tmp_path: Path
) -> None:
    content = read_record_bytes(ORIGINALS / f"learner-{name}-a100.json")
    (done,) = import_records(database.writer, tmp_path, [candidate(content, name)])
    with database.reader.connect() as connection:
        assert kept_record(connection, tmp_path, done.record.request.run_id) == content
    columns = "reserved_before_prepare_bytes, prepare_and_invoke_peak_allocated_bytes, unassigned_bytes, invocations"
    counts = asked(database, f"SELECT {columns} FROM task_memory") + asked(
        database, "SELECT count(*) FROM memory_tensor"
    )
    settings = asked(database, "SELECT name, value, origin FROM run_setting")
    checks = asked(database, "SELECT checks, maximum_abs_error FROM qualification")
    if name == "measure":
        assert counts == [(0, 15_663_104, 276_832, 327), (33,)]
        assert settings == [("CUBLAS_WORKSPACE_CONFIG", ":16:8", "environment")]
        assert checks == [(4, None)]
    else:
        assert counts == [(None, 82_509_824, None, 315), (0,)]
        assert (settings, checks) == ([], [(216, 1.1920928955078125e-06)])
    assert asked(database, "SELECT count(*) FROM jsonb_each((SELECT state_hashes FROM validation))") == [(26,)]


def test_old_trials_are_summed_up_before_they_go_and_memory_stays(database: Database) -> None:
    """Rounds of a record that has no figures of its own, as those of the originals."""
    rounds = [trial_round(number, energy=None) for number in range(3)]
    old = learner_run("old", rounds=rounds, started_at="2020-01-01T02:00:00Z", completed_at="2020-01-01T02:05:00Z")
    assert old.summary.energy == []
    store(database, old)
    retain(database.owner, "90d", "2y", dry_run=False)
    assert asked(database, "SELECT count(*) FROM round") == [(0,)]
    assert asked(database, "SELECT figure, median_mj, rounds FROM run_energy") == [("trial", 1069.0, 3)]
    assert asked(database, "SELECT count(*) FROM memory_tensor") == [(3,)]


def _as_text(record: RunRecord) -> tuple[str, str]:
    return to_json(record), record.request.run_id


def changed(record: RunRecord, path: str, value: Any) -> RunRecord:
    """The record with one field below it replaced; a number in ``path`` is an index."""
    head, _, rest = path.partition(".")

    def put(old: Any) -> Any:
        return _put(old, rest, value) if rest else value

    return replace(record, **{head: put(getattr(record, head))})


def _put(old: Any, path: str, value: Any) -> Any:
    head, _, rest = path.partition(".")
    if isinstance(old, list):
        return [(_put(item, rest, value) if rest else value) if str(n) == head else item for n, item in enumerate(old)]
    return replace(old, **{head: _put(getattr(old, head), rest, value) if rest else value})


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("provision.settings.0.origin", "moon", "$.provision.settings[0].origin"),
        ("provision.settings.1.value", "x", "$.provision.settings[1].value"),
        ("provision.settings.1.name", SETTINGS[0].name, "$.provision.settings[1].name"),
        ("validations.1.replay_states_equal", [True, False], "$.validations[1].replay_states_equal"),
        ("validations.0.reference_state.found_sha256", "0" * 64, "$.validations[0].reference_state.found_sha256"),
        ("rounds.2.calibration_ms", 0.0, "$.rounds[2].calibration_ms"),
        ("qualification.passed", False, "$.qualification.passed"),
        ("qualification.checks", None, "$.qualification.checks"),
        ("qualification.workload", "qda", "$.qualification.workload"),
        ("qualification.maximum_abs_error", -1.0, "$.qualification.maximum_abs_error"),
        ("qualification.cases.1.passed", False, "$.qualification.cases[1].passed"),
        ("qualification.cases.1.name", "training depth 1", "$.qualification.cases[1].name"),
        ("memory.created_at", "yesterday", "$.memory.created_at"),
        ("memory.memory.reserved_before_prepare_bytes", -1, "$.memory.memory.reserved_before_prepare_bytes"),
        ("memory.memory.allocated_after_prepare_bytes", 2**40, "$.memory.memory.allocated_after_prepare_bytes"),
        ("memory.memory.added_peak_over_entry_allocated_bytes", 1, "$.memory.memory.added_peak"),
        ("memory.memory.prepare_and_invoke_peak_reserved_bytes", 1, "$.memory.memory.prepare_and_invoke_peak_reserved"),
        ("memory.memory_reason", cpu_memory().memory_reason, "$.memory.memory_reason"),
        ("memory.agreed", 1001, "$.memory.agreed"),
        ("memory.hashes_matched", ["moon"], "$.memory.hashes_matched"),
        ("memory.invocations", 0, "$.memory.invocations"),
        ("memory.inventory.named_tensors.2.storage_id", 7, "$.memory.inventory.named_tensors[2].storage_id"),
        ("memory.inventory.named_tensors.0.stride", [1], "$.memory.inventory.named_tensors[0].stride"),
        ("memory.inventory.named_tensors.1.name", "raw", "$.memory.inventory.named_tensors[1].name"),
        ("memory.inventory.unique_storages.1.storage_id", 0, "$.memory.inventory.unique_storages[1].storage_id"),
        ("memory.inventory.unique_named_storage_bytes", 1, "$.memory.inventory.allocated_bytes_without"),
        # What no column could hold, or no device could have.
        ("qualification.checks", 2**31, "$.qualification.checks: expected 0 to 2147483647"),
        ("qualification.cases.0.checks", 2**31, "$.qualification.cases[0].checks"),
        ("memory.invocations", 2**31, "$.memory.invocations"),
        ("memory.draw", 2**15, "$.memory.draw"),
        ("memory.draw", -1, "$.memory.draw"),
        ("memory.total", 2**31, "$.memory.total"),
        ("memory.duration_s", -1.0, "$.memory.duration_s"),
        ("memory.cache_bytes", -1, "$.memory.cache_bytes"),
        ("memory.predictions_sha256", "0" * 63, "$.memory.predictions_sha256: expected 64 hexadecimal digits"),
        ("memory.state_hashes", dict.fromkeys(STATES, "NaN"), f"$.memory.state_hashes.{STATES[0]}"),
        ("validations.0.state_hashes", {"scores": "0" * 64 + "\n"}, "$.validations[0].state_hashes.scores"),
        ("memory.inventory.unique_storages.0.storage_id", 2**31, "$.memory.inventory.unique_storages[0].storage_id"),
        ("memory.inventory.unique_storages.1.address", -1, "$.memory.inventory.unique_storages[1].address"),
        ("memory.inventory.unique_storages.1.bytes", 2**63, "$.memory.inventory.unique_storages[1].bytes"),
        ("memory.inventory.unique_storages.1.device", " ", "$.memory.inventory.unique_storages[1].device"),
        ("memory.inventory.named_tensors.0.dtype", "", "$.memory.inventory.named_tensors[0].dtype"),
        ("memory.inventory.named_tensors.0.name", " ", "$.memory.inventory.named_tensors[0].name"),
        ("memory.inventory.named_tensors.1.storage_offset", -1, "$.memory.inventory.named_tensors[1].storage_offset"),
        ("memory.inventory.named_tensors.1.logical_bytes", -4, "$.memory.inventory.named_tensors[1].logical_bytes"),
        ("memory.inventory.named_tensors.0.shape.0", 2**63, "$.memory.inventory.named_tensors[0].shape[0]"),
        ("memory.inventory.named_tensors.0.shape.0", -1, "$.memory.inventory.named_tensors[0].shape[0]"),
        ("memory.inventory.named_tensors.0.stride.0", 2**63, "$.memory.inventory.named_tensors[0].stride[0]"),
        ("memory.inventory.allocator_allocated_bytes", 2**63, "$.memory.inventory.allocator_allocated_bytes"),
    ],
)
def test_a_record_that_contradicts_itself_is_told_where(path: str, value: Any, where: str) -> None:
    check_run(learner_run(), "a.json")
    with pytest.raises(BadInput) as caught:
        check_run(changed(learner_run(), path, value), "a.json")
    assert caught.value.message.startswith(f"a.json: {where}")


@pytest.mark.parametrize(
    "make",
    [
        lambda: learner_run(memory=cpu_memory(), qualification=not_asked()),
        lambda: learner_run(memory=memory(unmatched=STATES), qualification=qualification("reset")),
        lambda: learner_run(memory=memory(inventory=None, memory=None, state_hashes=None, hashes_matched=[])),
        lambda: learner_run(qualification=None, memory=None, settings=[]),
    ],
)
def test_what_the_checks_let_pass_the_database_takes(database: Database, make: Callable[[], RunRecord]) -> None:
    check_run(make(), "a.json")
    store(database, make())
    assert asked(database, "SELECT dag_id FROM run") == [(DAG,)]


def test_what_no_column_can_hold_is_refused_with_everything(database: Database) -> None:
    odd = replace(inventory(), unique_storages=[Storage(0, "cuda:0", 2**63, 324_000, ["raw", "raw.first"])])
    with pytest.raises(BadInput, match="out of range"):
        store(database, learner_run(memory=memory(inventory=odd)))
    assert asked(database, "SELECT count(*) FROM run") == [(0,)]
