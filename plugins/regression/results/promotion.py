"""A run that tried a kernel becomes what nights are compared with: whether it can, and the acceptance itself.

Whether nights run that kernel yet is not known here: that is in the repository, and whoever promotes looks there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Row, select

from gpu_tasks.records import BadInput
from regression.results import tables
from regression.results.baselines import accept_baseline, acceptable_run, withdrawn_of
from regression.results.times import WITH_GPU_TIME

PREDICTIONS, COMPARED = "compare_predictions", "compare_"
OF_A_NIGHT = ("agreement", "energy", "time")
"""Checks of a night that was marked as of a changed kernel, and is held against the baseline of the one before."""

WORSE, INVALID = "regressed", "invalid"


@dataclass(frozen=True)
class Promotable:
    """A run that can be promoted: the kernel that it tried, the one it was held against, and how it did.

    ``words`` has the verdict of each check of the comparison in its own word (better, worse, same, ...); empty where
    there was none. ``worse`` names those that the kernel is worse in. ``for_time``: it has rounds as nights have them.
    """

    run_id: str
    dag_run_id: str
    workload: str
    device: str
    device_kind: str
    variant: str | None
    ptx_sha256: str | None
    pinned_variant: str | None
    pinned_ptx_sha256: str | None
    spec: str | None
    commit: str | None
    modified: bool | None
    words: dict[str, str]
    worse: tuple[str, ...]
    for_time: bool


def promotable(connection: Connection, run_id: str, *, although_worse: bool = False) -> Promotable:
    """The run as it may be promoted.

    Raises ``BadInput``: ``run_not_stored``, ``not_a_candidate``, ``run_not_acceptable`` (it failed, or was injected
    with effects), ``run_withdrawn``, ``already_promoted``, ``run_not_judged``, ``not_compared`` (nobody knows its
    predictions), ``no_rounds`` (as nights have them), and ``candidate_worse`` unless ``although_worse``.
    """
    run = acceptable_run(connection, run_id)
    if not run.candidate:
        message = f"run {run_id}: expected one that tried a kernel, found a night: ./nightly baseline accept {run_id}"
        raise BadInput("not_a_candidate", message)
    withdrawn = withdrawn_of(connection, run_id).get("all")
    if withdrawn:
        raise BadInput("run_withdrawn", f"run {run_id} cannot be a baseline, it was withdrawn: {withdrawn}")
    if _stands(connection, run_id):
        message = f"run {run_id}: expected one that was not promoted yet, found the baseline that nights have now"
        raise BadInput("already_promoted", message)
    if run.verdict is None:
        raise BadInput("run_not_judged", f"run {run_id}: expected a verdict, found a run that ended before its report")
    checks = _checks(connection, run)
    device = connection.execute(select(tables.device).where(tables.device.c.device_id == run.device_id)).one()
    if not run.rounds_valid and device.kind in WITH_GPU_TIME:
        message = f"run {run_id}: expected valid rounds as nights have them, found none: try it with --rounds 14"
        raise BadInput("no_rounds", message)
    worse = [check for check in checks if check.verdict == WORSE]
    if worse and not although_worse:
        why = "; ".join(f"{check.check_name}: {check.reason}" for check in worse)
        message = f"run {run_id}: expected a kernel that is not worse, or --although-worse, found {why}"
        raise BadInput("candidate_worse", message)
    origin = run.candidate_origin or {}
    return Promotable(
        run_id=run.run_id,
        dag_run_id=run.dag_run_id,
        workload=run.workload,
        device=device.name,
        device_kind=device.kind,
        variant=run.kernel_variant,
        ptx_sha256=run.kernel_ptx_sha256,
        pinned_variant=run.pinned_variant,
        pinned_ptx_sha256=run.pinned_ptx_sha256,
        spec=origin.get("spec"),
        commit=origin.get("commit"),
        modified=origin.get("modified"),
        words={c.check_name: c.details.get("word", c.verdict) for c in checks if c.check_name.startswith(COMPARED)},
        worse=tuple(check.check_name for check in worse),
        for_time=run.rounds_valid > 0,
    )


def promote_run(
    engine: Engine,
    run_id: str,
    *,
    promoted_by: str,
    reason: str,
    although_worse: bool = False,
    records: Path | None = None,
) -> int:
    """Accept the run of a candidate for predictions, for time where it has rounds, and for energy that is verified.

    Returns the key of the baseline. Raises what ``promotable`` and ``accept_baseline`` raise.
    """
    with engine.connect() as connection:
        found = promotable(connection, run_id, although_worse=although_worse)
    return accept_baseline(
        engine,
        run_id,
        accepted_by=promoted_by,
        reason=reason,
        for_time=found.for_time,
        promoted=True,
        records=records,
    )


def _stands(connection: Connection, run_id: str) -> bool:
    """Whether the run is a current baseline: to promote it once more would end that one for nothing."""
    baseline = tables.baseline.c
    current = select(baseline.baseline_id).where(baseline.run_id == run_id, baseline.retired_at.is_(None))
    return connection.execute(current).first() is not None


def _checks(connection: Connection, run: Row[Any]) -> Sequence[Row[Any]]:
    """The checks that say how the kernel did, at their last step: of the comparison, else of a night."""
    check = tables.check_result
    stored = connection.execute(
        select(check).where(check.c.run_id == run.run_id).order_by(check.c.check_name, check.c.step)
    )
    last = {row.check_name: row for row in stored}
    compared = [row for name, row in last.items() if name.startswith(COMPARED)]
    if not compared and run.params.get("candidate") is None:
        return [last[name] for name in OF_A_NIGHT if name in last]
    predictions = last.get(PREDICTIONS)
    if predictions is None or predictions.verdict == INVALID:
        why = predictions.reason if predictions else "its comparison left no verdict"
        message = f"run {run.run_id}: expected the predictions of the candidate compared, found {why}"
        raise BadInput("not_compared", message)
    return compared


__all__ = ["Promotable", "promotable", "promote_run"]
