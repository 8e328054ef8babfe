"""Records of a workload that trains, made up for tests: states by hash, settings, a qualification, memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpu_tasks.records import (
    TRIAL,
    DeviceMemory,
    Inventory,
    KernelProfile,
    LibrarySetting,
    MemoryRecord,
    NamedTensor,
    Outcome,
    ProfiledKernel,
    QualificationCase,
    QualificationRecord,
    Reason,
    ReferenceState,
    RoundRecord,
    RunRecord,
    Storage,
    ValidationRecord,
    run_id_for,
)
from tests.integration.regression.example_energy import energy, energy_run, figure, sham
from tests.integration.regression.example_records import NOW, digest, measured, payload, validation

WORKLOAD, DAG = "learner", "nightly_learner"
OF_LEARNER = {"workload": WORKLOAD, "payload": WORKLOAD}
WORKSPACE = LibrarySetting("CUBLAS_WORKSPACE_CONFIG", ":16:8", "program")
SETTINGS = (WORKSPACE, LibrarySetting("CUBLASLT_WORKSPACE_SIZE", None, "unset"))
STATES = ("final_parameter_sha256.head.bias", "predictions_sha256", "scores_sha256")
NOT_COUNTED = Reason("no_allocator", "the allocator of a CPU counts nothing")
NO_PROFILE = Reason("not_asked", "no profile was asked for")
PROFILE = KernelProfile("2025.3", 2, [ProfiledKernel("ampere_sgemm", 2, 4100.0, 1024.0, 87.5)])
TRIALS = (1060.0, 1069.0, 1078.0)
PEAK, RESERVED = 15_663_104, 29_360_128


def states(draw: int = 0, changed: Sequence[str] = ()) -> dict[str, str]:
    """Hashes of where a task ended on a draw; those named in ``changed`` are others."""
    return {name: digest(name, draw, name in changed) for name in STATES}


def state_validation(draw: int, changed: Sequence[str] = (), **changes: Any) -> ValidationRecord:
    """A draw whose replays all left the same, and whose reference ended where it did when it was frozen."""
    grid = digest("grid", draw)
    record = validation(
        draw,
        **OF_LEARNER,
        state_hashes=states(draw, changed),
        replay_states_equal=[True, True, True],
        reference_state=ReferenceState("state_grid_sha256", grid, grid),
    )
    return replace(record, **changes)


def trial_round(number: int, mj: float = 1069.0, **changes: Any) -> RoundRecord:
    """A trial whose aligned figure is 64 mJ larger."""
    figures = [figure("trial", mj), figure("aligned", mj + 64)]
    record = measured(
        number,
        mj,
        **OF_LEARNER,
        arm="candidate",
        protocol=TRIAL,
        repeats=131,
        cuda_ms=38.4,
        wall_ms=38.5,
        energy=energy({}, figures=figures, sham=sham() if number == 0 else None),
        calibration_ms=38.45,
    )
    return replace(record, **changes)


def case(name: str = "training depth 1", failures: Sequence[str] = (), **figures: Any) -> QualificationCase:
    return QualificationCase(name, not failures, 106, list(failures), {"depth": 1, "maximum_abs_error": 1e-6} | figures)


def qualification(*failures: str, **changes: Any) -> QualificationRecord:
    """Two cases of 106 checks each; ``failures`` are of the second."""
    record = QualificationRecord(
        kind="qualification",
        created_at=NOW,
        outcome=Outcome.REGRESSION if failures else Outcome.OK,
        reason=Reason("not_qualified", f"{len(failures)} checks failed") if failures else None,
        workload=WORKLOAD,
        device_uuid="GPU-1",
        computed_on="cuda:0",
        captured=True,
        passed=not failures,
        checks=212,
        maximum_abs_error=1.2e-6,
        tolerance={"atol": 2e-5, "rtol": 3e-3},
        cases=[case(), case("training depth 2", failures, depth=2)],
        duration_s=0.6,
    )
    return replace(record, **changes)


def not_asked(**changes: Any) -> QualificationRecord:
    """A qualification whose device was lost."""
    nothing: dict[str, Any] = dict.fromkeys(("computed_on", "captured", "passed", "checks", "maximum_abs_error"))
    lost = {"outcome": Outcome.INFRASTRUCTURE_FAILURE, "reason": Reason("device_lost", "the GPU fell off the bus")}
    return replace(qualification(), **{**nothing, **lost, "tolerance": {}, "cases": [], "duration_s": None, **changes})


def inventory(allocated: int | None = 14_237_696, extra: int = 0) -> Inventory:
    """Three tensors on two storages; ``extra`` bytes are added to the larger one."""
    tensors = [
        NamedTensor("raw", 0, [1000, 81], [81, 1], "torch.float32", 0, 324_000),
        NamedTensor("raw.first", 0, [81], [1], "torch.float32", 0, 324),
        NamedTensor("labels", 1, [1000], [1], "torch.int64", 0, 8000),
    ]
    storages = [
        Storage(0, "cuda:0", 140_000_000_000_000, 324_000 + extra, ["raw", "raw.first"]),
        Storage(1, "cuda:0", 140_000_001_000_000, 8000, ["labels"]),
    ]
    named = 332_000 + extra
    return Inventory(tensors, storages, named, allocated, None if allocated is None else allocated - named)


def allocator(peak: int = PEAK, reserved: int = RESERVED) -> DeviceMemory:
    return DeviceMemory(1024, 2_097_152, 14_237_696, peak, 14_237_696, 29_360_128, reserved, peak - 1024)


def memory(peak: int = PEAK, extra: int = 0, unmatched: Sequence[str] = (), **changes: Any) -> MemoryRecord:
    """One task of five runs after which every hash but those ``unmatched`` was the same, looked at with a profile."""
    record = MemoryRecord(
        kind="memory",
        created_at=NOW,
        outcome=Outcome.REGRESSION if unmatched else Outcome.OK,
        reason=Reason("not_repeatable", f"{len(unmatched)} hashes differ") if unmatched else None,
        **OF_LEARNER,
        device_uuid="GPU-1",
        draw=0,
        memory=allocator(peak),
        memory_reason=None,
        inventory=inventory(extra=extra),
        cache_bytes=41_943_040,
        cache_reason=None,
        state_hashes=states(),
        invocations=5,
        hashes_matched=[name for name in STATES if name not in unmatched],
        total=1000,
        agreed=1000,
        predictions_sha256=digest("predictions"),
        predictions_file="predictions.npy",
        profile=PROFILE,
        profile_reason=None,
        duration_s=2.5,
    )
    return replace(record, **changes)


def cpu_memory(**changes: Any) -> MemoryRecord:
    """The same on a CPU, whose allocator counts nothing, without a profile."""
    nothing = {"memory": None, "memory_reason": NOT_COUNTED, "cache_bytes": None, "cache_reason": NOT_COUNTED}
    other = {"profile": None, "profile_reason": NO_PROFILE, "predictions_file": None}
    return memory(**{**nothing, **other, "inventory": inventory(None), **changes})


def learner_run(name: str = "learner__1", trials: Sequence[float] = TRIALS, **changes: Any) -> RunRecord:
    """Two draws, three trials, a qualification and a look at memory; ``settings`` are those of its library."""
    settings = list(changes.pop("settings", SETTINGS))
    validations = changes.pop("validations", [state_validation(draw) for draw in range(2)])
    rounds = changes.pop("rounds", [trial_round(number, mj) for number, mj in enumerate(trials)])
    parts = {"qualification": qualification(), "memory": memory()}
    record = energy_run(name, rounds=rounds, **{**parts, **changes})
    assert record.provision and record.verify_sources and record.verify_payload
    counts = {"draws_expected": len(validations), "draws_validated": len(validations), "rounds_expected": len(rounds)}
    hits = {word: sum(getattr(v, word) or 0 for v in validations) for word in ("total", "agreed", "device_correct")}
    set_of_draws = payload(WORKLOAD, draws=len(validations))
    return replace(
        record,
        request=replace(
            record.request,
            workload=WORKLOAD,
            dag_id=DAG,
            run_id=run_id_for(DAG, name),
            payload=WORKLOAD,
            draws=list(range(len(validations))),
            rounds=len(rounds),
        ),
        provision=replace(record.provision, workload=WORKLOAD, protocol=TRIAL, settings=settings),
        verify_sources=replace(record.verify_sources, workload=WORKLOAD),
        verify_payload=replace(record.verify_payload, workload=WORKLOAD, payload=set_of_draws),
        telemetry=[replace(part, workload=WORKLOAD) for part in record.telemetry],
        validations=validations,
        summary=replace(record.summary, **counts, **hits, reference_correct=hits["device_correct"]),
    )
