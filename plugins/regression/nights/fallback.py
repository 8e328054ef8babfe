"""Run records made here: for a request that was refused, and for a run that nothing could be put together from."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from gpu_tasks.records import FORMAT, Outcome, Reason, RunRecord, RunRequest, Summary, run_id_for, utc_now
from regression.nights import workloads

NO_MEASUREMENT = Reason("no_device", "nothing was measured")


def empty_run(request: RunRequest, outcome: Outcome, reason: Reason, **provenance: Any) -> RunRecord:
    """A run of which nothing is known but its request and how it ended."""
    now = utc_now()
    nothing = {field.name: None for field in fields(Summary) if field.default is field.default_factory is MISSING}
    counts = {"draws_expected": len(request.draws), "draws_validated": 0}
    counts |= {"rounds_expected": request.rounds, "rounds_valid": 0}
    return RunRecord(
        kind="run",
        format=FORMAT,
        created_at=now,
        started_at=request.accepted_at,
        completed_at=now,
        outcome=outcome,
        reason=reason,
        request=request,
        provision=None,
        verify_sources=None,
        verify_payload=None,
        kernel=None,
        validations=[],
        rounds=[],
        summary=Summary(**(nothing | counts)),  # type: ignore[arg-type]
        energy_trust="unavailable",
        energy_trust_reason=NO_MEASUREMENT,
        provenance=provenance,
    )


def unread_request(
    workload: str, dag_id: str, dag_run_id: str, trigger: str, *, kernel_changed: bool = False
) -> RunRequest:
    """Stands in for a request that could not be accepted: asks for nothing.

    ``kernel_changed``: it was of a kernel that is tried, and its run is no night.
    """
    return RunRequest(
        accepted_at=utc_now(),
        workload=workload,
        dag_id=dag_id,
        dag_run_id=dag_run_id,
        run_id=run_id_for(dag_id, dag_run_id),
        trigger=trigger,
        logical_date=None,
        device="auto",
        variant=None,
        payload=workloads.find(workload).payload,
        draws=[],
        rounds=0,
        repeats=None,
        protocol=None,
        label=None,
        note=None,
        kernel_changed=kernel_changed,
    )
