"""Original records become run records: the figures come out, and a record that contradicts itself does not."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_tasks.convert import known
from gpu_tasks.convert.forms import FORMS, convert_file
from gpu_tasks.convert.own import check_run
from gpu_tasks.records import BadInput, RunRecord, read_record, run_id_for, to_json
from tests.support.original_records import (
    HARDWARE,
    MADE,
    QDA,
    learner_measurement,
    learner_qualification,
    qda_record,
    with_sentences,
)
from tests.unit.gpu_tasks.running import complaint, program

Where = tuple[str | int, ...]

FIXTURE = ["python", "fixture.py", "--output", "result.json", "--energy"]
"""The command of a measurement as a run keeps it, without the folders of the machine."""

FREE = {("scope",), ("summary", "energy_interpretation")}
"""Prose of the QDA record that a run has no place for."""


def converted(content: dict[str, Any], folder: Path, name: str = "original.json") -> RunRecord:
    path = folder / name
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return convert_file(path)


def refused(content: dict[str, Any], folder: Path) -> str:
    with pytest.raises(BadInput) as caught:
        converted(content, folder)
    assert str(folder / "original.json") in caught.value.message
    assert "expected" in caught.value.message and "found" in caught.value.message
    return caught.value.message


def leaves(value: Any, path: Where = ()) -> Iterator[tuple[Where, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        yield path, value
    else:
        for key, item in items:
            yield from leaves(item, (*path, key))


def with_leaf(content: dict[str, Any], path: Where, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(content)
    at: Any = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


def other_value(value: Any) -> Any:
    """Something else of the same type."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 1.001 + 1e-9
    if len(value) == 64:
        return value[::-1] if value != value[::-1] else "0" * 64
    if value[:4].isdecimal() and value.endswith(("Z", "+00:00")):
        return value.replace("2026", "2027")
    return value + "x"


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


@pytest.mark.parametrize("name", MADE)
def test_no_field_can_be_changed_without_notice(name: str, tmp_path: Path) -> None:
    """Each leaf in turn says something else: the record is refused, or another run comes out."""
    content = MADE[name]()
    run = converted(content, tmp_path)
    unnoticed = set()
    for path, value in leaves(content):
        if path[:2] == ("provenance", "payload_manifest") and "seeds" not in path:
            continue  # 200 hashes under one hash
        if path[0] == "rounds" and path[1] not in (0, 6):
            continue  # all alike
        try:
            again = converted(with_leaf(content, path, other_value(value)), tmp_path)
        except BadInput:
            continue
        if again == run:
            unnoticed.add(path)
    assert unnoticed == (FREE if name == "qda-eleven-draws" else set())


DERIVED = {
    "qda-eleven-draws": [
        *("provenance.payload_manifest_sha256", "provenance.payload_manifest.seeds.3"),
        *("provenance.benchmark_payload_sha256", "validation.draws.2.payload_sha256"),
        *("validation.draws.4.gpu_correct", "validation.draws.4.cpu_correct", "validation.draws.4.total"),
        *("validation.draws.5.gpu_agrees_with_frozen_cpu_predictions", "validation.draws.6.dataset_seed"),
        *("validation.draws.7.gpu_predictions_int32_sha256", "validation.draws.8.graph_replays_equal_eager.1"),
        *("validation.total", "validation.gpu_correct", "validation.passed", "kernel.launches"),
        *("rounds.1.wall_ms", "rounds.2.gross_mj", "rounds.3.adjusted_mj", "rounds.4.idle_before_w"),
        *("rounds.5.idle_after.power_w", "rounds.6.average_power_w", "rounds.0.measurement_end.energy_mj"),
        *("rounds.0.idle_before.start.time_s", "rounds.3.round", "rounds.3.repeats", "summary.cuda_ms_median"),
        *("summary.adjusted_mj_sample_sd", "summary.negative_adjusted_rounds", "summary.adjusted_mj_min"),
    ],
    "learner-measure": [
        *("returncode", "stdout", "input_sha256.train_images", "result.mode", "result.config.depth", "workspace"),
        *("result.predictions_file_sha256", "result.gpu", "result.software.torch"),
        *("result.memory.added_peak_over_entry_allocated_bytes", "result.memory.allocated_after_invoke_bytes"),
        *("result.buffer_inventory.named_tensors.1.logical_bytes", "result.buffer_inventory.named_tensors.2.stride.0"),
        *("result.buffer_inventory.unique_storages.0.bytes", "result.buffer_inventory.unique_storages.2.aliases.0"),
        *("result.buffer_inventory.unique_named_storage_bytes", "result.cache_reference.unit"),
        *("result.buffer_inventory.allocated_bytes_without_named_storage_reference",),
        *("result.same_process_reference_hashes_matched.0", "result.metadata.run_count"),
        *("result.metadata.epoch_permutation_sha256.1", "result.metadata.parameter_count"),
        *("result.metadata.predictions_sha256", "result.metadata.input_hashes.train_labels"),
        *("result.metadata.validation.checks.2.saved_activation_bytes", "result.metadata.test_count"),
        *("result.energy.trials.0.idle_before.duration_s", "result.energy.trials.1.active.energy_j"),
        *("result.energy.trials.2.idle_after.average_power_w", "result.energy.trials.0.paired_idle_w"),
        *("result.energy.trials.1.idle_adjusted_mj_per_task", "result.energy.trials.2.unadjusted_mj_per_task"),
        *("result.energy.trials.2.wall_ms_per_task", "result.energy.trials.2.cuda_ms_per_task"),
        *("result.energy.trials.1.trial", "result.energy.trials.1.invocations", "result.energy.repeats_per_trial"),
        *("result.energy.summary.cuda_ms_per_task.mean", "result.energy.summary.wall_ms_per_task.sample_sd"),
        *("result.energy.summary.idle_adjusted_mj_per_task.values.1", "result.energy.repeat_predictions_equal"),
        *("result.energy.before_metadata.scores_sha256", "result.energy.after_metadata.run_count"),
        *("result.energy.hardware.nvml_pci_bus_id", "result.energy.trials.1.active.start.time_s"),
    ],
    "learner-qualification": [
        *(
            "config.alpha",
            "metadata.core_saved_bytes_per_example",
            "energy.repeats_per_trial",
            "cuda_validation.device",
        ),
        *("cuda_validation.passed", "cuda_validation.cases.0.saved_core_activation_bytes"),
        *("cuda_validation.cases.1.depth", "cuda_validation.cases.1.saved_parameter_references"),
        *("energy.state_hash_keys_checked.2", "energy.trials.0.active.end.energy_mj"),
    ],
}
"""Fields that follow from others, some of every kind."""


@pytest.mark.parametrize(("name", "dotted"), [(name, field) for name, fields in DERIVED.items() for field in fields])
def test_what_follows_from_something_else_must_follow(name: str, dotted: str, tmp_path: Path) -> None:
    path = tuple(int(part) if part.isdecimal() else part for part in dotted.split("."))
    content = MADE[name]()
    assert path in dict(leaves(content))
    refused(with_leaf(content, path, other_value(dict(leaves(content))[path])), tmp_path)


@given(st.integers(0, 6), st.sampled_from(["wall_ms", "gross_mj", "adjusted_mj", "idle_after_w"]), st.booleans())
@settings(deadline=None, max_examples=30)
def test_the_last_bit_of_a_figure_counts(tmp_path_factory: Any, number: int, name: str, up: bool) -> None:
    content = qda_record()
    value = content["rounds"][number][name]
    changed = with_leaf(content, ("rounds", number, name), math.nextafter(value, math.inf if up else -math.inf))
    message = refused(changed, tmp_path_factory.mktemp("bit"))
    assert f"$.rounds[{number}].{name}: expected {value!r}" in message


def test_the_learners_figures_may_differ_in_the_last_bits_alone(tmp_path: Path) -> None:
    content = learner_measurement()
    trial = content["result"]["energy"]["trials"][0]
    trial["idle_adjusted_mj_per_task"] *= 1 + 1e-11
    assert "trials[0].idle_adjusted_mj_per_task" in refused(with_printed(content), tmp_path)


def with_printed(content: dict[str, Any]) -> dict[str, Any]:
    """What is printed and summarised, brought up to date."""
    energy = content["result"]["energy"]
    lines = [f"Energy trial {t['trial']} {t['idle_adjusted_mj_per_task']} mJ/task\n" for t in energy["trials"]]
    return content | {"stdout": "".join(lines) + "Completed measure/task: /run/result.json\n"}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("spoil", ["missing", "unknown", "type", "null"])
def test_the_form_is_kept_to_the_letter(name: str, spoil: str, tmp_path: Path) -> None:
    content = MADE[name]()
    energy = content["rounds"][2] if "rounds" in content else (content.get("result") or content)["energy"]
    field = "repeats" if "repeats" in energy else "calibration_ms"
    if spoil == "missing":
        del energy[field]
    else:
        energy["new" if spoil == "unknown" else field] = {"unknown": 1, "type": "1", "null": None}[spoil]
    assert ("new" if spoil == "unknown" else field) in refused(content, tmp_path)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("completed_at_utc",), "2026-09-15T11:52:23Z"),
        (("completed_at_utc",), "2026-09-15T11:55:29"),
        (("verified_at_utc",), "yesterday"),
        (("rounds", 0, "repeats"), 0),
        (("rounds", 0, "repeats"), -5),
        (("rounds", 0, "cuda_ms"), 0.0),
        (("rounds", 0, "measurement_start", "energy_mj"), 2**70),
        (("rounds", 0, "measurement_start", "energy_mj"), -1),
        (("rounds", 0, "idle_before", "end", "time_s"), 0.0),
        (("rounds",), []),
        (("validation", "draws"), []),
        (("validation", "draws", 0, "mismatching_prediction_indices"), [7]),
        (("provenance", "ptx_sha256"), "38D3"),
        (("versions",), {"torch": "2.5.1"}),
    ],
)
def test_what_no_run_can_be_is_refused(path: Where, value: Any, tmp_path: Path) -> None:
    message = refused(with_leaf(qda_record(), path, value), tmp_path)
    assert "$." in message


@pytest.mark.parametrize("content", [{}, {"rounds": []}, {"kind": "run", "format": "kernel-nightly/1"}])
def test_another_form_is_said_to_be_another_one(content: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        converted(content, tmp_path)
    assert caught.value.code == "unknown_form"


def test_the_forms_cannot_be_taken_for_each_other() -> None:
    for name, make in MADE.items():
        matching = [form for form, (keys, _) in FORMS.items() if keys <= make().keys()]
        assert len(matching) == 1, (name, matching)


def test_the_program_writes_the_record_or_one_line(tmp_path: Path) -> None:
    original, out = tmp_path / "original.json", tmp_path / "run.json"
    original.write_text(json.dumps(qda_record()))
    assert program("convert", original, "--out", out).returncode == 0
    assert read_record(out, RunRecord) == read_record(QDA, RunRecord)
    out.unlink()
    original.write_text(json.dumps(with_leaf(qda_record(), ("rounds", 3, "adjusted_mj"), 0.5)))
    result = program("convert", original, "--out", out)
    assert result.returncode == 2 and not out.exists()
    assert complaint(result) == (
        f"gpu_tasks convert: bad_input: record_contradicts_itself: {original}: $.rounds[3].adjusted_mj: expected "
        "0.010378672372650355, found 0.5"
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "record_not_json"),
        (json.dumps(qda_record())[:-200], "record_not_json"),
        (json.dumps(qda_record()).replace("0.667483", "NaN"), "bad_record"),
        (json.dumps(qda_record()).replace("0.667483", "1e999"), "bad_record"),
        ("[" * 100_000, "record_not_json"),
        ("[]", "bad_record"),
        ('"x"', "bad_record"),
    ],
)
def test_what_is_no_record_at_all_is_refused(text: str, code: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        convert_file(path)
    assert caught.value.code == code
    assert str(path) in caught.value.message
