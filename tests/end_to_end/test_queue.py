"""Several runs at once: each has the GPU for itself and its own result; one that is cancelled takes nothing along."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from local.paths import ROOT, Home
from local.rest import FINISHED, Airflow
from local.stack import Stack
from regression.nights.schema import COMPARISON
from tests.support.installation import Installation

SMALL: dict[str, Any] = {"device": "emulated", "draws": [3], "rounds": 1}
NEEDS_THE_GPU = ("turn", "provision", "validate", "telemetry_before", "compare", "measure", "telemetry_after")
WAIT_S = 600


@pytest.fixture(scope="module")
def running(installation: Installation) -> Iterator[Airflow]:
    started = installation.nightly("up", "--schedule", "0 3 1 1 *")
    assert started.returncode == 0, started.stderr
    yield Stack(Home(installation.home), None).airflow()
    installation.nightly("down", "--force")
    installation.wait_until_quiet(timeout_s=5)


def wait_for(what: str, holds: Any) -> Any:
    deadline = time.monotonic() + WAIT_S
    while not (found := holds()):
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.5)
    return found


def tasks(airflow: Airflow, dag_id: str, run_id: str) -> dict[str, dict[str, Any]]:
    """Task instances by name; of mapped ones the last."""
    return {task["task_id"]: task for task in airflow.task_instances(dag_id, run_id)}


def started(airflow: Airflow) -> list[str]:
    """Comparisons that an update of the asset has started."""
    return [run["dag_run_id"] for run in airflow.unfinished_runs("compare_kernels") if "changed__" in run["dag_run_id"]]


def update(airflow: Airflow, installation: Installation, *extras: dict[str, Any]) -> None:
    """Updates of the asset at one moment, by the lines of the document."""
    document = (ROOT / "docs" / "operators.md").read_text()
    (token,) = re.findall(r"```\n(TOKEN=.*?)```", document, re.DOTALL)
    (number, event, given, rest) = re.findall(
        r"```\n(ASSET=.*?)^(curl [^`]*?\"extra\": )({.*})(}'\n)```", document, re.DOTALL | re.MULTILINE
    )[0]
    events = [f"{event}{json.dumps(extra)}{rest}" for extra in extras]
    assert json.loads(given).keys() <= COMPARISON.keys()
    password = json.loads((installation.home / "airflow" / "passwords.json").read_text())["admin"]
    environment = {"AIRFLOW": airflow.address, "PASSWORD": password, "PATH": "/usr/bin:/bin"}
    script = token + number + "".join(events)
    subprocess.run(["bash", "-eu", "-c", script], env=environment, check=True, capture_output=True, timeout=300)


def test_each_run_has_its_turn_and_its_own_result(installation: Installation, running: Airflow) -> None:
    running.trigger("nightly_qda", "night", SMALL)
    wait_for("the night to begin", lambda: tasks(running, "nightly_qda", "night").get("turn", {}).get("end_date"))
    running.trigger("compare_kernels", "cancelled", {**SMALL, "candidate": "record"})
    running.trigger("compare_kernels", "waiting", {**SMALL, "candidate": "fused", "rounds": 0})
    running.trigger("compare_kernels", "given-up", {**SMALL, "candidate": "fused"})
    good = {**SMALL, "candidate": "record", "rounds": 0, "note": "{{ 6 * 7 }}"}
    update(running, installation, good, {"candidate": "-x"})
    running.fail_run("compare_kernels", "given-up")
    (changed,) = wait_for("the comparison of an update", lambda: started(running))

    wait_for("a comparison", lambda: tasks(running, "compare_kernels", "cancelled")["compare"]["state"] == "running")
    assert tasks(running, "nightly_qda", "night")["release"]["state"] == "success", "the night was not waited for"
    assert "waits for run night of nightly_qda" in installation.nightly("logs", "cancelled", "turn").stdout
    running.fail_run("compare_kernels", "cancelled")
    for run_id in ("waiting", changed):
        state = wait_for(run_id, lambda name=run_id: _ended(running, "compare_kernels", name))
        assert state == "success", tasks(running, "compare_kernels", run_id)
    assert _ended(running, "nightly_qda", "night") == "success"

    stored = "SELECT dag_run_id, candidate, note, verdict FROM run WHERE trigger = 'manual' ORDER BY 1"
    assert installation.query(stored) == [
        {"dag_run_id": changed, "candidate": True, "note": "{{ 6 * 7 }}", "verdict": "ok"},
        {"dag_run_id": "night", "candidate": False, "note": None, "verdict": "ok"},
        {"dag_run_id": "waiting", "candidate": True, "note": None, "verdict": "ok"},
    ]
    spans = sorted(_span(running, *run) for run in _runs(changed))
    assert all(before[1] <= after[0] for before, after in pairwise(spans)), spans
    assert json.loads((installation.home / "runs/locks/turn.json").read_text())["runs"] == []
    updated = running._request("GET", "/dags/kernel_changed/dagRuns").json()["dag_runs"]
    states = [t["state"] for run in updated for t in running.task_instances("kernel_changed", run["dag_run_id"])]
    assert sorted(states)[:1] == ["failed"] and "success" in states, "a bad update hides, or took the good one along"


def _runs(changed: str) -> list[tuple[str, str]]:
    return [("nightly_qda", "night"), *(("compare_kernels", name) for name in ("cancelled", "waiting", changed))]


def _ended(airflow: Airflow, dag_id: str, run_id: str) -> str | None:
    state = airflow.run_state(dag_id, run_id)
    return state if state in FINISHED else None


def _span(airflow: Airflow, dag_id: str, run_id: str) -> tuple[str, str]:
    """From when the run had its turn to the end of its last task that needs the GPU."""
    found = [task for task in airflow.task_instances(dag_id, run_id) if task["task_id"] in NEEDS_THE_GPU]
    (turn,) = [task["end_date"] for task in found if task["task_id"] == "turn"]
    return turn, max(task["end_date"] for task in found if task["end_date"])
