"""Processes are found by their marker, ended politely, then by force, and die with their parent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from local import processes

SLEEP = [sys.executable, "-c", "print('up', flush=True); import time; time.sleep(60)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)",
]
PARENT = """
import signal, subprocess, sys, time
from local.processes import die_with_parent
child = subprocess.Popen(["sleep", "60"], start_new_session=True, preexec_fn=die_with_parent(signal.SIGTERM))
print(child.pid, flush=True)
time.sleep(60)
"""


def _start(command: list[str], marker: Path | None = None) -> subprocess.Popen[str]:
    environment = dict(os.environ) | ({processes.MARKER: str(marker)} if marker else {})
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def test_only_processes_of_this_home_are_found(tmp_path: Path) -> None:
    mine, other = _start(SLEEP, tmp_path / "a"), _start(SLEEP, tmp_path / "ab")
    try:
        assert processes.marked(tmp_path / "a") == [mine.pid]
    finally:
        for process in (mine, other):
            process.kill()
            process.wait()


def test_end_kills_what_ignores_sigterm() -> None:
    process = _start(STUBBORN)
    processes.end([process.pid], grace_s=0.2)
    assert process.wait(timeout=30) == -signal.SIGKILL


def test_end_lets_a_polite_process_go_by_itself() -> None:
    process = _start(SLEEP)
    processes.end([process.pid], grace_s=30)
    assert process.wait(timeout=30) == -signal.SIGTERM


def test_child_dies_when_its_parent_is_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert processes.is_alive(child)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 30
    while processes.is_alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not processes.is_alive(child)


NAMED = """
import ctypes, sys, time
libc = ctypes.CDLL(None)
libc.prctl(15, sys.argv[1].encode(), 0, 0, 0)  # PR_SET_NAME
libc.prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE: the environment is closed to everybody but root, as Airflow does it
print("up", flush=True)
time.sleep(60)
"""


def test_a_process_with_a_closed_environment_is_known_by_session_and_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_bytes = Path.read_bytes

    def closed(path: Path) -> bytes:  # root may read it all the same
        if path.name == "environ":
            raise PermissionError(13, "Permission denied", str(path))
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", closed)
    names = ("airflow worker", "airflow worker", "somebody's")
    started = [
        subprocess.Popen([sys.executable, "-c", NAMED, name], stdout=subprocess.PIPE, text=True, start_new_session=True)
        for name in names
    ]
    try:
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
        assert processes.marked(tmp_path) == []
        processes.remember_session(tmp_path, started[0].pid)
        processes.remember_session(tmp_path, started[2].pid)
        assert processes.marked(tmp_path) == [started[0].pid]
        processes.forget_sessions(tmp_path)
        assert processes.marked(tmp_path) == []
    finally:
        for process in started:
            process.kill()
            process.wait()
