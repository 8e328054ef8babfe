"""Shared work: the same results in the same order on any number of processes, and nobody left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_tasks.comparison.parallel import in_parallel
from gpu_tasks.records import BadInput, InfrastructureFailure, Outcome, TaskError
from tests.unit.gpu_tasks.running import ROOT


def never(_: object) -> bool:
    return False


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=30), st.integers(0, 9), st.integers(1, 4))
def test_the_results_are_those_of_one_process(items: list[int], last: int, processes: int) -> None:
    found = in_parallel(lambda item: (item, item * item), items, enough=lambda r: r[0] == last, processes=processes)
    end = items.index(last) + 1 if last in items else len(items)
    assert found == [(item, item * item) for item in items[:end]]


def test_the_work_is_shared() -> None:
    all_three = multiprocessing.get_context("fork").Barrier(3)

    def work(item: int) -> int:
        if item < 3:
            all_three.wait(60)  # whoever is slow to begin is waited for, else the others might do it all
        return os.getpid()

    workers = set(in_parallel(work, range(20), enough=never, processes=3))
    assert len(workers) == 3
    assert os.getpid() not in workers


def test_what_a_worker_knows_it_keeps() -> None:
    seen: list[int] = []

    def work(item: int) -> int:
        seen.append(item)
        return len(seen)

    assert max(in_parallel(work, range(10), enough=never, processes=2)) > 1
    assert seen == [], "the work is done elsewhere"


@pytest.mark.parametrize("processes", [1, 3])
def test_the_first_failure_in_order_is_raised(processes: int) -> None:
    def work(item: int) -> int:
        if item == 2:
            time.sleep(0.1)
            raise BadInput("second", "of two")
        if item == 3:
            raise BadInput("third", "of two")
        return item

    with pytest.raises(TaskError) as caught:
        in_parallel(work, range(6), enough=never, processes=processes)
    assert (caught.value.code, caught.value.message, caught.value.outcome) == ("second", "of two", Outcome.BAD_INPUT)


def test_a_failure_behind_the_end_is_none() -> None:
    def work(item: int) -> int:
        if item == 1:
            raise BadInput("too", "late")
        time.sleep(0.05)
        return item

    assert in_parallel(work, range(4), enough=lambda item: item == 0, processes=2) == [0]


def test_a_bug_is_told_and_is_no_regression(capfd: pytest.CaptureFixture[str]) -> None:
    def work(item: int) -> float:
        return 1 / item

    with pytest.raises(TaskError) as caught:
        in_parallel(work, [1, 0, 1], enough=never, processes=2)
    assert (caught.value.code, caught.value.outcome) == ("unexpected_error", Outcome.INFRASTRUCTURE_FAILURE)
    assert "ZeroDivisionError" in caught.value.message
    assert "in work" in capfd.readouterr().err


def test_a_worker_that_is_killed() -> None:
    def work(item: int) -> int:
        if item == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    with pytest.raises(InfrastructureFailure, match="ended before it was done"):
        in_parallel(work, range(4), enough=never, processes=2)


PARENT = """
import os, sys, time
from pathlib import Path
from gpu_tasks.comparison.parallel import in_parallel

def work(item):
    Path(sys.argv[1], str(os.getpid())).mkdir()
    time.sleep(600)

in_parallel(work, range(100000), enough=lambda _: False, processes=2)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_nobody_outlives_the_parent(tmp_path: Path, how: signal.Signals) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    parent = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    workers: set[int] = set()
    until = time.monotonic() + 60
    while len(workers) < 2 and time.monotonic() < until:
        time.sleep(0.05)
        workers = {int(named.name) for named in tmp_path.iterdir()}  # a folder's name is there whole or not at all
    assert len(workers) == 2
    parent.send_signal(how)
    parent.wait(60)
    until = time.monotonic() + 60
    while any(_is_alive(pid) for pid in workers) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [pid for pid in workers if _is_alive(pid)]


def _is_alive(pid: int) -> bool:
    """Whether it still runs; one that ended and was not yet waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
