"""The stack that stays: ``up``, its addresses and its login, ``trigger``, ``status``, ``down``; nothing survives."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator

import httpx
import pytest

from local.runs import DAGS
from tests.end_to_end.test_night import SMALL
from tests.support.installation import LOOPBACK, Installation


@pytest.fixture(scope="module")
def running(installation: Installation) -> Iterator[str]:
    """What ``up`` printed; the stack is stopped afterwards whatever the tests did to it."""
    started = installation.nightly("up", "--schedule", "30 3 1 1 *")  # not at whatever hour this test runs
    assert started.returncode == 0, started.stderr
    yield started.stdout
    installation.nightly("down", "--force")
    installation.wait_until_quiet(timeout_s=5)


def _address(printed: str) -> tuple[str, str]:
    found = re.search(r"(http://127\.0\.0\.1:\d+)  \(user admin, password (\S+)\)", printed)
    assert found, printed
    return found[1], found[2]


def _process(installation: Installation, title: str) -> int:
    for pid, found in installation.titles().items():
        if title in found:
            return pid
    pytest.fail(f"no process with {title!r}")


def test_everything_listens_on_this_machine_only(installation: Installation, running: str) -> None:
    assert len(installation.processes()) >= 4
    assert LOOPBACK in installation.listening()
    assert installation.listening() == {LOOPBACK}


def test_the_pages_want_the_printed_login(running: str) -> None:
    address, password = _address(running)
    with httpx.Client(base_url=address, timeout=120, trust_env=False) as pages:
        assert pages.get("/api/v2/dags").status_code == 401
        wrong = pages.post("/auth/token", json={"username": "admin", "password": "guess"})
        assert wrong.status_code == 401
        token = pages.post("/auth/token", json={"username": "admin", "password": password}).json()
        dags = pages.get("/api/v2/dags", headers={"Authorization": f"Bearer {token['access_token']}"}).json()
    found = {dag["dag_id"]: dag["is_paused"] for dag in dags["dags"]}
    assert found == dict.fromkeys(DAGS, False)
    assert set(DAGS) > {"nightly_qda", "nightly_learner", "compare_kernels", "nightly_watchdog"}


def test_a_night_before_the_installation_is_not_made_up_for(installation: Installation, running: str) -> None:
    assert installation.query("SELECT count(*) AS nights FROM nightly WHERE trigger = 'scheduled'") == [{"nights": 0}]


def test_a_schedule_that_cannot_be_is_refused_and_the_old_one_stays(installation: Installation, running: str) -> None:
    refused = installation.nightly("up", "--schedule", "bogus every day")
    assert refused.returncode == 2
    assert "schedule: expected a cron line of five fields" in refused.stderr
    again = installation.nightly("up", "--schedule", "45 4 1 1 *")
    assert again.returncode == 0, again.stderr
    assert "45 4 1 1 *" in again.stdout
    assert _address(again.stdout) == _address(running)
    assert "nights:     45 4 1 1 * (UTC)\n" in installation.nightly("status").stdout


def test_trigger_returns_at_once_and_down_does_not_cut_the_run_off(installation: Installation, running: str) -> None:
    triggered = installation.nightly("trigger", *SMALL, "--param", "label=asked for")
    assert triggered.returncode == 0, triggered.stderr
    run_id = triggered.stdout.strip()
    refused = installation.nightly("down")
    assert refused.returncode == 5
    assert f"run {run_id} is in progress" in refused.stderr
    status = installation.nightly("status").stdout
    assert re.search(rf"^(runs:|     )  +(queued|running) +{re.escape(run_id)} of nightly_qda, since 20", status, re.M)
    row = _wait_for_verdict(installation, run_id)
    assert (row["verdict"], row["label"], row["trigger"]) == ("ok", "asked for", "manual")
    status = installation.nightly("status")
    assert run_id in status.stdout
    log = installation.nightly("logs", run_id, "validate")
    assert log.returncode == 0
    assert "gpu_tasks validate --workload qda --draw 3" in log.stdout


def test_a_run_uses_the_running_stack_and_leaves_it_running(installation: Installation, running: str) -> None:
    before = _process(installation, "airflow api_server")
    night = installation.nightly("run", *SMALL)
    assert night.returncode == 0, night.stderr
    assert "starting Airflow" not in night.stderr
    assert _process(installation, "airflow api_server") == before


def test_a_killed_scheduler_is_started_again_and_down_leaves_nothing(installation: Installation, running: str) -> None:
    killed = _process(installation, "airflow scheduler")
    os.kill(killed, signal.SIGKILL)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and "airflow scheduler" not in _titles(installation, killed):
        time.sleep(0.5)
    assert "airflow scheduler" in _titles(installation, killed)
    stopped = installation.nightly("down")
    assert stopped.stdout == "stopped\n", stopped.stderr
    installation.wait_until_quiet(timeout_s=1)
    assert "not running" in installation.nightly("status").stdout
    assert "nights:     45 4 1 1 * (UTC), stopped by `./nightly down` at " in installation.nightly("status").stdout


def _titles(installation: Installation, without: int) -> str:
    return "\n".join(title for pid, title in installation.titles().items() if pid != without)


def _wait_for_verdict(installation: Installation, run_id: str) -> dict:
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        rows = installation.query(
            f"SELECT verdict, label, trigger, exit_code FROM nightly WHERE dag_run_id = '{run_id}'"
        )
        if rows and rows[0]["exit_code"] is not None:
            return rows[0]
        time.sleep(1)
    pytest.fail(f"{run_id} has no verdict: {subprocess.list2cmdline(['nightly', 'logs', run_id])}")
