"""Original records become run records: every figure comes out."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpu_tasks.convert import known
from gpu_tasks.convert.own import check_run
from gpu_tasks.records import RunRecord, read_record, run_id_for, to_json
from tests.support.original_records import (
    HARDWARE,
    MADE,
    QDA,
    learner_measurement,
    learner_qualification,
    qda_record,
    with_sentences,
)
from tests.unit.gpu_tasks.convert.originals import Where, converted

FIXTURE = ["python", "fixture.py", "--output", "result.json", "--energy"]
"""The command of a measurement as a run keeps it, without the folders of the machine."""


def test_the_qda_record_becomes_the_committed_run_field_by_field(tmp_path: Path) -> None:
    assert converted(qda_record(), tmp_path) == read_record(QDA, RunRecord)


@pytest.mark.parametrize("name", ["learner-measure", "learner-qualification"])
def test_the_committed_runs_of_the_learner_are_what_their_originals_become(name: str, tmp_path: Path) -> None:
    committed = read_record(QDA.with_name(f"{name}-a100.json"), RunRecord)
    assert committed.request.dag_run_id == name
    assert converted(with_sentences(committed.provenance), tmp_path) == committed


@pytest.mark.parametrize("name", ["learner-measure", "learner-qualification"])
def test_a_learner_record_becomes_a_run_of_three_rounds_and_one_validation(name: str, tmp_path: Path) -> None:
    content = MADE[name]()
    run = converted(content, tmp_path)
    trials = (content.get("result") or content)["energy"]["trials"]
    assert (run.request.workload, run.protocol, run.outcome.value, run.energy_trust) == (
        *("learner", "trial", "ok", "unverified"),
    )
    assert [measured.adjusted_mj for measured in run.rounds] == [
        pytest.approx(trial["idle_adjusted_mj_per_task"], rel=1e-12) for trial in trials
    ]
    for figure, original in (("gross_mj", "unadjusted_mj"), ("wall_ms", "wall_ms"), ("cuda_ms", "cuda_ms")):
        assert [getattr(r, figure) for r in run.rounds] == [trial[f"{original}_per_task"] for trial in trials]
    (validation,) = run.validations
    assert (validation.draw, validation.dataset_seed, validation.total) == (0, 2026091400, 10_000)
    assert (validation.agreed, validation.device_correct) == (10_000, 8887)
    assert validation.predictions_int32_sha256 == known.LEARNER_DRAW_0.int32_sha256
    assert run.provenance["left_out"]
    assert not any(type(leaf) in (int, float, bool) for _, leaf in leaves_left_out(content, run.provenance["original"]))
    assert {where for where, _ in leaves_left_out(content, run.provenance["original"])} == {
        *run.provenance["left_out"],
        *(["$.command"] if "command" in content else []),
    }
    assert run.provenance["original"].get("command", FIXTURE) == FIXTURE
    assert with_sentences(run.provenance).keys() == content.keys()


def leaves_left_out(content: Any, kept: Any, where: str = "$") -> Iterator[tuple[str, Any]]:
    """Where a run has something else than its original, and what the original has there."""
    if isinstance(content, dict) and isinstance(kept, dict):
        for key, value in content.items():
            yield from leaves_left_out(value, kept.get(key), f"{where}.{key}")
    elif json.dumps(content) != json.dumps(kept):
        yield where, content


def test_the_inputs_of_the_learner_records_are_a_payload_of_their_own(tmp_path: Path) -> None:
    """The same arrays are the same payload, whatever record they come from; other arrays, or another order, are not."""
    measurement, qualification = learner_measurement(), learner_qualification()
    one, other = (converted(content, tmp_path).verify_payload for content in (measurement, qualification))
    assert one is not None and one.payload is not None and other is not None and other.payload is not None
    assert one.payload.name == "learner-record"
    assert one.payload.manifest_sha256 == other.payload.manifest_sha256
    (draw,) = one.payload.draws
    assert (draw.draw, draw.dataset_seed) == (0, 2026091400)
    assert draw.payload_sha256 == measurement["result"]["input_archive_sha256"]
    assert draw.frozen_prediction_sha256 == known.LEARNER_DRAW_0.npy_sha256
    assert (other.payload.draws, one.files_checked, one.mismatches) == ([], 3, [])
    text = json.dumps(measurement).replace(measurement["input_sha256"]["train_images"], "1" * 64)
    changed = converted(json.loads(text), tmp_path).verify_payload
    assert changed is not None and changed.payload is not None
    assert changed.payload.manifest_sha256 != one.payload.manifest_sha256


def test_every_figure_of_a_measurements_memory_and_core_checks_is_in_the_run(tmp_path: Path) -> None:
    content = learner_measurement()
    result = content["result"]
    run = converted(content, tmp_path)
    assert run.memory is not None and run.memory.memory is not None and run.qualification is not None
    assert vars(run.memory.memory) == {k: v for k, v in result["memory"].items() if k != "scope"}
    prose = ("scope", "is_per_kernel_working_set", "cache_residency_established")
    inventory = {k: v for k, v in result["buffer_inventory"].items() if k not in prose}
    assert run.memory.inventory is not None and dataclasses.asdict(run.memory.inventory) == inventory
    assert (run.memory.cache_bytes, run.memory.invocations) == (41943040, result["metadata"]["run_count"])
    assert run.memory.predictions_sha256 == result["predictions_file_sha256"]
    (validation,) = run.validations
    hashes = run.memory.state_hashes
    assert hashes is not None and validation.state_hashes == hashes and set(run.memory.hashes_matched) == set(hashes)
    assert hashes["final_velocity_sha256.head.bias"] == result["metadata"]["final_velocity_sha256"]["head.bias"]
    assert hashes["epoch_permutation_sha256.1"] == result["metadata"]["epoch_permutation_sha256"][1]
    assert len(hashes) == 26 and validation.replay_states_equal == [True]
    assert [case.figures for case in run.qualification.cases] == result["metadata"]["validation"]["checks"]
    assert (run.qualification.computed_on, run.qualification.captured, run.qualification.checks) == ("cpu", False, 4)
    assert {measured.calibration_ms for measured in run.rounds} == {result["energy"]["calibration_ms"]}
    assert run.provision is not None
    assert [vars(setting) for setting in run.provision.settings] == [
        {"name": "CUBLAS_WORKSPACE_CONFIG", "value": ":16:8", "origin": "environment"}
    ]
    result["environment_was_set_externally"] = False
    by_program = converted(content, tmp_path).provision
    assert by_program is not None and by_program.settings[0].origin == "program"


def test_every_figure_of_a_qualification_is_in_the_run(tmp_path: Path) -> None:
    content = learner_qualification()
    run = converted(content, tmp_path)
    qualified, memory = run.qualification, run.memory
    assert qualified is not None and memory is not None and memory.memory is not None and run.provision is not None
    of = content["cuda_validation"]
    assert [case.figures for case in qualified.cases[4:]] == of["cases"]
    assert [case.figures for case in qualified.cases[:4]] == content["metadata"]["validation"]["checks"]
    assert sum(case.checks for case in qualified.cases[4:]) == of["checks"] == 212
    assert (qualified.maximum_abs_error, qualified.tolerance) == (of["maximum_abs_error"], of["tolerance"])
    assert (qualified.computed_on, qualified.captured, qualified.outcome.value) == (of["device"], True, "ok")
    found = {name: value for name, value in vars(memory.memory).items() if value is not None}
    expected = {name: value for name, value in content["memory"].items() if name != "scope"}
    assert found == expected | {"added_peak_over_entry_allocated_bytes": 82509824}
    assert (memory.inventory, memory.predictions_sha256, run.provision.settings) == (None, None, [])
    assert memory.invocations == content["energy"]["after_metadata"]["run_count"]


@pytest.mark.parametrize(
    ("where", "case"),
    [
        (("cuda_validation", "cases", 1), "training, depth 2"),
        (("metadata", "validation", "checks", 0), "core float64, depth 1"),
    ],
)
def test_a_qualification_that_failed_is_a_regression(where: Where, case: str, tmp_path: Path) -> None:
    content = learner_qualification()
    metadatas = [content["metadata"], content["energy"]["before_metadata"], content["energy"]["after_metadata"]]
    places = [content["cuda_validation"]] if where[0] == "cuda_validation" else [m["validation"] for m in metadatas]
    for place in places:
        place["passed"] = False
        place[str(where[-2])] = copy.deepcopy(place[str(where[-2])])
        place[str(where[-2])][where[-1]]["passed"] = False
    run = converted(content, tmp_path)
    assert run.qualification is not None and run.qualification.passed is False
    assert [c.name for c in run.qualification.cases if c.failures] == [case]
    assert (run.outcome.value, run.reason and run.reason.code) == ("regression", "not_qualified")


@pytest.mark.parametrize("name", ["learner-measure", "learner-qualification"])
def test_what_comes_out_holds_against_itself(name: str, tmp_path: Path) -> None:
    check_run(converted(MADE[name](), tmp_path), name)


@pytest.mark.parametrize("name", MADE)
def test_a_converted_record_is_a_run_record_and_always_the_same_one(name: str, tmp_path: Path) -> None:
    run = converted(MADE[name](), tmp_path)
    (tmp_path / "run.json").write_text(to_json(run))
    assert read_record(tmp_path / "run.json", RunRecord) == run
    assert run.request.run_id == run_id_for("import", run.request.dag_run_id)
    assert converted(MADE[name](), tmp_path, "under another name.json") == run


def test_an_original_is_known_by_its_board_and_time(tmp_path: Path) -> None:
    content = learner_measurement()
    name = converted(content, tmp_path).request.dag_run_id
    assert name.startswith("learner-measure-") and len(name) == len("learner-measure-") + 12
    uuid = next(uuid for (uuid, _), name in known.NAMES.items() if name == "learner-measure")
    content["result"]["energy"]["hardware"] = HARDWARE | {"uuid": uuid}
    assert converted(content, tmp_path).request.dag_run_id == "learner-measure"
    other = qda_record()
    other["hardware"]["uuid"] = "GPU-other"
    run = converted(other, tmp_path)
    assert run.request.dag_run_id.startswith("qda-")
    assert run.energy_trust_reason == known.NO_GATES  # the withdrawal is the original's


def test_the_qda_records_energy_is_known_to_be_withdrawn(tmp_path: Path) -> None:
    reason = converted(qda_record(), tmp_path).energy_trust_reason
    assert reason is not None and reason.code == "power_telemetry_withdrawn"
