"""The original records of the reversible learner, as runs of this project: three rounds and one validation each.

The original goes along under ``provenance.original``, all but its sentences, so that no figure of it is lost.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

from gpu_tasks.convert.checking import check, times_in_order
from gpu_tasks.convert.known import LEARNER_DRAW_0, NO_GATES, name_of, record_time
from gpu_tasks.convert.learner_checks import counter_reading, measurement_facts, qualification_facts, trial_figures
from gpu_tasks.convert.learner_form import Energy, MeasurementRecord, Metadata, QualificationRecord, Trial
from gpu_tasks.convert.learner_parts import measured_memory, qualification, qualified_memory, settings_of, states
from gpu_tasks.convert.sentences import left_out, without_sentences
from gpu_tasks.energy.figures import summarise
from gpu_tasks.records import (
    FORMAT,
    DeviceFingerprint,
    DrawIdentity,
    EnvironmentFingerprint,
    IdleWindow,
    KernelIdentity,
    MemoryRecord,
    Outcome,
    PayloadIdentity,
    ProvisionRecord,
    RoundRecord,
    RunRecord,
    RunRequest,
    ValidationRecord,
    VerifyRecord,
    WindowEdge,
    from_json,
    run_id_for,
)
from gpu_tasks.records import QualificationRecord as OwnQualificationRecord

WORKLOAD, PROTOCOL, PAYLOAD = "learner", "trial", "learner-record"
NOT_RECORDED = "not recorded"
KERNEL = KernelIdentity("original", None, None, [])
TIMES = "everything carries the time at which the original run ended: it kept no other"
COUNTS = (
    "the original read no labels of the queries: its predictions are those of a CPU run, byte for byte, and the counts "
    "are that run's"
)


def convert_measurement(content: dict[str, Any], source: str) -> RunRecord:
    """Check and convert a measurement; raises ``BadInput`` naming ``source`` and field."""
    record = from_json(json.dumps(content), MeasurementRecord, source)
    result = record.result
    times = [("$.result.completed_at_utc", result.completed_at_utc), ("$.finished_at_utc", record.finished_at_utc)]
    times_in_order(source, times)
    check(source, measurement_facts(record))
    name = name_of("learner-measure", result.energy.hardware.uuid, result.completed_at_utc, content)
    run = _run(result.energy, name, result.completed_at_utc, result.input_archive_sha256, content)
    provision = dataclasses.replace(_provision(result.energy, run.created_at), settings=settings_of(result))
    return _with_parts(
        dataclasses.replace(run, provision=provision),
        qualification(result.metadata, result.energy.hardware.uuid, WORKLOAD, run.created_at),
        measured_memory(result, WORKLOAD, PAYLOAD, run.created_at),
    )


def convert_qualification(content: dict[str, Any], source: str) -> RunRecord:
    """Check and convert a qualification; raises ``BadInput`` naming ``source`` and field."""
    record = from_json(json.dumps(content), QualificationRecord, source)
    times_in_order(source, [("$.completed_at_utc", record.completed_at_utc)])
    check(source, qualification_facts(record))
    name = name_of("learner-qualification", record.energy.hardware.uuid, record.completed_at_utc, content)
    run = _run(record.energy, name, record.completed_at_utc, None, content)
    return _with_parts(
        run,
        qualification(record.metadata, record.energy.hardware.uuid, WORKLOAD, run.created_at, record.cuda_validation),
        qualified_memory(record.memory, record.energy, WORKLOAD, PAYLOAD, run.created_at),
    )


def _with_parts(run: RunRecord, qualified: OwnQualificationRecord, memory: MemoryRecord) -> RunRecord:
    """The run with what else was checked, and as good as that."""
    reason = next((part.reason for part in (qualified, memory) if part.outcome is not Outcome.OK), None)
    outcome = Outcome.worst([run.outcome, qualified.outcome, memory.outcome])
    return dataclasses.replace(run, outcome=outcome, reason=reason, qualification=qualified, memory=memory)


def _run(
    energy: Energy, name: str, completed_at: str, archive_sha256: str | None, content: dict[str, Any]
) -> RunRecord:
    now = record_time(completed_at)
    validations = [_validation(energy, now, archive_sha256)]
    rounds = [_round(trial, energy, now) for trial in energy.trials]
    return RunRecord(
        kind="run",
        format=FORMAT,
        created_at=now,
        started_at=now,
        completed_at=now,
        outcome=Outcome.OK,
        reason=None,
        request=_request(energy, name, now),
        provision=_provision(energy, now),
        verify_sources=None,
        verify_payload=_verify_payload(energy.before_metadata, now, archive_sha256),
        kernel=KERNEL,
        validations=validations,
        rounds=rounds,
        summary=summarise(len(validations), validations, len(rounds), rounds),
        energy_trust="unverified",
        energy_trust_reason=NO_GATES,
        provenance={
            "source": name,
            "times": TIMES,
            "counts": COUNTS,
            "original": without_sentences(content),
            "left_out": sorted(left_out(content)),
        },
    )


def _request(energy: Energy, name: str, now: str) -> RunRequest:
    return RunRequest(
        accepted_at=now,
        workload=WORKLOAD,
        dag_id="import",
        dag_run_id=name,
        run_id=run_id_for("import", name),
        trigger="import",
        logical_date=None,
        device="cuda",
        variant=None,
        payload=PAYLOAD,
        draws=[LEARNER_DRAW_0.draw],
        rounds=len(energy.trials),
        repeats=energy.repeats_per_trial,
        protocol=PROTOCOL,
        label=None,
        note=None,
    )


def _provision(energy: Energy, now: str) -> ProvisionRecord:
    hardware, software = energy.hardware, energy.software
    packages = {"torch": software.torch, "numpy": software.numpy, "nvidia-ml-py": software.nvidia_ml_py}
    return ProvisionRecord(
        kind="provision",
        created_at=now,
        outcome=Outcome.OK,
        reason=None,
        workload=WORKLOAD,
        requested_device="cuda",
        device=DeviceFingerprint(
            kind="cuda",
            name=hardware.gpu,
            uuid=hardware.uuid,
            memory_total_bytes=hardware.total_memory_bytes,
            multiprocessors=None,
            compute_capability=None,
            energy_counter=True,
            energy_counter_reason=None,
        ),
        environment=EnvironmentFingerprint(software.python, NOT_RECORDED, hardware.driver, software.cuda, packages),
        kernel=KERNEL,
    )


def _verify_payload(metadata: Metadata, now: str, archive_sha256: str | None) -> VerifyRecord:
    """The inputs, a payload of their own: records that had the same arrays, byte for byte, are of one payload.

    The archive that held them is known of one of the originals; without its hash no draw can be named.
    """
    known = LEARNER_DRAW_0
    arrays = {**metadata.input_hashes, "epoch_permutations": metadata.epoch_permutation_sha256}
    manifest = json.dumps({"draw": known.draw, "seed": known.dataset_seed, "arrays": arrays}, sort_keys=True)
    draw = archive_sha256 and DrawIdentity(known.draw, known.dataset_seed, archive_sha256, known.npy_sha256)
    sha256 = hashlib.sha256(manifest.encode()).hexdigest()
    return VerifyRecord(
        kind="verify",
        created_at=now,
        outcome=Outcome.OK,
        reason=None,
        workload=WORKLOAD,
        subject="payload",
        files_checked=len(metadata.input_hashes),
        mismatches=[],
        sources_sha256=None,
        sources=None,
        payload=PayloadIdentity(PAYLOAD, sha256, [draw] if draw else []),
    )


def _validation(energy: Energy, now: str, archive_sha256: str | None) -> ValidationRecord:
    known = LEARNER_DRAW_0
    return ValidationRecord(
        kind="validation",
        created_at=now,
        outcome=Outcome.OK,
        reason=None,
        workload=WORKLOAD,
        payload=PAYLOAD,
        device_uuid=energy.hardware.uuid,
        draw=known.draw,
        dataset_seed=known.dataset_seed,
        payload_sha256=archive_sha256,
        total=known.total,
        agreed=known.total,
        device_correct=known.correct,
        reference_correct=known.correct,
        predictions_int32_sha256=known.int32_sha256,
        mismatches=[],
        replays_equal_eager=[energy.repeat_predictions_equal],
        scratch_poisoned_before_eager_and_each_replay=None,
        captured_graph_reused_across_changed_inputs=None,
        intermediate_floats_equal_reference_bitwise=None,
        duration_s=None,
        state_hashes=states(energy.before_metadata),
        replay_states_equal=[energy.repeat_state_hashes_equal],
    )


def _round(trial: Trial, energy: Energy, now: str) -> RoundRecord:
    figures = trial_figures(trial)
    before, after = trial.idle_before, trial.idle_after
    return RoundRecord(
        kind="round",
        created_at=now,
        outcome=Outcome.OK,
        reason=None,
        workload=WORKLOAD,
        payload=PAYLOAD,
        device_uuid=energy.hardware.uuid,
        round=trial.trial,
        arm="candidate",
        protocol=PROTOCOL,
        repeats=trial.invocations,
        valid=True,
        cuda_ms=trial.cuda_ms_per_task,
        **vars(figures),
        measurement_start=WindowEdge(**vars(counter_reading(trial.active.start))),
        measurement_end=WindowEdge(**vars(counter_reading(trial.active.end))),
        idle_before=IdleWindow(counter_reading(before.start), counter_reading(before.end), before.average_power_w),
        idle_after=IdleWindow(counter_reading(after.start), counter_reading(after.end), after.average_power_w),
        cuda_ms_reason=None,
        energy_reason=None,
        calibration_ms=energy.calibration_ms,
    )
