"""``nightly status``: who uses the GPU, and which runs there are."""

from __future__ import annotations

from local.paths import Home
from regression.nights.turn import LOCKS, leave_turn, take_turn
from tests.integration.local.conftest import Run


def test_the_queue_for_the_gpu_is_told(nightly: Run, home: Home) -> None:
    folder = home.runs / LOCKS
    for dag_id, name in (("nightly_qda", "manual__1"), ("compare_kernels", "try__2")):
        take_turn(folder, dag_id, name, lambda _: False)
    first, then = [line for line in nightly("status")[1].splitlines() if " of " in line and "asked for it at" in line]
    assert first.startswith("GPU:        manual__1 of nightly_qda (asked for it at ")
    assert then.startswith("  then      try__2 of compare_kernels (asked for it at ")
    for dag_id, name in (("nightly_qda", "manual__1"), ("compare_kernels", "try__2")):
        leave_turn(folder, dag_id, name)
    assert "GPU:        free" in nightly("status")[1].splitlines()


def test_without_airflow_its_runs_are_not_known(nightly: Run) -> None:
    lines = nightly("status")[1].splitlines()
    assert "Airflow:    not running" in lines
    assert "runs:       not known, as Airflow is not running" in lines
