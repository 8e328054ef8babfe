"""Whole simulated nights for the tests, each made once: every program in turn, on the virtual clock."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from gpu_tasks.programs.baseline import night
from gpu_tasks.records import RunRecord, RunRequest, utc_now


@cache
def simulated_night(
    inject: str | None = None, seed: int = 1, rounds: int = 3, protocol: str | None = None
) -> RunRecord:
    """The run record of a night with one draw; its sources are taken as they are."""
    request = RunRequest(
        accepted_at=utc_now(),
        workload="qda",
        dag_id="nightly_qda",
        dag_run_id="test",
        run_id="none",
        trigger="manual",
        logical_date=None,
        device="simulated",
        variant=None,
        payload="original",
        draws=[0],
        rounds=rounds,
        repeats=None,
        protocol=protocol,
        label=None,
        note=None,
        inject=inject,
        seed=seed,
    )
    with tempfile.TemporaryDirectory() as folder:
        return night(request, Path(folder))
