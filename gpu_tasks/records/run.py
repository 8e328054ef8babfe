"""The request of a run, and its record: what the database loads, and people keep.

Plain dataclasses, standard library only, so that both sides (the GPU host and Airflow) read the same definition. A run
record is complete by itself: whatever is in the database can be rebuilt from the run records. Its parts are in
``parts``, ``energy``, ``comparison`` and ``confirmation``, with the conventions that all of them follow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpu_tasks.records.comparison import CandidateRecord, ComparisonRecord
from gpu_tasks.records.confirmation import ConfirmationRecord
from gpu_tasks.records.energy import FigureSummary, GateResult, TelemetryRecord
from gpu_tasks.records.memory import MemoryRecord
from gpu_tasks.records.outcomes import Outcome
from gpu_tasks.records.parts import KernelIdentity, ProvisionRecord, RoundRecord, ValidationRecord, VerifyRecord
from gpu_tasks.records.qualification import QualificationRecord
from gpu_tasks.records.reason import Reason

FORMAT = "kernel-nightly/1"


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
    ``candidate`` is the spec of a kernel that is tried, ``against`` what it is held against (null: the pinned one) and
    ``blocks`` how many interleaved blocks are wanted. ``kernel_changed``: the kernel is another one than nights had.
    ``variables`` are environment variables that the programs were given, and ``parts`` names what the run was
    to have beside what every run has: ``qualification``, ``memory``.
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
    candidate: str | None = None
    against: str | None = None
    blocks: int | None = None
    kernel_changed: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    parts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class RunRecord:
    """A whole run: everything the tasks wrote, complete by itself.

    ``outcome`` is the worst of its parts before any comparison with a baseline. ``energy_trust`` is "verified" (every
    telemetry gate passed), "failed" (one did not), "unverified" (one was not made or could not be checked) or
    "unavailable" (no counter); ``energy_trust_reason`` says why. ``gates`` are all of the run's. ``rounds`` are the
    first ones and those that ``confirmation`` planned. Of a run that tries a kernel, ``candidate`` says what that is
    and ``comparison`` how it did. ``qualification`` and
    ``memory`` are of workloads that have them. Parts that never ran are null or missing from their list.
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
    candidate: CandidateRecord | None = None
    comparison: ComparisonRecord | None = None
    qualification: QualificationRecord | None = None
    memory: MemoryRecord | None = None

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
