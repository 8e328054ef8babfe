"""File locks: exclusive means one, shared means many, and death releases."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpu_tasks.records import Outcome
from local.errors import LauncherError
from local.locks import FileLock, exclusive

HOLDER = "import sys, time; from local.locks import FileLock; from pathlib import Path\n"
HOLDER += "lock = FileLock(Path(sys.argv[1])); assert lock.acquire(); print('held', flush=True); time.sleep(60)"


@pytest.fixture
def holder(tmp_path: Path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "lock")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def test_second_holder_is_refused_and_told_who_holds(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    lock = FileLock(tmp_path / "lock")
    assert not lock.acquire()
    assert lock.is_held()
    said = rf"another run is in progress already \(pid {holder.pid}\)"
    with pytest.raises(LauncherError, match=said) as caught, exclusive(tmp_path / "lock", "another run"):
        pytest.fail("entered a lock that somebody else holds")
    assert caught.value.outcome is Outcome.INFRASTRUCTURE_FAILURE


def test_kill_releases_the_lock(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert FileLock(tmp_path / "lock").acquire()


def test_shared_holders_keep_an_exclusive_one_out(tmp_path: Path) -> None:
    first, second, exclusive_one = (FileLock(tmp_path / "users") for _ in range(3))
    assert first.acquire(shared=True)
    assert second.acquire(shared=True)
    assert not exclusive_one.acquire()
    first.release()
    assert not exclusive_one.acquire()
    second.release()
    assert exclusive_one.acquire()


def test_wait_gives_up_after_its_time(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    started = time.monotonic()
    assert not FileLock(tmp_path / "lock").wait(0.2)
    assert time.monotonic() - started >= 0.2
