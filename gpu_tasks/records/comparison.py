"""A candidate kernel held against another, usually the pinned one: what it is, and everything seen of the two.

Nothing here says better or worse: that follows from the blocks and predictions, and is a detector's to say. What is
modelled or counted (``StaticFigures``) is kept apart from what was measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gpu_tasks.records.limits import MAX_REPEATS
from gpu_tasks.records.outcomes import Outcome
from gpu_tasks.records.parts import KernelIdentity, RoundRecord, ValidationRecord
from gpu_tasks.records.reason import Reason


@dataclass(frozen=True)
class CandidateRecord:
    """What a candidate spec stands for: the two kernels to compare, each frozen as a bundle.

    ``origin`` is variant, source, ptx, manifest, ref or bundle. ``commit`` is that of a ref; for a path it is HEAD's,
    and ``modified`` says whether the path differs from it. ``against`` is the pinned side. ``equals_pinned``: both have
    the same text and geometry, so that every difference between them would be chance. ``notes`` are for people.
    """

    kind: str  # "candidate"
    created_at: str
    outcome: Outcome
    reason: Reason | None
    workload: str
    spec: str
    origin: str | None
    commit: str | None
    modified: bool | None
    bundle: str | None
    kernel: KernelIdentity | None
    against: KernelIdentity | None
    against_bundle: str | None
    equals_pinned: bool | None
    notes: list[str]


@dataclass(frozen=True)
class StaticFigures:
    """Of one kernel, counted in its text or modelled, never measured.

    ``modelled_cycles`` is the critical path of all launches (``gpu_tasks.devices.emulated.critical_path``),
    ``shared_bytes`` the most of any launch a block, static and dynamic.
    """

    ptx_lines: int
    instructions: int
    shared_bytes: int
    modelled_cycles: int


@dataclass(frozen=True)
class DifferingPrediction:
    """One query on which candidate, pinned kernel and frozen prediction are not all the same.

    Classes are null where that kernel predicted nothing. The scores are the float64 reference's of the class that each
    kernel chose, and ``gap`` is pinned minus candidate: near 0 (about 1e-3 and less) either could have been chosen by
    rounding. Where the pinned kernel agrees with the candidate or predicted nothing, the frozen class takes its place.
    """

    draw: int
    index: int
    candidate: int | None
    pinned: int | None
    frozen: int
    candidate_score: float | None
    pinned_score: float | None
    gap: float | None


@dataclass(frozen=True)
class BlockFigures:
    """One block of one interleaved round; null where the device has no such figure.

    ``valid`` is that of the round. Energies are mJ a replay above the block's own idle power, ``control_mj`` of the
    control; times are ms a replay, by the device's events and by the host's clock.
    """

    round: int
    block: int
    valid: bool
    candidate_mj: float | None
    pinned_mj: float | None
    control_mj: float | None
    candidate_cuda_ms: float | None
    pinned_cuda_ms: float | None
    candidate_wall_ms: float | None
    pinned_wall_ms: float | None


TURN_ARMS = ("candidate", "baseline")
"""Whose turn it can be where the two kernels are timed alone; the baseline is the pinned kernel."""


@dataclass(frozen=True)
class TimedTurn:
    """One turn of one kernel in a block of a round without an energy counter.

    ``arm`` is candidate or baseline. ``active_s`` is the host's time for all ``repeats``, ``device_ms`` the device's
    own for one.
    """

    round: int
    block: int
    arm: str
    repeats: int
    active_s: float
    device_ms: float | None

    def impossible(self) -> Iterator[tuple[str, str, object]]:
        """Fields of a turn that nobody can have taken, with what was expected and what was found."""
        repeats, device_ms = self.repeats, self.device_ms
        for name, holds, expected in (
            ("round", self.round >= 0, "0 or more"),
            ("block", self.block >= 0, "0 or more"),
            ("arm", self.arm in TURN_ARMS, f"one of {', '.join(TURN_ARMS)}"),
            ("repeats", 1 <= repeats <= MAX_REPEATS, f"1 to {MAX_REPEATS}"),
            ("active_s", self.active_s > 0, "more than 0"),
            ("device_ms", device_ms is None or device_ms > 0, "more than 0, or null"),
        ):
            if not holds:
                yield name, expected, getattr(self, name)


@dataclass(frozen=True)
class ComparisonRecord:
    """Candidate and pinned kernel in one process on one device: correctness first, then rounds of interleaved blocks.

    ``emulated`` are the candidate's validations on the emulator with every check, and empty where that is the device.
    ``validations`` are the candidate's on the device; in a run record they are the run's own, and empty here.
    ``differing`` are the first thousand of ``differing_total``. ``rounds`` have arm "comparison"; their baseline is the
    pinned kernel. ``blocks`` follow from their segments, or from ``turns`` where the device has no energy counter.
    ``not_measured`` says why there are no rounds (``candidate_wrong``, ``pinned_wrong``, ``no_energy_counter``,
    ``no_blocks``). ``energy_trust`` is as in a run record, of these rounds alone.
    """

    kind: str  # "comparison"
    created_at: str
    outcome: Outcome
    reason: Reason | None
    workload: str
    payload: str
    device_uuid: str | None
    candidate: KernelIdentity | None
    pinned: KernelIdentity | None
    candidate_static: StaticFigures | None
    pinned_static: StaticFigures | None
    emulated: list[ValidationRecord]
    validations: list[ValidationRecord]
    pinned_validations: list[ValidationRecord]
    differing: list[DifferingPrediction]
    differing_total: int
    rounds: list[RoundRecord]
    blocks: list[BlockFigures]
    not_measured: Reason | None
    energy_trust: str
    energy_trust_reason: Reason | None
    turns: list[TimedTurn] = field(default_factory=list)
