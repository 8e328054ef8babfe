"""A GPU program as the launcher runs it: its record comes back, and it ends with whatever waits for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from gpu_tasks.records import Outcome, Reason
from local import cli, environments, programs
from local.errors import LauncherError
from local.paths import ROOT, Home
from local.processes import is_alive
from local.programs import started

PARENT = """
import sys
from pathlib import Path
from local import environments
from local.paths import Home
from local.programs import started
environments.python = lambda home, name: Path(sys.argv[1])
with started(Home(Path(sys.argv[2])), "candidate", []) as program:
    program._process.wait()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """A program in the place of the interpreter; it is given ``-m gpu_tasks NAME ...``."""
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setattr(environments, "python", lambda _home, _name: path)
    return path


def test_the_record_comes_back_on_failure_as_on_success(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = """[ "$*" = "-m gpu_tasks probe --x=1" ] && echo '{"code": "odd", "message": "so"}'; exit 2"""
    interpreter(tmp_path, monkeypatch, script)
    with started(home, "probe", ["--x=1"]) as program:
        assert program.record(Reason) == Reason("odd", "so")


@pytest.mark.parametrize(
    "ending", [(0, True, False), (1, True, False), (2, True, False), (2, False, True), (5, True, True)]
)
def test_what_a_quiet_program_says_is_told_where_its_record_does_not_say_all(
    home: Home,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    ending: tuple[int, bool, bool],
) -> None:
    status, record, heard = ending
    written = """echo '{"code": "odd", "message": "so"}';""" if record else ""
    for quiet in (True, False):
        interpreter(tmp_path, monkeypatch, f"echo Traceback >&2; {written} exit {status}")
        with started(home, "probe", [], quiet=quiet) as program, suppress(LauncherError):
            program.record(Reason)
        assert ("Traceback" in capfd.readouterr().err) == (heard or not quiet)


@pytest.mark.parametrize(
    ("script", "outcome", "told"),
    [
        ("kill -KILL $$", Outcome.INFRASTRUCTURE_FAILURE, "candidate: ended by SIGKILL"),
        ("exit 2", Outcome.BAD_INPUT, "candidate: arguments refused, see above"),
        ("exit 0", Outcome.INFRASTRUCTURE_FAILURE, "candidate: ended with 0 and no record: "),
        ("echo '{\"code\": 1}'; exit 1", Outcome.INFRASTRUCTURE_FAILURE, "candidate: ended with 1 and no record: "),
    ],
)
def test_a_program_without_a_record_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, outcome: Outcome, told: str
) -> None:
    interpreter(tmp_path, monkeypatch, script)
    with started(Home(tmp_path / "home"), "candidate", []) as program, pytest.raises(LauncherError) as failed:
        program.record(Reason)
    assert (failed.value.outcome, str(failed.value).startswith(told)) == (outcome, True), failed.value


def test_an_interruption_ends_the_program_and_waits_for_what_it_ends(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, listens = tmp_path / "ended", tmp_path / "listens"
    trap = f"trap 'sleep 0.3; touch {ended}; exit 5' TERM; touch {listens}"
    interpreter(tmp_path, monkeypatch, f"{trap}; sleep 60 >/dev/null 2>&1 & wait")
    with pytest.raises(KeyboardInterrupt), started(home, "compare", []) as program:
        assert _soon(listens.exists)
        raise KeyboardInterrupt
    assert ended.exists()
    assert program._process.returncode == 5


def test_a_program_that_does_not_listen_is_killed(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deaf = tmp_path / "deaf"
    interpreter(tmp_path, monkeypatch, f"trap '' TERM; touch {deaf}; while :; do sleep 0.1; done")
    monkeypatch.setattr(programs, "GRACE_S", 0.5)
    with pytest.raises(KeyboardInterrupt), started(home, "compare", []) as program:
        assert _soon(deaf.exists)
        raise KeyboardInterrupt
    assert program._process.returncode == -signal.SIGKILL


def test_a_killed_launcher_takes_the_program_along(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = tmp_path / "pid"
    path = interpreter(tmp_path, monkeypatch, f"echo $$ > {noted}.new; mv {noted}.new {noted}; exec sleep 60")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")])}
    launcher = subprocess.Popen([sys.executable, "-c", PARENT, str(path), str(home.folder)], env=environment)
    try:
        assert _soon(noted.exists)
        launcher.kill()
        launcher.wait()
        assert _soon(lambda: not is_alive(int(noted.read_text())))
    finally:
        launcher.kill()


PINNING = """
import sys
from pathlib import Path
from local import cli, environments
from local.paths import Home
environments.ensure = lambda *_: None
environments.python = lambda home, name: Path(sys.argv[1])
sys.exit(cli._pin(Home(Path(sys.argv[2])), explain=False))
"""


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_pin_takes_along_what_would_write_the_pins(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: signal.Signals
) -> None:
    noted = tmp_path / "pid"
    path = interpreter(tmp_path, monkeypatch, f"echo $$ > {noted}.new; mv {noted}.new {noted}; exec sleep 60")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")])}
    launcher = subprocess.Popen([sys.executable, "-c", PINNING, str(path), str(home.folder)], env=environment)
    try:
        assert _soon(noted.exists)
        with pytest.raises(LauncherError, match=r"another `nightly pin` is in progress already \(pid \d+\)"):
            cli._pin(home, explain=False)
        launcher.send_signal(sent)
        launcher.wait(120)
        assert _soon(lambda: not is_alive(int(noted.read_text())))
    finally:
        launcher.kill()


def _soon(condition: object) -> bool:
    deadline = time.monotonic() + 120
    while not condition() and time.monotonic() < deadline:  # type: ignore[operator]
        time.sleep(0.05)
    return bool(condition())  # type: ignore[operator]
