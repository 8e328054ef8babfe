"""``qualify``: whether the workload on this device computes what an independent implementation does."""

from __future__ import annotations

import time
from argparse import Namespace
from contextlib import closing

from gpu_tasks.devices.registry import open_device
from gpu_tasks.programs.attempts import repeated
from gpu_tasks.programs.console import progress
from gpu_tasks.programs.kernel_choice import kernel_choice
from gpu_tasks.programs.simulation_choice import simulation
from gpu_tasks.records import BadInput, Outcome, QualificationRecord, Reason, utc_now
from gpu_tasks.workloads.base import QualifiedWorkload
from gpu_tasks.workloads.registry import get_workload

MOST_NAMED = 5


def run(arguments: Namespace) -> QualificationRecord:
    """Make every check; the outcome is ``regression`` when one fails. Raises ``BadInput`` (``no_qualification``)."""
    started = time.monotonic()
    workload = get_workload(arguments.workload)
    if not isinstance(workload, QualifiedWorkload):
        message = (
            f"--workload: expected one with an independent implementation to be held against, found {workload.name}"
        )
        raise BadInput("no_qualification", message)
    made_up = simulation(arguments, "qualification")
    with closing(open_device(arguments.device, workload, kernel_choice(arguments), simulation=made_up)) as device:
        device_uuid = repeated("qualification", lambda _: device.fingerprint()).uuid
        found = workload.qualify(device.kind)
    failures = [f"{case.name}: {failure}" for case in found.cases for failure in case.failures]
    checks = sum(case.checks for case in found.cases)
    progress(f"qualification on {found.computed_on}: {checks - len(failures)} of {checks} checks hold")
    return QualificationRecord(
        kind="qualification",
        created_at=utc_now(),
        outcome=Outcome.REGRESSION if failures else Outcome.OK,
        reason=_reason(failures, checks) if failures else None,
        workload=workload.name,
        device_uuid=device_uuid,
        computed_on=found.computed_on,
        captured=found.captured,
        passed=not failures,
        checks=checks,
        maximum_abs_error=found.maximum_abs_error,
        tolerance=found.tolerance,
        cases=found.cases,
        duration_s=time.monotonic() - started,
    )


def _reason(failures: list[str], checks: int) -> Reason:
    told = "; ".join(failures[:MOST_NAMED]) + ("; ..." if len(failures) > MOST_NAMED else "")
    return Reason("not_qualified", f"{len(failures)} of {checks} checks do not hold: {told}")
