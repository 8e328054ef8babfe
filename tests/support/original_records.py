"""Records in the forms of the original systems, made from the figures that are kept here in this project's own form.

The readings are the originals', so that every figure must come out; what is not kept here (hashes of parameters, names
of boards, times of the learner) is made up, and what follows from something else is computed.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import hashlib
import json
import math
import statistics
from typing import Any

import numpy as np

from gpu_tasks.convert.known import LEARNER_DRAW_0
from gpu_tasks.payload.sets import SHIPPED
from gpu_tasks.records import RoundRecord, RunRecord, read_record
from gpu_tasks.sources import ROOT

QDA = ROOT / "gpu_tasks/baselines/qda-original-a100.json"
TRIALS = ROOT / "tests/unit/gpu_tasks/energy/data/learner-trials.json"
OUTPUT = "/run/result.json"
CALIBRATION_MS = {"learner-measure": 46.3, "learner-qualification": 48.3}
CONFIG = {
    **{"depth": 2, "alpha": 0.5, "seed": 11, "epochs": 2, "learning_rate": 0.1},
    **{"batch_size": 128, "momentum": 0.9, "weight_decay": 0.0},
}
NAMES = ("weights.0", "weights.1", "weights.2", "weights.3", "head.weight", "head.bias")
FIGURES = ("idle_adjusted_mj_per_task", "unadjusted_mj_per_task", "cuda_ms_per_task", "wall_ms_per_task")
STATE = (
    *("input_hashes", "epoch_permutation_sha256", "initial_parameter_sha256", "final_parameter_sha256"),
    *("final_velocity_sha256", "state_vector_sha256", "predictions_sha256", "scores_sha256"),
)
HARDWARE = {
    **{"gpu": "NVIDIA A100-SXM4-40GB", "uuid": "GPU-made-up", "total_memory_bytes": 42405855232},
    **{"power_limit_w": 400.0, "driver": "580.95.05", "cuda_pci_bus_id": "0000:0F:00.0"},
    **{"nvml_pci_bus_id": "00000000:0F:00.0", "nvml_handle_selected_by_cuda_pci_bus_id": True},
}
SOFTWARE = {"python": "3.11.15", "torch": "2.5.1+cu124", "numpy": "2.2.6", "cuda": "12.4"}


def sha256(*what: object) -> str:
    return hashlib.sha256(repr(what).encode()).hexdigest()


def qda_record() -> dict[str, Any]:
    """The QDA record, from the run record that it once became."""
    run = read_record(QDA, RunRecord)
    assert run.provision and run.provision.device and run.provision.environment and run.verify_payload and run.kernel
    device, environment, summary = run.provision.device, run.provision.environment, dataclasses.asdict(run.summary)
    versions = {"cuda": environment.cuda, "driver": environment.driver, "python": environment.python}
    figures = [name for name in summary if name.endswith(("_median", "_min", "_max", "_sd")) or "negative" in name]
    payload = run.verify_payload.payload
    assert payload
    return {
        "verified_at_utc": _second(run.started_at),
        "hardware": {
            **{name: getattr(device, name) for name in ("name", "uuid", "memory_total_bytes", "multiprocessors")},
            "compute_capability": device.compute_capability,
        },
        "versions": {**environment.packages, **versions, "platform": environment.platform},
        "provenance": {
            "payload_manifest_sha256": payload.manifest_sha256,
            "payload_manifest": json.loads((SHIPPED / "original/manifest.json").read_text(encoding="utf-8")),
            **{name: run.provenance[name] for name in ("runner_sha256", "ptx_sha256")},
            **{name: run.provenance[name] for name in ("benchmark_dataset_seed", "benchmark_payload_sha256")},
        },
        "validation": _qda_validation(run),
        "kernel": {
            **{"launches": 2, "mode": run.provenance["kernel_mode"], "fp16_inputs": run.provenance["fp16_inputs"]},
            **{launch["kernel"]: {k: v for k, v in launch.items() if k != "kernel"} for launch in run.kernel.launches},
            "ptx_lines": run.kernel.ptx_lines,
        },
        "scope": "what was measured",
        "rounds": [_qda_round(measured) for measured in run.rounds],
        "summary": {name: summary[name] for name in figures} | {"energy_interpretation": "a small difference"},
        "completed_at_utc": _second(run.completed_at or ""),
    }


def _second(time: str) -> str:
    return time.replace(".000000", "")


def _qda_validation(run: RunRecord) -> dict[str, Any]:
    first = run.validations[0]
    draws = [
        {
            **{name: getattr(v, name) for name in ("draw", "dataset_seed", "payload_sha256")},
            **{"gpu_agrees_with_frozen_cpu_predictions": v.agreed, "total": v.total},
            **{"gpu_correct": v.device_correct, "cpu_correct": v.reference_correct},
            "gpu_predictions_int32_sha256": v.predictions_int32_sha256,
            "mismatching_prediction_indices": [],
            "graph_replays_equal_eager": v.replays_equal_eager,
            "scratch_poisoned_before_eager_and_each_replay": v.scratch_poisoned_before_eager_and_each_replay,
        }
        for v in run.validations
    ]
    return {
        "draws": draws,
        **{"total": run.summary.total, "gpu_agrees_with_frozen_cpu_predictions": run.summary.agreed},
        **{"gpu_correct": run.summary.device_correct, "cpu_correct": run.summary.reference_correct},
        "all_graph_replays_equal_eager": True,
        "intermediate_float_values_bitwise_equal_to_reference": first.intermediate_floats_equal_reference_bitwise,
        "all_eleven_frozen_draws_checked": True,
        "one_captured_graph_reused_across_changed_inputs": first.captured_graph_reused_across_changed_inputs,
        "passed": True,
    }


def _qda_round(measured: RoundRecord) -> dict[str, Any]:
    fields = dataclasses.asdict(measured)
    names = (
        *("round", "repeats", "cuda_ms", "wall_ms", "gross_mj", "adjusted_mj", "idle_before_w", "idle_after_w"),
        *("average_power_w", "measurement_start", "measurement_end", "idle_before", "idle_after"),
    )
    return {name: fields[name] for name in names}


def learner_measurement() -> dict[str, Any]:
    """A measurement of the learner: the trials of the original, the rest made up to fit them."""
    energy = _energy("learner-measure", run_count=2)
    metadata = energy["after_metadata"]
    return {
        **{"workspace": ":16:8", "action": "measure", "scope": "task"},
        **{"command": ["/bin/python", "fixture.py", "--output", OUTPUT, "--energy"], "returncode": 0},
        **{"stdout": _printed(energy, OUTPUT), "stderr": "", "capabilities": {}},
        "finished_at_utc": "2026-09-14T23:53:16.101848+00:00",
        "input_sha256": metadata["input_hashes"],
        "result": {
            **{"schema_version": 1, "completed_at_utc": "2026-09-14T23:53:15.609021+00:00", "mode": "measure"},
            **{"requested_scope": "task", "config": CONFIG, "input_archive_sha256": sha256("archive")},
            **{"config_file_sha256": sha256("config"), "source_sha256": {"learner.py": sha256("learner")}},
            **{"cublas_workspace_config": ":16:8", "environment_was_set_externally": True, "software": SOFTWARE},
            **{"gpu": HARDWARE["gpu"], "cuda_device_index": 0},
            **_memory(),
            "cache_reference": {"bytes": 41943040, "unit": "40 MiB", "meaning": "the size of the L2"},
            **{"profile": None, "energy": energy, "metadata": metadata},
            "same_process_reference_hashes_matched": list(STATE),
            "frozen_qualification_comparison": "by others",
            "predictions_file": "result.predictions.npy",
            "predictions_file_sha256": LEARNER_DRAW_0.npy_sha256,
            "test_labels_read": False,
        },
    }


def _printed(energy: dict[str, Any], output: str) -> str:
    trials = [f"Energy trial {t['trial']} {t['idle_adjusted_mj_per_task']} mJ/task\n" for t in energy["trials"]]
    return "".join(trials) + f"Completed measure/task: {output}\n"


def with_sentences(provenance: dict[str, Any]) -> dict[str, Any]:
    """An original of the learner from what a run keeps of it: where sentences were left out are others."""
    content: dict[str, Any] = copy.deepcopy(provenance["original"])
    for path in provenance["left_out"]:
        *parents, key = path.removeprefix("$.").split(".")
        functools.reduce(lambda held, name: held[name], parents, content)[key] = "in other words"
    if "stdout" in content:
        command = content["command"]
        content["stdout"] = _printed(content["result"]["energy"], command[command.index("--output") + 1])
    return content


def learner_qualification() -> dict[str, Any]:
    """A qualification of the learner, likewise."""
    energy = _energy("learner-qualification", run_count=2)
    metadata = energy["before_metadata"] | {"run_count": 1}
    return {
        **{"metadata": metadata, "config": CONFIG, "input_sha256": metadata["input_hashes"], "cuda_ms": 50.9},
        **{"learner_sha256": sha256("learner"), "completed_at_utc": "2026-09-14T23:40:42.785484+00:00"},
        "memory": {
            **{"allocated_before_prepare_bytes": 0, "prepare_and_invoke_peak_allocated_bytes": 82509824},
            **{"allocated_after_invoke_bytes": 81084416, "reserved_after_invoke_bytes": 96468992, "scope": "all"},
        },
        "cuda_validation": {
            **{"passed": True, "device": HARDWARE["gpu"], "checks": 212, "maximum_abs_error": 1.2e-6},
            **{"tolerance": {"atol": 2e-5, "rtol": 0.003}, "cases": [_cuda_case(depth) for depth in (1, 2)]},
            "scope": "both depths",
        },
        "energy": energy,
    }


def _cuda_case(depth: int) -> dict[str, Any]:
    return {
        **{"depth": depth, "config": CONFIG | {"depth": depth, "batch_size": 8}, "passed": True, "epochs": 2},
        **{"batch_sizes": [8, 8, 3], "complete_replay_byte_repeatable": True},
        **{"predictions_match_independent_eager": True, "saved_core_activation_storages": 1},
        **{"saved_core_activation_bytes": 984, "saved_parameter_references": 2 * depth},
    }


def _energy(name: str, run_count: int) -> dict[str, Any]:
    kept = json.loads(TRIALS.read_text(encoding="utf-8"))[name]["trials"]
    trials = [_trial(number, trial) for number, trial in enumerate(kept)]
    repeats = math.ceil(5000 / CALIBRATION_MS[name])
    before = _metadata(run_count)
    return {
        **{"calibration_ms": CALIBRATION_MS[name], "repeats_per_trial": repeats, "trials": trials},
        "summary": {figure: _spread([trial[figure] for trial in trials]) for figure in FIGURES},
        **{"hardware": HARDWARE, "software": SOFTWARE | {"nvidia_ml_py": "12.560.30"}},
        **{"repeat_predictions_equal": True, "repeat_state_hashes_equal": True},
        **{"state_hash_keys_checked": list(STATE), "scope": "every task", "before_metadata": before},
        "after_metadata": copy.deepcopy(before) | {"run_count": run_count + 1 + len(trials) * repeats},
    }


def _trial(number: int, kept: dict[str, Any]) -> dict[str, Any]:
    settled = {"settle_seconds": 3}
    moment = {"temperature_c": 37, "power_w": 61.8, "graphics_clock_mhz": 1095, "memory_clock_mhz": 1215}
    return {
        **{"trial": number, "invocations": kept["invocations"]},
        "idle_before": _window(kept["idle_before"], kept["idle_before_w"]) | settled,
        "idle_after": _window(kept["idle_after"], kept["idle_after_w"]) | settled,
        "active": _window(kept["active"], kept["active_w"]),
        **{"telemetry_before": moment, "telemetry_after": moment, "paired_idle_w": kept["paired_idle_w"]},
        "idle_adjusted_mj_per_task": kept["idle_adjusted_mj"],
        "unadjusted_mj_per_task": kept["unadjusted_mj"],
        **{"cuda_ms_per_task": kept["cuda_ms"], "wall_ms_per_task": kept["wall_ms"]},
    }


def _window(kept: dict[str, Any], power_w: float) -> dict[str, Any]:
    start, end = (
        dict(zip(("energy_mj", "time_s", "query_latency_s"), kept[at], strict=True)) for at in ("start", "end")
    )
    seconds, energy_j = end["time_s"] - start["time_s"], (end["energy_mj"] - start["energy_mj"]) / 1000
    return {"start": start, "end": end, "duration_s": seconds, "energy_j": energy_j, "average_power_w": power_w}


def _spread(values: list[float]) -> dict[str, Any]:
    return {"mean": statistics.mean(values), "sample_sd": statistics.stdev(values), "values": values}


def _metadata(run_count: int) -> dict[str, Any]:
    orders = np.random.default_rng(11)
    names = {"train_images": sha256("train"), "train_labels": LEARNER_DRAW_0.labels_sha256, "test_images": sha256("q")}
    checks = [_cpu_check(dtype, depth) for dtype in ("torch.float64", "torch.float32") for depth in (1, 2)]
    return {
        **{"config": CONFIG, "parameter_count": 7554, "train_count": 10000, "test_count": 10000},
        **{"fresh_initialization_per_run": True, "checkpoint_loaded": False, "normalization": "4*x-0.5"},
        **{"initialization": "normal", "optimizer": "SGD", "shuffle": "PCG64", "augmentation": "none"},
        "input_hashes": names,
        "epoch_permutation_sha256": [hashlib.sha256(orders.permutation(10000).tobytes()).hexdigest() for _ in "12"],
        **{
            f"{what}_sha256": {name: sha256(what, name) for name in NAMES}
            for what in ("initial_parameter", "final_parameter", "final_velocity")
        },
        **{"state_vector_sha256": sha256("state"), "predictions_sha256": LEARNER_DRAW_0.int64_sha256},
        **{"scores_sha256": sha256("scores"), "preparation_seconds": 2.08, "run_count": run_count},
        "validation": {"passed": True, "device": "cpu", "checks": checks, "scope": "identical weights"},
        **{"reversible_core": True, "retained_core_states": 1, "core_saved_bytes_per_example": 328},
        **{"head_reversible": False, "input_lift_injective": True, "timing_scope": "one task"},
    }


def _cpu_check(dtype: str, depth: int) -> dict[str, Any]:
    return {
        **{"dtype": dtype, "depth": depth, "passed": True, "forward_bitwise_equal": True},
        **{"maximum_gradient_abs_error": 0.0, "inverse_max_abs_error": 2.2e-16, "saved_activation_storages": 1},
        **{"saved_activation_bytes": 3 * 82 * int(dtype[-2:]) // 8, "saved_parameter_references": 2 * depth},
    }


def _memory() -> dict[str, Any]:
    tensors = [
        {
            **{"name": name, "storage_id": number, "shape": shape, "stride": stride, "dtype": dtype},
            **{"storage_offset": 0, "logical_bytes": math.prod(shape) * (8 if dtype == "torch.int64" else 4)},
        }
        for number, (name, shape, stride, dtype) in enumerate(
            [
                ("parameters.weights.0", [41, 41], [41, 1], "torch.float32"),
                ("labels", [10000], [1], "torch.int64"),
                ("orders", [2, 10000], [10000, 1], "torch.int64"),
            ]
        )
    ]
    storages = [
        {
            **{"storage_id": t["storage_id"], "device": "cuda:0", "address": 4096 * (1 + int(t["storage_id"]))},
            **{"bytes": t["logical_bytes"], "aliases": [t["name"]]},
        }
        for t in tensors
    ]
    named, allocated, peak = sum(s["bytes"] for s in storages), 14237696, 15663104
    return {
        "memory": {
            **{"allocated_before_prepare_bytes": 0, "reserved_before_prepare_bytes": 0},
            **{"allocated_after_prepare_bytes": allocated, "prepare_and_invoke_peak_allocated_bytes": peak},
            **{"allocated_after_invoke_bytes": allocated, "reserved_after_invoke_bytes": 29360128},
            **{"prepare_and_invoke_peak_reserved_bytes": 29360128, "scope": "the tensor allocator"},
            "added_peak_over_entry_allocated_bytes": peak,
        },
        "buffer_inventory": {
            **{"named_tensors": tensors, "unique_storages": storages, "unique_named_storage_bytes": named},
            "allocator_allocated_bytes": allocated,
            "allocated_bytes_without_named_storage_reference": allocated - named,
            **{"scope": "named tensors", "is_per_kernel_working_set": False, "cache_residency_established": False},
        },
    }


MADE = {
    "qda-eleven-draws": qda_record,
    "learner-measure": learner_measurement,
    "learner-qualification": learner_qualification,
}
"""By name of the original that each is made after."""
