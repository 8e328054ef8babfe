"""Original records that contradict themselves: no field says something else without notice."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_tasks.records import BadInput
from tests.support.original_records import MADE, learner_measurement, qda_record
from tests.unit.gpu_tasks.convert.originals import converted, leaves, other_value, refused, with_leaf

FREE = {("scope",), ("summary", "energy_interpretation")}
"""Prose of the QDA record that a run has no place for."""


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
