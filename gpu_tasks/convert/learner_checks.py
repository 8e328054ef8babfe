"""What follows from what in the original records of the learner."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import statistics
from collections.abc import Iterator

import numpy as np

from gpu_tasks.convert.checking import Fact, readings_in_order, rule
from gpu_tasks.convert.known import LEARNER_DRAW_0
from gpu_tasks.convert.learner_form import (
    ActiveWindow,
    Config,
    CpuCheck,
    CudaCase,
    CudaValidation,
    Energy,
    MeasurementRecord,
    Metadata,
    QualificationRecord,
    Reading,
    Trial,
)
from gpu_tasks.convert.learner_memory import memory_facts
from gpu_tasks.energy.figures import RoundFigures, round_figures
from gpu_tasks.records import CounterReading, IdleWindow, WindowEdge

CORE, CLASSES = 82, 10  # width of the core state, and of the head
HEAD_TENSORS = 2  # weight and bias
BRANCHES = 2  # of a block, each a matrix of half the width squared
CHECK_BATCH = 3  # examples in a check of the gradients
TRIAL_MS, MOST_REPEATS = 5000, 1000  # a trial is as many tasks as fill this time, up to a limit
LAST_BITS = 1e-12  # the original adds in another order: relative
BYTES = {"torch.float64": 8, "torch.float32": 4, "torch.int64": 8}
STATE = (
    *("input_hashes", "epoch_permutation_sha256", "initial_parameter_sha256", "final_parameter_sha256"),
    *("final_velocity_sha256", "state_vector_sha256", "predictions_sha256", "scores_sha256"),
)
"""Everything of the metadata that must come out again the same."""


def measurement_facts(record: MeasurementRecord) -> Iterator[Fact]:
    """Of a measurement."""
    result = record.result
    yield Fact("$.returncode", 0, record.returncode)
    yield Fact("$.stdout", _printed(record), record.stdout)
    yield Fact("$.result.mode", record.action, result.mode)
    yield Fact("$.result.requested_scope", record.scope, result.requested_scope)
    yield Fact("$.result.cublas_workspace_config", record.workspace, result.cublas_workspace_config)
    yield Fact("$.result.config", result.metadata.config, result.config)
    yield Fact("$.input_sha256", result.metadata.input_hashes, record.input_sha256)
    yield Fact("$.result.gpu", result.energy.hardware.gpu, result.gpu)
    software = dataclasses.asdict(result.energy.software)
    yield Fact("$.result.software", {name: software.get(name) for name in result.software}, result.software)
    yield Fact("$.result.predictions_file_sha256", LEARNER_DRAW_0.npy_sha256, result.predictions_file_sha256)
    yield Fact(
        "$.result.same_process_reference_hashes_matched",
        sorted(STATE),
        sorted(result.same_process_reference_hashes_matched),
    )
    yield from _metadata("$.result.metadata", result.metadata)
    yield from _energy("$.result.energy", result.energy, result.metadata)
    yield Fact("$.result.metadata.run_count", result.energy.after_metadata.run_count, result.metadata.run_count)
    yield from memory_facts("$.result", result)


def qualification_facts(record: QualificationRecord) -> Iterator[Fact]:
    """Of a qualification."""
    yield Fact("$.config", record.metadata.config, record.config)
    yield Fact("$.input_sha256", record.metadata.input_hashes, record.input_sha256)
    yield rule("$.cuda_ms", record.cuda_ms > 0, "more than 0", record.cuda_ms)
    yield from _metadata("$.metadata", record.metadata)
    yield from _energy("$.energy", record.energy, record.metadata)
    yield from _cuda_validation("$.cuda_validation", record.cuda_validation)
    yield Fact("$.cuda_validation.device", record.energy.hardware.gpu, record.cuda_validation.device)
    peak, after = record.memory.prepare_and_invoke_peak_allocated_bytes, record.memory.allocated_after_invoke_bytes
    yield rule("$.memory.prepare_and_invoke_peak_allocated_bytes", peak >= after, f"{after} or more", peak)


def training_checks(case: CudaCase) -> int:
    """Comparisons of a case: gradient, update and momentum of every tensor at each step, its two states after a reset,
    and six of the whole task. The originals recorded their sum over the cases alone.
    """
    tensors, steps = case.depth * BRANCHES + HEAD_TENSORS, case.epochs * len(case.batch_sizes)
    return tensors * (3 * steps + 2) + 6


def trial_figures(trial: Trial) -> RoundFigures:
    """Every figure of a trial, from its readings."""
    start, end = (WindowEdge(**vars(counter_reading(edge))) for edge in (trial.active.start, trial.active.end))
    before, after = (
        IdleWindow(counter_reading(window.start), counter_reading(window.end), window.average_power_w)
        for window in (trial.idle_before, trial.idle_after)
    )
    return round_figures(trial.invocations, start, end, before, after)


def _printed(record: MeasurementRecord) -> str:
    """What the measuring process writes to its standard output."""
    trials = [f"Energy trial {t.trial} {t.idle_adjusted_mj_per_task} mJ/task\n" for t in record.result.energy.trials]
    options = dict(zip(record.command, record.command[1:], strict=False))
    return "".join(trials) + f"Completed {record.action}/{record.scope}: {options.get('--output')}\n"


def _metadata(where: str, metadata: Metadata) -> Iterator[Fact]:
    config = metadata.config
    yield Fact(
        f"{where}.input_hashes.train_labels", LEARNER_DRAW_0.labels_sha256, metadata.input_hashes.get("train_labels")
    )
    yield Fact(f"{where}.predictions_sha256", LEARNER_DRAW_0.int64_sha256, metadata.predictions_sha256)
    yield Fact(f"{where}.test_count", LEARNER_DRAW_0.total, metadata.test_count)
    yield rule(f"{where}.config.depth", 0 < config.depth <= 100, "1 to 100", config.depth)
    yield rule(f"{where}.config.epochs", 0 < config.epochs <= 1000, "1 to 1000", config.epochs)
    yield rule(f"{where}.config.seed", config.seed >= 0, "0 or more", config.seed)
    yield rule(f"{where}.train_count", 0 < metadata.train_count <= 60_000, "1 to 60000", metadata.train_count)
    yield Fact(
        f"{where}.epoch_permutation_sha256", _orders(config, metadata.train_count), metadata.epoch_permutation_sha256
    )
    parameters = config.depth * BRANCHES * (CORE // 2) ** 2 + (CORE + 1) * CLASSES
    yield Fact(f"{where}.parameter_count", parameters, metadata.parameter_count)
    names = [*(f"weights.{n}" for n in range(config.depth * BRANCHES)), "head.weight", "head.bias"]
    for field in ("initial_parameter_sha256", "final_parameter_sha256", "final_velocity_sha256"):
        yield Fact(f"{where}.{field}", names, list(getattr(metadata, field)))
    state_bytes = metadata.retained_core_states * CORE * BYTES["torch.float32"]
    yield Fact(f"{where}.core_saved_bytes_per_example", state_bytes, metadata.core_saved_bytes_per_example)
    validation = metadata.validation
    yield Fact(f"{where}.validation.passed", all(c.passed for c in validation.checks), validation.passed)
    for index, check in enumerate(validation.checks):
        yield from _cpu_check(f"{where}.validation.checks[{index}]", check)


def _cpu_check(where: str, check: CpuCheck) -> Iterator[Fact]:
    yield rule(f"{where}.dtype", check.dtype in BYTES, f"one of {sorted(BYTES)}", check.dtype)
    state_bytes = CHECK_BATCH * CORE * BYTES[check.dtype]
    yield Fact(
        f"{where}.saved_activation_bytes", check.saved_activation_storages * state_bytes, check.saved_activation_bytes
    )
    yield Fact(f"{where}.saved_parameter_references", check.depth * BRANCHES, check.saved_parameter_references)


def _cuda_validation(where: str, validation: CudaValidation) -> Iterator[Fact]:
    yield Fact(f"{where}.passed", all(case.passed for case in validation.cases), validation.passed)
    yield Fact(f"{where}.checks", sum(map(training_checks, validation.cases)), validation.checks)
    for index, case in enumerate(validation.cases):
        here = f"{where}.cases[{index}]"
        yield Fact(f"{here}.config.depth", case.depth, case.config.depth)
        yield Fact(f"{here}.config.epochs", case.epochs, case.config.epochs)
        yield Fact(f"{here}.saved_parameter_references", case.depth * BRANCHES, case.saved_parameter_references)
        state_bytes = case.saved_core_activation_storages * CHECK_BATCH * CORE * BYTES["torch.float32"]
        yield Fact(f"{here}.saved_core_activation_bytes", state_bytes, case.saved_core_activation_bytes)
        largest = max(case.batch_sizes, default=0)
        yield Fact(f"{here}.batch_sizes", case.config.batch_size, largest)


def _energy(where: str, energy: Energy, metadata: Metadata) -> Iterator[Fact]:
    yield rule(f"{where}.calibration_ms", energy.calibration_ms > 0, "more than 0", energy.calibration_ms)
    repeats = min(MOST_REPEATS, math.ceil(TRIAL_MS / energy.calibration_ms))
    yield Fact(f"{where}.repeats_per_trial", repeats, energy.repeats_per_trial)
    for index, trial in enumerate(energy.trials):
        yield Fact(f"{where}.trials[{index}].trial", index, trial.trial)
        yield Fact(f"{where}.trials[{index}].invocations", repeats, trial.invocations)
        yield from _trial(f"{where}.trials[{index}]", trial)
    yield from _summary(f"{where}.summary", energy)
    before, after = energy.before_metadata, energy.after_metadata
    for name, other in (("before_metadata", before), ("after_metadata", after)):
        told = dataclasses.replace(other, run_count=metadata.run_count)
        for field in dataclasses.fields(Metadata):
            yield Fact(f"{where}.{name}.{field.name}", getattr(metadata, field.name), getattr(told, field.name))
    # One invocation to calibrate, then the trials.
    invocations = before.run_count + 1 + sum(trial.invocations for trial in energy.trials)
    yield Fact(f"{where}.after_metadata.run_count", invocations, after.run_count)
    yield Fact(f"{where}.state_hash_keys_checked", sorted(STATE), sorted(energy.state_hash_keys_checked))
    yield Fact(f"{where}.repeat_state_hashes_equal", True, energy.repeat_state_hashes_equal)
    yield Fact(f"{where}.repeat_predictions_equal", True, energy.repeat_predictions_equal)
    buses = [bus.rpartition(":")[2] for bus in (energy.hardware.cuda_pci_bus_id, energy.hardware.nvml_pci_bus_id)]
    yield Fact(f"{where}.hardware.nvml_pci_bus_id", buses[0], buses[1])


def _trial(where: str, trial: Trial) -> Iterator[Fact]:
    windows = {"idle_before": trial.idle_before, "active": trial.active, "idle_after": trial.idle_after}
    readings = [(f"{n}.{end}", getattr(w, end)) for n, w in windows.items() for end in ("start", "end")]
    yield from readings_in_order(where, [(name, edge.time_s, edge.energy_mj) for name, edge in readings])
    for name, window in windows.items():
        yield from _window(f"{where}.{name}", window)
    figures = trial_figures(trial)
    adjusted, idle_w = (
        figures.adjusted_mj,
        statistics.mean([w.average_power_w for w in (trial.idle_before, trial.idle_after)]),
    )
    yield Fact(f"{where}.paired_idle_w", idle_w, trial.paired_idle_w, LAST_BITS)
    yield Fact(f"{where}.idle_adjusted_mj_per_task", adjusted, trial.idle_adjusted_mj_per_task, LAST_BITS)
    yield Fact(f"{where}.unadjusted_mj_per_task", figures.gross_mj, trial.unadjusted_mj_per_task, LAST_BITS)
    yield Fact(f"{where}.wall_ms_per_task", figures.wall_ms, trial.wall_ms_per_task, LAST_BITS)
    yield rule(f"{where}.cuda_ms_per_task", trial.cuda_ms_per_task > 0, "more than 0", trial.cuda_ms_per_task)


def _window(where: str, window: ActiveWindow) -> Iterator[Fact]:
    seconds, energy_mj = window.end.time_s - window.start.time_s, window.end.energy_mj - window.start.energy_mj
    yield Fact(f"{where}.duration_s", seconds, window.duration_s, LAST_BITS)
    yield Fact(f"{where}.energy_j", energy_mj / 1000, window.energy_j, LAST_BITS)
    yield Fact(f"{where}.average_power_w", energy_mj / 1000 / seconds, window.average_power_w, LAST_BITS)


def _summary(where: str, energy: Energy) -> Iterator[Fact]:
    for field in dataclasses.fields(energy.summary):
        values, spread = [getattr(trial, field.name) for trial in energy.trials], getattr(energy.summary, field.name)
        yield Fact(f"{where}.{field.name}.values", values, spread.values)
        yield rule(f"{where}.{field.name}.values", len(values) > 1, "two or more", values)
        yield Fact(f"{where}.{field.name}.mean", statistics.mean(values), spread.mean, LAST_BITS)
        yield Fact(f"{where}.{field.name}.sample_sd", statistics.stdev(values), spread.sample_sd, LAST_BITS)


def _orders(config: Config, count: int) -> list[str]:
    """The hash of each epoch's order: one generator, one permutation an epoch."""
    generator = np.random.default_rng(config.seed)
    orders = [generator.permutation(count).astype("<i8") for _ in range(config.epochs)]
    return [hashlib.sha256(order.tobytes()).hexdigest() for order in orders]


def counter_reading(reading: Reading) -> CounterReading:
    """A reading in the form of our records."""
    return CounterReading(reading.energy_mj, reading.time_s, reading.query_latency_s)
