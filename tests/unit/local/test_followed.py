"""Runs end with the command that waits for them: interrupted, killed, or with Airflow away at that moment."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import pytest

from local.errors import LauncherError
from local.followed import end_abandoned, following
from local.paths import ROOT, Home
from local.rest import Airflow

RUN = ("compare_kernels", "try__2026-12-01T10:00:00.000+00:00")
FOLLOWER = """
import sys, time
from pathlib import Path
from local.followed import following
from local.paths import Home
with following(Home(Path(sys.argv[1])), None, sys.argv[2], sys.argv[3]):
    print("following", flush=True)
    time.sleep(60)
"""


class Fake:
    """Airflow as far as it is asked here: runs by DAG and id, with their states."""

    def __init__(self, *running: tuple[str, str]) -> None:
        self.states = dict.fromkeys(running, "running")
        self.away = False

    def run_state(self, dag_id: str, run_id: str) -> str | None:
        self._answer()
        return self.states.get((dag_id, run_id))

    def fail_run(self, dag_id: str, run_id: str) -> None:
        self._answer()
        if (dag_id, run_id) in self.states:
            self.states[dag_id, run_id] = "failed"

    def _answer(self) -> None:
        if self.away:
            raise LauncherError("Airflow does not answer")

    @property
    def client(self) -> Airflow:
        return cast(Airflow, self)


def test_a_run_that_ended_is_left_alone_and_forgotten(tmp_path: Path) -> None:
    home, airflow = Home(tmp_path), Fake(RUN)
    with following(home, airflow.client, *RUN):
        assert end_abandoned(home, airflow.client) == []
        airflow.states[RUN] = "success"
    assert end_abandoned(home, airflow.client) == []
    assert airflow.states[RUN] == "success"


def test_an_interruption_ends_the_run(tmp_path: Path) -> None:
    home, airflow = Home(tmp_path), Fake(RUN)
    with pytest.raises(KeyboardInterrupt), following(home, airflow.client, *RUN):
        raise KeyboardInterrupt
    assert airflow.states[RUN] == "failed"


def test_a_run_that_was_never_triggered_is_none_to_end(tmp_path: Path) -> None:
    home, airflow = Home(tmp_path), Fake()
    with pytest.raises(KeyboardInterrupt), following(home, airflow.client, *RUN):
        raise KeyboardInterrupt
    assert end_abandoned(home, airflow.client) == []
    assert airflow.states == {}


def test_where_airflow_is_away_the_run_is_ended_when_it_is_back(tmp_path: Path) -> None:
    home, airflow = Home(tmp_path), Fake(RUN)
    with pytest.raises(KeyboardInterrupt), following(home, airflow.client, *RUN):
        airflow.away = True
        raise KeyboardInterrupt
    with pytest.raises(LauncherError, match="does not answer"):
        end_abandoned(home, airflow.client)
    airflow.away = False
    (told,) = end_abandoned(home, airflow.client)
    assert told.startswith(f"run {RUN[1]} of {RUN[0]}: whoever waited for it is gone")
    assert airflow.states[RUN] == "failed"
    assert end_abandoned(home, airflow.client) == []


def test_the_run_of_a_killed_command_is_ended_and_those_of_others_are_not(tmp_path: Path) -> None:
    other = ("nightly_qda", "run__other")
    home, airflow = Home(tmp_path), Fake(RUN, other)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", FOLLOWER, str(tmp_path), *RUN]
    follower = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert follower.stdout is not None
    assert follower.stdout.readline() == "following\n"
    with following(home, airflow.client, *other):
        assert end_abandoned(home, airflow.client) == []
        follower.kill()
        follower.wait()
        deadline = time.monotonic() + 120
        while not (told := end_abandoned(home, airflow.client)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(told) == 1
        assert airflow.states == {RUN: "failed", other: "running"}
        airflow.states[other] = "success"
    assert end_abandoned(home, airflow.client) == []
