"""Run records made up for tests: eleven draws of a thousand, seven rounds, any part of it changed at will."""

from __future__ import annotations

import hashlib
import statistics
from dataclasses import replace
from typing import Any

from gpu_tasks.records import (
    FORMAT,
    DeviceFingerprint,
    DrawIdentity,
    EnvironmentFingerprint,
    KernelIdentity,
    Outcome,
    PayloadIdentity,
    PredictionMismatch,
    ProvisionRecord,
    Reason,
    RoundRecord,
    RunRecord,
    RunRequest,
    Summary,
    ValidationRecord,
    VerifyRecord,
    run_id_for,
    to_json,
)

NOW = "2026-11-30T02:00:00.000000Z"
LATER = "2026-11-30T02:05:00.000000Z"
GPU = DeviceFingerprint("cuda", "Test GPU", "GPU-1", 1 << 35, 108, [8, 0], True, None)
OTHER_GPU = replace(GPU, name="Other GPU", uuid="GPU-2")
NO_COUNTER = Reason("no_energy_counter", "the reference device has no energy counter")
CPU = DeviceFingerprint("reference", "Test CPU", "cpu-1", None, None, None, False, NO_COUNTER)
ENVIRONMENT = EnvironmentFingerprint("3.11.9", "Linux x86_64", "570.1", "12.8", {"torch": "2.13.0", "numpy": "2.2"})


def digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


KERNEL = KernelIdentity("original", digest("ptx"), 3738, [])


def sha256_of(record: RunRecord) -> str:
    return hashlib.sha256(to_json(record).encode()).hexdigest()


def payload(name: str = "original", draws: int = 11) -> PayloadIdentity:
    identities = [DrawIdentity(d, 20261201 + d, digest(name, d), digest("frozen", name, d)) for d in range(draws)]
    return PayloadIdentity(name, digest("manifest", name), identities)


def validation(draw: int, mismatches: tuple[PredictionMismatch, ...] = (), **changes: Any) -> ValidationRecord:
    record = ValidationRecord(
        kind="validation",
        created_at=NOW,
        outcome=Outcome.REGRESSION if mismatches else Outcome.OK,
        reason=Reason("predictions_disagree", f"draw {draw} disagrees") if mismatches else None,
        workload="qda",
        payload="original",
        device_uuid="GPU-1",
        draw=draw,
        dataset_seed=20261201 + draw,
        payload_sha256=digest("original", draw),
        total=1000,
        agreed=1000 - len(mismatches),
        device_correct=680,
        reference_correct=680,
        predictions_int32_sha256=digest("int32", draw, mismatches),
        mismatches=list(mismatches),
        replays_equal_eager=[True, True, True],
        scratch_poisoned_before_eager_and_each_replay=True,
        captured_graph_reused_across_changed_inputs=True,
        intermediate_floats_equal_reference_bitwise=False,
        duration_s=0.5,
    )
    return replace(record, **changes)


def lost_validation(draw: int) -> ValidationRecord:
    return validation(
        draw,
        outcome=Outcome.INFRASTRUCTURE_FAILURE,
        reason=Reason("device_lost", "the GPU fell off the bus"),
        total=None,
        agreed=None,
        device_correct=None,
        reference_correct=None,
        predictions_int32_sha256=None,
        replays_equal_eager=[],
    )


def measured(number: int, adjusted_mj: float | None = 0.6, **changes: Any) -> RoundRecord:
    record = RoundRecord(
        kind="round",
        created_at=NOW,
        outcome=Outcome.OK,
        reason=None,
        workload="qda",
        payload="original",
        device_uuid="GPU-1",
        round=number,
        arm="main",
        protocol="classic",
        repeats=1000,
        valid=True,
        cuda_ms=0.0164,
        wall_ms=0.0165,
        gross_mj=None if adjusted_mj is None else adjusted_mj + 0.66,
        adjusted_mj=adjusted_mj,
        idle_before_w=40.0,
        idle_after_w=40.1,
        average_power_w=77.0,
        measurement_start=None,
        measurement_end=None,
        idle_before=None,
        idle_after=None,
        cuda_ms_reason=None,
        energy_reason=NO_COUNTER if adjusted_mj is None else None,
    )
    return replace(record, **changes)


def run_record(name: str = "manual__1", **changes: Any) -> RunRecord:
    """A run of eleven agreeing draws and seven rounds around 0.6 mJ; ``changes`` replace fields or parts of it."""
    device = changes.pop("device", GPU)
    validations = changes.pop("validations", [validation(draw) for draw in range(11)])
    energies = changes.pop("energies", [0.59, 0.595, 0.6, 0.6, 0.601, 0.605, 0.61])
    rounds = changes.pop("rounds", [measured(number, mj) for number, mj in enumerate(energies)])
    trigger = changes.pop("trigger", "manual")
    identity = changes.pop("payload", payload())
    request = RunRequest(
        accepted_at=NOW,
        workload="qda",
        dag_id="nightly_qda",
        dag_run_id=name,
        run_id=run_id_for("nightly_qda", name),
        trigger=trigger,
        logical_date=NOW,
        device="auto",
        variant=None,
        payload=identity.name if identity else "original",
        draws=list(range(11)),
        rounds=7,
        repeats=None,
        protocol="classic",
        label=None,
        note=None,
    )
    outcome = Outcome.worst([*(v.outcome for v in validations), *(r.outcome for r in rounds)])
    first = next((r.reason for r in [*validations, *rounds] if r.outcome is outcome), None)
    has_counter = device is not None and device.energy_counter
    record = RunRecord(
        kind="run",
        format=FORMAT,
        created_at=LATER,
        started_at=NOW,
        completed_at=LATER,
        outcome=outcome,
        reason=first,
        request=request,
        provision=ProvisionRecord("provision", NOW, Outcome.OK, None, "qda", "auto", device, ENVIRONMENT, KERNEL),
        verify_sources=VerifyRecord(
            "verify", NOW, Outcome.OK, None, "qda", "sources", 1, [], digest("pins"), {"a.py": digest("a")}, None
        ),
        verify_payload=VerifyRecord("verify", NOW, Outcome.OK, None, "qda", "payload", 11, [], None, None, identity),
        kernel=KERNEL,
        validations=validations,
        rounds=rounds,
        summary=summary_of(validations, rounds),
        energy_trust="verified" if has_counter else "unavailable",
        energy_trust_reason=None if has_counter else NO_COUNTER,
        provenance={},
    )
    return replace(record, **changes)


def summary_of(validations: list[ValidationRecord], rounds: list[RoundRecord]) -> Summary:
    counted = [v for v in validations if v.total is not None]
    valid = [r for r in rounds if r.valid]
    energies = [r.adjusted_mj for r in valid if r.adjusted_mj is not None]
    return Summary(
        draws_expected=11,
        draws_validated=len(counted),
        total=sum(v.total or 0 for v in counted) if counted else None,
        agreed=sum(v.agreed or 0 for v in counted) if counted else None,
        device_correct=sum(v.device_correct or 0 for v in counted) if counted else None,
        reference_correct=sum(v.reference_correct or 0 for v in counted) if counted else None,
        all_replays_equal_eager=all(all(v.replays_equal_eager) for v in counted) if counted else None,
        rounds_expected=7,
        rounds_valid=len(valid),
        cuda_ms_median=0.0164 if valid else None,
        wall_ms_median=0.0165 if valid else None,
        gross_mj_median=None,
        adjusted_mj_median=statistics.median(energies) if energies else None,
        adjusted_mj_min=min(energies, default=None),
        adjusted_mj_max=max(energies, default=None),
        adjusted_mj_sample_sd=statistics.stdev(energies) if len(energies) > 1 else None,
        negative_adjusted_rounds=sum(mj < 0 for mj in energies) if energies else None,
    )
