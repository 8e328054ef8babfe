"""The record of a program that could not do its work: complete in form, empty of figures.

Standard library only, so that a broken environment (numpy missing, say) still leaves a record.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import Any

from gpu_tasks.records import (
    Outcome,
    ProvisionRecord,
    Reason,
    RoundRecord,
    ValidationRecord,
    VerifyRecord,
    utc_now,
)


def failure_record(arguments: Namespace, outcome: Outcome, reason: Reason) -> Any:
    """The record, or None for ``summarise``, which cannot make a run record without a readable request."""
    maker = _MAKERS.get(arguments.program)
    return maker(arguments, outcome, reason) if maker else None


def _provision(arguments: Namespace, outcome: Outcome, reason: Reason) -> ProvisionRecord:
    return ProvisionRecord(
        kind="provision",
        created_at=utc_now(),
        outcome=outcome,
        reason=reason,
        workload=arguments.workload,
        requested_device=arguments.device,
        device=None,
        environment=None,
        kernel=None,
    )


def _verify(arguments: Namespace, outcome: Outcome, reason: Reason) -> VerifyRecord:
    return VerifyRecord(
        kind="verify",
        created_at=utc_now(),
        outcome=outcome,
        reason=reason,
        workload=arguments.workload,
        subject=arguments.subject,
        files_checked=0,
        mismatches=[],
        sources_sha256=None,
        sources=None,
        payload=None,
    )


def _validation(arguments: Namespace, outcome: Outcome, reason: Reason) -> ValidationRecord:
    return ValidationRecord(
        kind="validation",
        created_at=utc_now(),
        outcome=outcome,
        reason=reason,
        workload=arguments.workload,
        payload=arguments.payload,
        device_uuid=None,
        draw=arguments.draw,
        dataset_seed=None,
        payload_sha256=None,
        total=None,
        agreed=None,
        device_correct=None,
        reference_correct=None,
        predictions_int32_sha256=None,
        mismatches=[],
        replays_equal_eager=[],
        scratch_poisoned_before_eager_and_each_replay=None,
        captured_graph_reused_across_changed_inputs=None,
        intermediate_floats_equal_reference_bitwise=None,
        duration_s=None,
    )


def _round(arguments: Namespace, outcome: Outcome, reason: Reason) -> RoundRecord:
    return RoundRecord(
        kind="round",
        created_at=utc_now(),
        outcome=outcome,
        reason=reason,
        workload=arguments.workload,
        payload=arguments.payload,
        device_uuid=None,
        round=arguments.round,
        arm=arguments.arm,
        protocol=arguments.protocol,
        repeats=arguments.repeats,
        valid=False,
        cuda_ms=None,
        wall_ms=None,
        gross_mj=None,
        adjusted_mj=None,
        idle_before_w=None,
        idle_after_w=None,
        average_power_w=None,
        measurement_start=None,
        measurement_end=None,
        idle_before=None,
        idle_after=None,
        cuda_ms_reason=None,
        energy_reason=None,
    )


_MAKERS: dict[str, Callable[[Namespace, Outcome, Reason], Any]] = {
    "provision": _provision,
    "verify": _verify,
    "validate": _validation,
    "measure": _round,
}
