"""The parts of a run record, one a task: what it ran on, what was verified, the draws validated, the rounds measured.

Conventions: units in names (``_mj``, ``_w``, ``_ms``, ``_s``, ``_bytes``); times are aware UTC in ISO
8601 with a trailing ``Z``; a figure that could not be had is ``null`` with a reason beside it, never 0.
Floats are written with Python's shortest round-trip form, so reading gives back the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpu_tasks.records.energy import EnergyMeasurement, IdleWindow, WindowEdge
from gpu_tasks.records.outcomes import Outcome
from gpu_tasks.records.reason import Reason


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
class LibrarySetting:
    """One setting of a library by which a result is computed, as it was in force.

    ``origin`` is ``environment`` (set before the process began), ``program`` or ``unset`` (``value`` is then null).
    """

    name: str
    value: str | None
    origin: str


@dataclass(frozen=True)
class ProvisionRecord:
    """The device chosen, the kernel it will run and the environment the tasks run in.

    ``environment_differences`` are against the shipped baseline of the same workload and kind of device, and empty
    where none is shipped as well as where nothing differs. ``protocol`` is the one that rounds on this
    device use unless the request names another. ``settings`` are of the library that the workload computes with, and
    empty for one that computes with none.
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
    settings: list[LibrarySetting] = field(default_factory=list)


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
    ``sources`` maps each path to the sha256 found; kernels that were allowed to be changed, as in a run that tries one,
    are no mismatch. For the payload, ``payload`` identifies the set.
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
class ReferenceState:
    """Where the reference ended on a draw, by hash: when the draw was frozen, and here and now.

    ``expected_sha256`` is null for a draw of a set that has no such hash. docs/learner.md says what is hashed.
    """

    name: str
    expected_sha256: str | None
    found_sha256: str


@dataclass(frozen=True)
class ValidationRecord:
    """One draw: the device's predictions against the frozen ones, and replays against the eager run.

    ``agreed`` and the ``_correct`` counts are out of ``total``. ``outcome`` is ``regression`` when a prediction
    disagrees or a replay differs from the eager run. Counts are null when the draw could not be run.
    ``state_hashes`` are of what the eager run started from and left behind, by name (null: a workload that leaves
    nothing but its predictions); ``replay_states_equal`` says of each replay whether all of them came out again, and
    ``reference_state`` where the reference ended, for a workload that trains.
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
    state_hashes: dict[str, str] | None = None
    replay_states_equal: list[bool] = field(default_factory=list)
    reference_state: ReferenceState | None = None


@dataclass(frozen=True)
class RoundRecord:
    """One measurement round: raw readings and the figures derived from them (``gpu_tasks.energy.figures``).

    ``cuda_ms`` (CUDA-event time a replay), ``wall_ms``, ``gross_mj`` and ``adjusted_mj`` are per replay;
    ``adjusted_mj`` may be negative and is kept so. Energy fields are null with ``energy_reason`` where the
    device has no counter, ``cuda_ms`` is null with ``cuda_ms_reason`` where there are no CUDA events. A round with
    ``valid`` false has its ``reason`` and stays out of every statistic. The windows here are always the classic ones,
    but for a trial, whose are its own; ``calibration_ms`` is what one of its tasks took before it, where its repeats
    follow from that. ``adjusted_mj`` is the figure of the round's own ``protocol``, and ``energy`` has every other
    reading and figure.
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
    calibration_ms: float | None = None
