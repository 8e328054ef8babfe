"""The original record of the QDA on eleven draws, as a run of this project."""

from __future__ import annotations

import json
from typing import Any

from gpu_tasks.convert.checking import check, times_in_order
from gpu_tasks.convert.known import NO_GATES, WITHDRAWN, name_of, record_time
from gpu_tasks.convert.qda_checks import VERSIONS, facts, summary_facts
from gpu_tasks.convert.qda_form import DrawResult, QdaRecord, Round
from gpu_tasks.energy.figures import summarise
from gpu_tasks.payload.draws import Payload
from gpu_tasks.records import (
    FORMAT,
    DeviceFingerprint,
    EnvironmentFingerprint,
    KernelIdentity,
    Outcome,
    ProvisionRecord,
    Reason,
    RoundRecord,
    RunRecord,
    RunRequest,
    ValidationRecord,
    VerifyRecord,
    WindowEdge,
    from_json,
    run_id_for,
)
from gpu_tasks.workloads.qda.original import ORIGINAL
from gpu_tasks.workloads.registry import get_workload

WORKLOAD = "qda"
TIMES = (
    "validations carry the time at which the original run started and rounds the time at which it ended: "
    "it kept no others"
)


def convert_qda(content: dict[str, Any], source: str) -> RunRecord:
    """Check and convert; raises ``BadInput`` naming ``source`` and field."""
    record = from_json(json.dumps(content), QdaRecord, source)
    payload = Payload(ORIGINAL.name, get_workload(WORKLOAD))
    times_in_order(source, [(f"$.{name}", getattr(record, name)) for name in ("verified_at_utc", "completed_at_utc")])
    check(source, facts(record, payload))
    started, completed = record_time(record.verified_at_utc), record_time(record.completed_at_utc)
    name = name_of(WORKLOAD, record.hardware.uuid, record.completed_at_utc, content)
    validations = [_validation(record, draw, started) for draw in record.validation.draws]
    rounds = [_round(record, measured, completed) for measured in record.rounds]
    summary = summarise(len(validations), validations, len(rounds), rounds)
    check(source, summary_facts(record, summary))
    differing = next((validation.reason for validation in validations if validation.reason), None)
    return RunRecord(
        kind="run",
        format=FORMAT,
        created_at=completed,
        started_at=started,
        completed_at=completed,
        outcome=Outcome.worst(validation.outcome for validation in validations),
        reason=differing,
        request=_request(record, name, started),
        provision=_provision(record, started),
        verify_sources=None,
        verify_payload=_verified(record, payload, started),
        kernel=_kernel(record),
        validations=validations,
        rounds=rounds,
        summary=summary,
        energy_trust="unverified",
        energy_trust_reason=WITHDRAWN.get(name, NO_GATES),
        provenance=_provenance(record, name),
    )


def _request(record: QdaRecord, name: str, started: str) -> RunRequest:
    return RunRequest(
        accepted_at=started,
        workload=WORKLOAD,
        dag_id="import",
        dag_run_id=name,
        run_id=run_id_for("import", name),
        trigger="import",
        logical_date=None,
        device="cuda",
        variant=None,
        payload=ORIGINAL.name,
        draws=[draw.draw for draw in record.validation.draws],
        rounds=len(record.rounds),
        repeats=record.rounds[0].repeats,
        protocol="classic",
        label=None,
        note=None,
    )


def _provision(record: QdaRecord, started: str) -> ProvisionRecord:
    hardware, versions = record.hardware, record.versions
    return ProvisionRecord(
        kind="provision",
        created_at=started,
        outcome=Outcome.OK,
        reason=None,
        workload=WORKLOAD,
        requested_device="cuda",
        device=DeviceFingerprint(
            kind="cuda",
            name=hardware.name,
            uuid=hardware.uuid,
            memory_total_bytes=hardware.memory_total_bytes,
            multiprocessors=hardware.multiprocessors,
            compute_capability=hardware.compute_capability,
            energy_counter=True,
            energy_counter_reason=None,
        ),
        environment=EnvironmentFingerprint(
            python=versions["python"],
            platform=versions["platform"],
            driver=versions["driver"],
            cuda=versions["cuda"],
            packages={name: version for name, version in versions.items() if name not in VERSIONS},
        ),
        kernel=_kernel(record),
    )


def _kernel(record: QdaRecord) -> KernelIdentity:
    kernel = record.kernel
    launches = [{"kernel": name, **vars(getattr(kernel, name))} for name in ("stats", "score")]
    return KernelIdentity("original", record.provenance.ptx_sha256, kernel.ptx_lines, launches)


def _verified(record: QdaRecord, payload: Payload, started: str) -> VerifyRecord:
    return VerifyRecord(
        kind="verify",
        created_at=started,
        outcome=Outcome.OK,
        reason=None,
        workload=WORKLOAD,
        subject="payload",
        files_checked=len(record.validation.draws),
        mismatches=[],
        sources_sha256=None,
        sources=None,
        payload=payload.identity(),
    )


def _validation(record: QdaRecord, draw: DrawResult, started: str) -> ValidationRecord:
    replays, whole = draw.graph_replays_equal_eager, record.validation
    message = f"draw {draw.draw}: a replay predicts otherwise than the eager run"
    return ValidationRecord(
        kind="validation",
        created_at=started,
        outcome=Outcome.OK if all(replays) else Outcome.REGRESSION,
        reason=None if all(replays) else Reason("replay_differs", message),
        workload=WORKLOAD,
        payload=ORIGINAL.name,
        device_uuid=record.hardware.uuid,
        draw=draw.draw,
        dataset_seed=draw.dataset_seed,
        payload_sha256=draw.payload_sha256,
        total=draw.total,
        agreed=draw.gpu_agrees_with_frozen_cpu_predictions,
        device_correct=draw.gpu_correct,
        reference_correct=draw.cpu_correct,
        predictions_int32_sha256=draw.gpu_predictions_int32_sha256,
        mismatches=[],
        replays_equal_eager=replays,
        scratch_poisoned_before_eager_and_each_replay=draw.scratch_poisoned_before_eager_and_each_replay,
        captured_graph_reused_across_changed_inputs=whole.one_captured_graph_reused_across_changed_inputs,
        intermediate_floats_equal_reference_bitwise=whole.intermediate_float_values_bitwise_equal_to_reference,
        duration_s=None,
    )


def _round(record: QdaRecord, measured: Round, completed: str) -> RoundRecord:
    return RoundRecord(
        kind="round",
        created_at=completed,
        outcome=Outcome.OK,
        reason=None,
        workload=WORKLOAD,
        payload=ORIGINAL.name,
        device_uuid=record.hardware.uuid,
        round=measured.round,
        arm="candidate",
        protocol="classic",
        repeats=measured.repeats,
        valid=True,
        cuda_ms=measured.cuda_ms,
        wall_ms=measured.wall_ms,
        gross_mj=measured.gross_mj,
        adjusted_mj=measured.adjusted_mj,
        idle_before_w=measured.idle_before_w,
        idle_after_w=measured.idle_after_w,
        average_power_w=measured.average_power_w,
        measurement_start=WindowEdge(**vars(measured.measurement_start)),
        measurement_end=WindowEdge(**vars(measured.measurement_end)),
        idle_before=measured.idle_before,
        idle_after=measured.idle_after,
        cuda_ms_reason=None,
        energy_reason=None,
    )


def _provenance(record: QdaRecord, name: str) -> dict[str, Any]:
    provenance = record.provenance
    return {
        "source": name,
        "runner_sha256": provenance.runner_sha256,
        "ptx_sha256": provenance.ptx_sha256,
        "benchmark_dataset_seed": provenance.benchmark_dataset_seed,
        "benchmark_payload_sha256": provenance.benchmark_payload_sha256,
        "kernel_mode": record.kernel.mode,
        "fp16_inputs": record.kernel.fp16_inputs,
        "times": TIMES,
    }
