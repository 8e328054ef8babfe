"""The records: what every program writes, the database loads, and people keep.

Plain dataclasses, standard library only, so that both sides (the GPU host and Airflow) read the
same definition. A run record is complete by itself: whatever is in the database can be rebuilt
from the run records.

Conventions: units in names (``_mj``, ``_w``, ``_ms``, ``_s``, ``_bytes``); times are aware UTC in ISO
8601 with a trailing ``Z``; a figure that could not be had is ``null`` with a reason beside it, never 0.
Floats are written with Python's shortest round-trip form, so reading gives back the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpu_tasks.records.confirmation import ConfirmationRecord
from gpu_tasks.records.energy import (
    EnergyMeasurement,
    FigureSummary,
    GateResult,
    IdleWindow,
    TelemetryRecord,
    WindowEdge,
)
from gpu_tasks.records.outcomes import Outcome
from gpu_tasks.records.reason import Reason

FORMAT = "kernel-nightly/1"


@dataclass(frozen=True)
class DeviceFingerprint:
    """What the figures were measured on.

    ``kind`` is cuda, emulated, reference or simulated. ``uuid`` identifies one board (one machine, for
    a CPU device). ``energy_counter`` says whether millijoules can be read here, and if not, why.
    """

    kind: str
    name: str
    uuid: str
    memory_total_bytes: int | None
    multiprocessors: int | None
    compute_capability: list[int] | None
    energy_counter: bool
    energy_counter_reason: Reason | None


@dataclass(frozen=True)
class EnvironmentFingerprint:
    """Versions that can change a result: interpreter, platform, driver, CUDA and packages."""

    python: str
    platform: str
    driver: str | None
    cuda: str | None
    packages: dict[str, str]


@dataclass(frozen=True)
class EnvironmentDifference:
    """One version that is not the one ``baseline`` (its file's name) was measured with; null where there is none.

    ``name`` is python, driver, cuda or ``packages.`` and the name of a package.
    """

    baseline: str
    name: str
    expected: str | None
    found: str | None


@dataclass(frozen=True)
class KernelIdentity:
    """What ran: variant name, geometry and the sha256 of its PTX (null where there is no PTX)."""

    variant: str
    ptx_sha256: str | None
    ptx_lines: int | None
    launches: list[dict[str, Any]]


@dataclass(frozen=True)
class ProvisionRecord:
    """The device chosen, the kernel it will run and the environment the tasks run in.

    ``environment_differences`` are against the shipped baseline of the same workload and kind of device, and empty
    where none is shipped (no CPU has one) as well as where nothing differs. ``protocol`` is the one that rounds on this
    device use unless the request names another.
    """

    kind: str  # "provision"
    created_at: str
    outcome: Outcome
    reason: Reason | None
    workload: str
    requested_device: str
    device: DeviceFingerprint | None
    environment: EnvironmentFingerprint | None
    kernel: KernelIdentity | None
    environment_differences: list[EnvironmentDifference] = field(default_factory=list)
    protocol: str | None = None


@dataclass(frozen=True)
class FileMismatch:
    """One file (or one array in it) that is not what was pinned."""

    file: str
    field: str
    expected: str
    found: str


@dataclass(frozen=True)
class DrawIdentity:
    """One frozen draw of a payload, as its manifest names it."""

    draw: int
    dataset_seed: int
    payload_sha256: str
    frozen_prediction_sha256: str


@dataclass(frozen=True)
class PayloadIdentity:
    """A named set of frozen draws and the sha256 of its manifest."""

    name: str
    manifest_sha256: str
    draws: list[DrawIdentity]


@dataclass(frozen=True)
class VerifyRecord:
    """Result of hashing sources or payload against what is pinned.

    ``subject`` is "sources" or "payload". For sources, ``sources_sha256`` is the hash of the pins file and
    ``sources`` maps each path to the sha256 found. For the payload, ``payload`` identifies the set.
    """

    kind: str  # "verify"
    created_at: str
    outcome: Outcome
    reason: Reason | None
    workload: str
    subject: str
    files_checked: int
    mismatches: list[FileMismatch]
    sources_sha256: str | None
    sources: dict[str, str] | None
    payload: PayloadIdentity | None


@dataclass(frozen=True)
class PredictionMismatch:
    """One query on which the device and the frozen prediction differ."""

    index: int
    expected: int
    found: int


@dataclass(frozen=True)
class ValidationRecord:
    """One draw: the device's predictions against the frozen ones, and replays against the eager run.

    ``agreed`` and the ``_correct`` counts are out of ``total``. ``outcome`` is ``regression`` when a prediction
    disagrees or a replay differs from the eager run. Counts are null when the draw could not be run.
    """

    kind: str  # "validation"
    created_at: str
    outcome: Outcome
    reason: Reason | None
    workload: str
    payload: str
    device_uuid: str | None
    draw: int
    dataset_seed: int | None
    payload_sha256: str | None
    total: int | None
    agreed: int | None
    device_correct: int | None
    reference_correct: int | None
    predictions_int32_sha256: str | None
    mismatches: list[PredictionMismatch]
    replays_equal_eager: list[bool]
    scratch_poisoned_before_eager_and_each_replay: bool | None
    captured_graph_reused_across_changed_inputs: bool | None
    intermediate_floats_equal_reference_bitwise: bool | None
    duration_s: float | None


@dataclass(frozen=True)
class RoundRecord:
    """One measurement round: raw readings and the figures derived from them (``gpu_tasks.energy.figures``).

    ``cuda_ms`` (CUDA-event time a replay), ``wall_ms``, ``gross_mj`` and ``adjusted_mj`` are per replay;
    ``adjusted_mj`` may be negative and is kept so. Energy fields are null with ``energy_reason`` where the
    device has no counter, ``cuda_ms`` is null with ``cuda_ms_reason`` where there are no CUDA events. A round with
    ``valid`` false has its ``reason`` and stays out of every statistic. The windows here are always the classic ones;
    ``adjusted_mj`` is the figure of the round's own ``protocol``, and ``energy`` has every other reading and figure.
    ``kernel_ptx_sha256`` is what ran, ``inject`` what a simulated device was told to show; ``earlier_attempts`` says
    why the round had to be measured again.
    """

    kind: str  # "round"
    created_at: str
    outcome: Outcome
    reason: Reason | None
    workload: str
    payload: str
    device_uuid: str | None
    round: int
    arm: str
    protocol: str
    repeats: int | None
    valid: bool
    cuda_ms: float | None
    wall_ms: float | None
    gross_mj: float | None
    adjusted_mj: float | None
    idle_before_w: float | None
    idle_after_w: float | None
    average_power_w: float | None
    measurement_start: WindowEdge | None
    measurement_end: WindowEdge | None
    idle_before: IdleWindow | None
    idle_after: IdleWindow | None
    cuda_ms_reason: Reason | None
    energy_reason: Reason | None
    energy: EnergyMeasurement | None = None
    kernel_ptx_sha256: str | None = None
    inject: str | None = None
    earlier_attempts: list[Reason] = field(default_factory=list)


@dataclass(frozen=True)
class Summary:
    """Figures over the validations and the valid rounds of a run, confirmation rounds among them.

    ``rounds_expected`` are those asked for and the confirmation rounds that were planned. Medians are over valid
    rounds; ``adjusted_mj_sample_sd`` divides by n-1 and is null under two rounds. ``energy`` summarises each energy
    figure; the reference load's joules are the mean of before and after the rounds.
    """

    draws_expected: int
    draws_validated: int
    total: int | None
    agreed: int | None
    device_correct: int | None
    reference_correct: int | None
    all_replays_equal_eager: bool | None
    rounds_expected: int
    rounds_valid: int
    cuda_ms_median: float | None
    wall_ms_median: float | None
    gross_mj_median: float | None
    adjusted_mj_median: float | None
    adjusted_mj_min: float | None
    adjusted_mj_max: float | None
    adjusted_mj_sample_sd: float | None
    negative_adjusted_rounds: int | None
    energy: list[FigureSummary] = field(default_factory=list)
    reference_joules_per_1e12_operations: float | None = None


@dataclass(frozen=True)
class RunRequest:
    """What was asked for, as the first task of a run accepted it (defaults filled in).

    ``variant`` names the kernels; null: the workload's default. ``accepted_at`` is when the run began. ``protocol``
    null: the device's own. ``rounds`` are measured first, and ``confirm_rounds`` more where those call for it (null: a
    request from before there were any). ``inject`` and ``seed`` are the simulated device's. ``reference_bands`` holds,
    for a model of GPU that no band is shipped for, what accepted runs have shown of the reference load: joules per
    10^12 operations (low, high) and 10^12 operations per second (low, high).
    """

    accepted_at: str
    workload: str
    dag_id: str
    dag_run_id: str
    run_id: str
    trigger: str  # scheduled | manual | backfill | import
    logical_date: str | None
    device: str
    variant: str | None
    payload: str
    draws: list[int]
    rounds: int
    repeats: int | None
    protocol: str | None
    label: str | None
    note: str | None
    inject: str | None = None
    seed: int | None = None
    reference_bands: dict[str, list[float]] = field(default_factory=dict)
    confirm_rounds: int | None = None


@dataclass(frozen=True)
class RunRecord:
    """A whole run: everything the tasks wrote, complete by itself.

    ``outcome`` is the worst of its parts before any comparison with a baseline. ``energy_trust`` is "verified" (every
    telemetry gate passed), "failed" (one did not), "unverified" (one was not made or could not be checked) or
    "unavailable" (no counter); ``energy_trust_reason`` says why. ``gates`` are all of the run's. ``rounds`` are the
    first ones and those that ``confirmation`` planned. Parts that never ran are null or missing from their list.
    """

    kind: str  # "run"
    format: str
    created_at: str
    started_at: str
    completed_at: str | None
    outcome: Outcome
    reason: Reason | None
    request: RunRequest
    provision: ProvisionRecord | None
    verify_sources: VerifyRecord | None
    verify_payload: VerifyRecord | None
    kernel: KernelIdentity | None
    validations: list[ValidationRecord]
    rounds: list[RoundRecord]
    summary: Summary
    energy_trust: str
    energy_trust_reason: Reason | None
    provenance: dict[str, Any] = field(default_factory=dict)
    telemetry: list[TelemetryRecord] = field(default_factory=list)
    gates: list[GateResult] = field(default_factory=list)
    confirmation: ConfirmationRecord | None = None

    @property
    def confirmation_rounds(self) -> list[int]:
        """Numbers of the confirmation rounds that were planned."""
        return self.confirmation.rounds if self.confirmation else []

    @property
    def rounds_expected(self) -> int:
        """The rounds that were asked for, and the confirmation rounds that were planned."""
        return self.request.rounds + len(self.confirmation_rounds)

    @property
    def protocol(self) -> str:
        """The protocol of its rounds: the request's, else the device's, else (nothing was measured) classic."""
        return self.request.protocol or (self.provision and self.provision.protocol) or "classic"
