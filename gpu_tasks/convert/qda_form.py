"""The original record of the QDA on eleven draws, key by key."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_tasks.payload.manifest import Manifest
from gpu_tasks.records import CounterReading, IdleWindow


@dataclass(frozen=True)
class Hardware:
    """The GPU."""

    name: str
    uuid: str
    memory_total_bytes: int
    multiprocessors: int
    compute_capability: list[int]


@dataclass(frozen=True)
class Provenance:
    """What ran on what; the manifest whole."""

    payload_manifest_sha256: str
    payload_manifest: Manifest
    runner_sha256: str
    ptx_sha256: str
    benchmark_dataset_seed: int
    benchmark_payload_sha256: str


@dataclass(frozen=True)
class DrawResult:
    """One draw: counts out of ``total``."""

    draw: int
    dataset_seed: int
    payload_sha256: str
    gpu_agrees_with_frozen_cpu_predictions: int
    total: int
    gpu_correct: int
    cpu_correct: int
    gpu_predictions_int32_sha256: str
    mismatching_prediction_indices: list[int]
    graph_replays_equal_eager: list[bool]
    scratch_poisoned_before_eager_and_each_replay: bool


@dataclass(frozen=True)
class Validation:
    """All draws, and the counts over them."""

    draws: list[DrawResult]
    total: int
    gpu_agrees_with_frozen_cpu_predictions: int
    gpu_correct: int
    cpu_correct: int
    all_graph_replays_equal_eager: bool
    intermediate_float_values_bitwise_equal_to_reference: bool
    all_eleven_frozen_draws_checked: bool
    one_captured_graph_reused_across_changed_inputs: bool
    passed: bool


@dataclass(frozen=True)
class StatsLaunch:
    """Geometry of the first kernel."""

    grid: int
    block: int
    samples_per_block: int


@dataclass(frozen=True)
class ScoreLaunch:
    """Geometry of the second kernel."""

    grid: int
    block: int
    queries_per_block: int


@dataclass(frozen=True)
class Kernel:
    """The two kernels."""

    launches: int
    mode: str
    fp16_inputs: bool
    stats: StatsLaunch
    score: ScoreLaunch
    ptx_lines: int


@dataclass(frozen=True)
class Round:
    """One round: figures a replay, and the readings that they come from."""

    round: int
    repeats: int
    cuda_ms: float
    wall_ms: float
    gross_mj: float
    adjusted_mj: float
    idle_before_w: float
    idle_after_w: float
    average_power_w: float
    measurement_start: CounterReading
    measurement_end: CounterReading
    idle_before: IdleWindow
    idle_after: IdleWindow


@dataclass(frozen=True)
class Summary:
    """Figures over the rounds."""

    cuda_ms_median: float
    wall_ms_median: float
    gross_mj_median: float
    adjusted_mj_median: float
    adjusted_mj_min: float
    adjusted_mj_max: float
    adjusted_mj_sample_sd: float
    negative_adjusted_rounds: int
    energy_interpretation: str


@dataclass(frozen=True)
class QdaRecord:
    """The whole record."""

    verified_at_utc: str
    hardware: Hardware
    versions: dict[str, str]
    provenance: Provenance
    validation: Validation
    kernel: Kernel
    scope: str
    rounds: list[Round]
    summary: Summary
    completed_at_utc: str
