"""The two original records of the reversible learner, key by key: a measurement, and a qualification on CUDA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpu_tasks.convert.learner_memory_form import CacheReference, Inventory, MeasuredMemory, QualifiedMemory


@dataclass(frozen=True)
class Config:
    """How the learner trains."""

    depth: int
    alpha: float
    seed: int
    epochs: int
    learning_rate: float
    batch_size: int
    momentum: float
    weight_decay: float


@dataclass(frozen=True)
class CpuCheck:
    """Reversible against ordinary autograd on the CPU, one precision and depth."""

    dtype: str
    depth: int
    passed: bool
    forward_bitwise_equal: bool
    maximum_gradient_abs_error: float
    inverse_max_abs_error: float
    saved_activation_storages: int
    saved_activation_bytes: int
    saved_parameter_references: int


@dataclass(frozen=True)
class CpuValidation:
    """All checks on the CPU."""

    passed: bool
    device: str
    checks: list[CpuCheck]
    scope: str


@dataclass(frozen=True)
class Metadata:
    """The learner and what it came to, by hash, after ``run_count`` invocations."""

    config: Config
    parameter_count: int
    train_count: int
    test_count: int
    fresh_initialization_per_run: bool
    checkpoint_loaded: bool
    normalization: str
    initialization: str
    optimizer: str
    shuffle: str
    augmentation: str
    input_hashes: dict[str, str]
    epoch_permutation_sha256: list[str]
    initial_parameter_sha256: dict[str, str]
    final_parameter_sha256: dict[str, str]
    final_velocity_sha256: dict[str, str]
    state_vector_sha256: str
    predictions_sha256: str
    scores_sha256: str
    preparation_seconds: float
    run_count: int
    validation: CpuValidation
    reversible_core: bool
    retained_core_states: int
    core_saved_bytes_per_example: int
    head_reversible: bool
    input_lift_injective: bool
    timing_scope: str


@dataclass(frozen=True)
class Reading:
    """One reading of the energy counter."""

    energy_mj: int
    time_s: float
    query_latency_s: float


@dataclass(frozen=True)
class ActiveWindow:
    """The window with the work."""

    start: Reading
    end: Reading
    duration_s: float
    energy_j: float
    average_power_w: float


@dataclass(frozen=True)
class IdleStretch(ActiveWindow):
    """A window without work, after the power was left to settle."""

    settle_seconds: float


@dataclass(frozen=True)
class Telemetry:
    """What NVML said at one moment."""

    temperature_c: int
    power_w: float
    graphics_clock_mhz: int
    memory_clock_mhz: int


@dataclass(frozen=True)
class Trial:
    """One energy trial."""

    trial: int
    invocations: int
    idle_before: IdleStretch
    idle_after: IdleStretch
    active: ActiveWindow
    telemetry_before: Telemetry
    telemetry_after: Telemetry
    paired_idle_w: float
    idle_adjusted_mj_per_task: float
    unadjusted_mj_per_task: float
    cuda_ms_per_task: float
    wall_ms_per_task: float


@dataclass(frozen=True)
class Spread:
    """One figure over the trials."""

    mean: float
    sample_sd: float
    values: list[float]


@dataclass(frozen=True)
class EnergySummary:
    """Every figure over the trials."""

    idle_adjusted_mj_per_task: Spread
    unadjusted_mj_per_task: Spread
    cuda_ms_per_task: Spread
    wall_ms_per_task: Spread


@dataclass(frozen=True)
class Hardware:
    """The GPU."""

    gpu: str
    uuid: str
    total_memory_bytes: int
    power_limit_w: float
    driver: str
    cuda_pci_bus_id: str
    nvml_pci_bus_id: str
    nvml_handle_selected_by_cuda_pci_bus_id: bool


@dataclass(frozen=True)
class Software:
    """Versions."""

    python: str
    torch: str
    numpy: str
    cuda: str
    nvidia_ml_py: str


@dataclass(frozen=True)
class Energy:
    """All trials, and the learner before and after them."""

    calibration_ms: float
    repeats_per_trial: int
    trials: list[Trial]
    summary: EnergySummary
    hardware: Hardware
    software: Software
    repeat_predictions_equal: bool
    repeat_state_hashes_equal: bool
    state_hash_keys_checked: list[str]
    scope: str
    before_metadata: Metadata
    after_metadata: Metadata


@dataclass(frozen=True)
class CudaCase:
    """The learner on CUDA against an independent eager run, one depth."""

    depth: int
    config: Config
    passed: bool
    epochs: int
    batch_sizes: list[int]
    complete_replay_byte_repeatable: bool
    predictions_match_independent_eager: bool
    saved_core_activation_storages: int
    saved_core_activation_bytes: int
    saved_parameter_references: int


@dataclass(frozen=True)
class CudaValidation:
    """All cases on CUDA."""

    passed: bool
    device: str
    checks: int
    maximum_abs_error: float
    tolerance: dict[str, float]
    cases: list[CudaCase]
    scope: str


@dataclass(frozen=True)
class QualificationRecord:
    """A qualification, whole."""

    metadata: Metadata
    config: Config
    input_sha256: dict[str, str]
    cuda_ms: float
    learner_sha256: str
    completed_at_utc: str
    memory: QualifiedMemory
    cuda_validation: CudaValidation
    energy: Energy


@dataclass(frozen=True)
class Measurement:
    """What the measuring process itself wrote."""

    schema_version: int
    completed_at_utc: str
    mode: str
    requested_scope: str
    config: Config
    input_archive_sha256: str
    config_file_sha256: str
    source_sha256: dict[str, str]
    cublas_workspace_config: str
    environment_was_set_externally: bool
    software: dict[str, str]
    gpu: str
    cuda_device_index: int
    memory: MeasuredMemory
    buffer_inventory: Inventory
    cache_reference: CacheReference
    profile: Any
    energy: Energy
    metadata: Metadata
    same_process_reference_hashes_matched: list[str]
    frozen_qualification_comparison: str
    predictions_file: str
    predictions_file_sha256: str
    test_labels_read: bool


@dataclass(frozen=True)
class MeasurementRecord:
    """A measurement, whole: how the process was started, how it ended, and what it wrote."""

    workspace: str
    action: str
    scope: str
    command: list[str]
    returncode: int
    stdout: str
    stderr: str
    capabilities: dict[str, str]
    finished_at_utc: str
    input_sha256: dict[str, str]
    result: Measurement
