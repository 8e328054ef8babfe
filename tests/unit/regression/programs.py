"""Tiny GPU programs for tests: a ``gpu_tasks`` package in a folder of its own, whose ``__main__`` is given."""

from __future__ import annotations

import os
import time
from pathlib import Path

PRELUDE = """
import json, os, signal, subprocess, sys, time
from pathlib import Path
out = Path(sys.argv[sys.argv.index("--out") + 1])
def record(outcome, reason=None):
    out.write_text(json.dumps({"kind": "verify", "created_at": "2026-11-30T02:00:00Z", "outcome": outcome,
        "reason": reason, "workload": "qda", "subject": "sources", "files_checked": 1, "mismatches": [],
        "sources_sha256": None, "sources": None, "payload": None}))
def grandchild():
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", deaf])
    Path("pids.new").write_text(f"{os.getpid()} {child.pid}")
    Path("pids.new").rename("pids")
def deserter():
    '''A grandchild whose parent is gone, with a child of its own, all in sessions of their own and deaf.'''
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"
    code = f"import os, subprocess, sys; a = subprocess.Popen([sys.executable, '-c', {deaf!r}], start_new_session=True)"
    code += "; open('pids.new', 'w').write(f'{a.pid} {os.getpid()}'); os.rename('pids.new', 'pids')"
    code += "; a.wait()"
    subprocess.run([sys.executable, "-c", "import subprocess, sys; subprocess.Popen([sys.executable, '-c', "
        "sys.argv[1]], start_new_session=True)", code], check=True)
    while not Path("pids").exists():
        time.sleep(0.02)
"""


def write_program(root: Path, body: str) -> Path:
    """``root`` with a ``gpu_tasks`` program that does ``body``."""
    package = root / "gpu_tasks"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(PRELUDE + body)
    return root


def wait_for(path: Path, timeout_s: float = 60) -> str:
    """Content of a file that a program will write."""
    deadline = time.monotonic() + timeout_s
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < deadline, f"{path} was not written"
        time.sleep(0.02)
    return path.read_text()


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie that nobody collected does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def assert_all_end(pids: str, timeout_s: float = 30) -> None:
    """All of them end soon."""
    deadline = time.monotonic() + timeout_s
    while left := [pid for pid in map(int, pids.split()) if alive(pid)]:
        assert time.monotonic() < deadline, f"still running: {left} (this is {os.getpid()})"
        time.sleep(0.02)
