"""From a run record to the values of its rows; no database here."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Collection
from typing import Any

from gpu_tasks.records import (
    ConfirmationRecord,
    DeviceFingerprint,
    EnvironmentFingerprint,
    PayloadIdentity,
    RoundRecord,
    RunRecord,
    ValidationRecord,
    VerifyRecord,
    parse_utc,
)
from regression.results import energy_rows
from regression.results.candidate_columns import EMULATED, PINNED
from regression.results.comparison_rows import candidate_columns_of
from regression.results.energy_rows import reason
from regression.results.state_rows import state_columns_of

Row = dict[str, Any]

ROUND_COLUMNS = (
    *("arm", "round", "protocol", "valid", "repeats", "cuda_ms", "wall_ms", "gross_mj", "adjusted_mj"),
    *("idle_before_w", "idle_after_w", "average_power_w", "kernel_ptx_sha256", "inject", "calibration_ms"),
)
ROUND_COUNTERS = ("measurement_start", "measurement_end", "idle_before", "idle_after")


def environment_class(environment: EnvironmentFingerprint) -> str:
    """The versions that start a new baseline when they change.

    Driver, CUDA and torch where there are any; on a device without them, Python and numpy, which then do the work.
    """
    parts = {"driver": environment.driver, "cuda": environment.cuda, "torch": environment.packages.get("torch")}
    if not any(parts.values()):
        python = ".".join(environment.python.split(".")[:2])
        parts = {"python": python, "numpy": environment.packages.get("numpy")}
    return " ".join(f"{name}={version}" for name, version in parts.items() if version)


def device_row(device: DeviceFingerprint) -> Row:
    """Values of ``device``."""
    capability = device.compute_capability
    return {
        "kind": device.kind,
        "uuid": device.uuid,
        "name": device.name,
        "memory_total_bytes": device.memory_total_bytes,
        "multiprocessors": device.multiprocessors,
        "compute_capability": ".".join(map(str, capability)) if capability else None,
    }


def environment_row(environment: EnvironmentFingerprint) -> Row:
    """Values of ``environment``."""
    fields = dataclasses.asdict(environment)
    return {"fingerprint_sha256": _fingerprint(fields), "environment_class": environment_class(environment), **fields}


def source_state_row(verified: VerifyRecord) -> Row:
    """Values of ``source_state``."""
    fields = {"sources_sha256": verified.sources_sha256, "sources": verified.sources or {}}
    return {"fingerprint_sha256": _fingerprint(fields), **fields}


def payload_row(payload: PayloadIdentity) -> Row:
    """Values of ``payload``."""
    return {"name": payload.name, "manifest_sha256": payload.manifest_sha256}


def payload_draw_rows(payload: PayloadIdentity, payload_id: int) -> list[Row]:
    """Values of ``payload_draw``."""
    return [{"payload_id": payload_id, **dataclasses.asdict(draw)} for draw in payload.draws]


def run_row(record: RunRecord, record_sha256: str) -> Row:
    """Values of ``run`` without its references; a run that was not judged yet."""
    request, kernel = record.request, record.kernel
    summary = dataclasses.asdict(record.summary)
    del summary["energy"]  # a table of its own
    return {
        "run_id": request.run_id,
        "dag_id": request.dag_id,
        "dag_run_id": request.dag_run_id,
        "workload": request.workload,
        "trigger": request.trigger,
        "logical_date": parse_utc(request.logical_date) if request.logical_date else None,
        "protocol": record.protocol,
        "params": dataclasses.asdict(request),
        "label": request.label,
        "note": request.note,
        "outcome": record.outcome.value,
        **reason(record.reason),
        "started_at": parse_utc(record.started_at),
        "completed_at": parse_utc(record.completed_at) if record.completed_at else None,
        "energy_trust": record.energy_trust,
        "energy_trust_reason": record.energy_trust_reason.message if record.energy_trust_reason else None,
        "kernel_variant": kernel.variant if kernel else None,
        "kernel_ptx_sha256": kernel.ptx_sha256 if kernel else None,
        **summary,
        "inject": request.inject,
        "seed": request.seed,
        **_confirmation(record.confirmation),
        **candidate_columns_of(record),
        "provenance": record.provenance,
        "record_sha256": record_sha256,
    }


def _confirmation(plan: ConfirmationRecord | None) -> Row:
    return {
        "confirmation_rounds": len(plan.rounds) if plan else None,
        **reason(plan.reason if plan else None, "confirmation_"),
        "confirmation_looks": [dataclasses.asdict(look) for look in plan.looks] if plan else None,
    }


def validation_rows(record: RunRecord) -> list[Row]:
    """Values of ``validation``: the run's own, those of the kernel it was held against, and those of the emulator."""
    run_id, compared = record.request.run_id, record.comparison
    own = [validation_row(run_id, validation) for validation in record.validations]
    if compared is None:
        return own
    others = ((PINNED, compared.pinned_validations), (EMULATED, compared.emulated))
    return own + [validation_row(run_id, validation, what) for what, found in others for validation in found]


def validation_row(run_id: str, validation: ValidationRecord, what: str = "") -> Row:
    """Values of ``validation``; only the run's own kernel on its own device has the number of the draw."""
    return {
        "run_id": run_id,
        "case_name": f"{what}draw-{validation.draw:02d}",
        "draw": None if what else validation.draw,
        "outcome": validation.outcome.value,
        **reason(validation.reason),
        "payload_sha256": validation.payload_sha256,
        "total": validation.total,
        "agreed": validation.agreed,
        "device_correct": validation.device_correct,
        "reference_correct": validation.reference_correct,
        "predictions_int32_sha256": validation.predictions_int32_sha256,
        "mismatches": [dataclasses.asdict(mismatch) for mismatch in validation.mismatches],
        "replays_equal_eager": validation.replays_equal_eager,
        "scratch_poisoned": validation.scratch_poisoned_before_eager_and_each_replay,
        "graph_reused": validation.captured_graph_reused_across_changed_inputs,
        "floats_equal_reference": validation.intermediate_floats_equal_reference_bitwise,
        "duration_s": validation.duration_s,
        **state_columns_of(validation),
        "created_at": parse_utc(validation.created_at),
    }


def round_rows(record: RunRecord) -> list[Row]:
    """Values of ``round``: the run's own rounds, and those in which two kernels took turns."""
    run_id, compared = record.request.run_id, record.comparison
    own = [round_row(run_id, measured, record.confirmation_rounds) for measured in record.rounds]
    return own + [round_row(run_id, measured) for measured in (compared.rounds if compared else [])]


def round_row(run_id: str, measured: RoundRecord, confirmation_rounds: Collection[int] = ()) -> Row:
    """Values of ``round``."""
    fields = dataclasses.asdict(dataclasses.replace(measured, energy=None))
    return {
        "run_id": run_id,
        **{name: fields[name] for name in ROUND_COLUMNS},
        "step": int(measured.round in confirmation_rounds),
        "outcome": measured.outcome.value,
        **reason(measured.reason),
        **reason(measured.cuda_ms_reason, "cuda_ms_"),
        **reason(measured.energy_reason, "energy_"),
        **energy_rows.round_columns(measured.energy),
        "earlier_attempts": [dataclasses.asdict(attempt) for attempt in measured.earlier_attempts],
        "counters": {name: fields[name] for name in ROUND_COUNTERS} | energy_rows.readings(measured.energy),
        "created_at": parse_utc(measured.created_at),
    }


def _fingerprint(fields: Row) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
