"""An installation of its own for end-to-end tests: the real launcher, scheduler and database in a throwaway home."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from local.paths import ROOT
from local.processes import marked
from local.stack import stop
from tests.support.made_environments import made_environments
from tests.support.scratch import LEFT_OUT

RUN_TIMEOUT_S = 600
LISTENING = "0A"  # of the states in /proc/net/tcp
LOOPBACK = "0100007F"  # 127.0.0.1 there


class Installation:
    """A home, the checkout that uses it, and the folder of the environments, which are made already."""

    def __init__(self) -> None:
        self.environments = made_environments()
        self.home = Path(tempfile.mkdtemp(prefix="kernel-nightly-e2e-", dir="/tmp"))
        self.home.chmod(0o755)  # PostgreSQL's user passes through it
        self.root = ROOT
        system_python = Path(sys.base_prefix) / "bin" / "python3"
        self._python = str(system_python)
        self._environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "_AIRFLOW"))
        }
        self._environment |= {"NIGHTLY_HOME": str(self.home), "NIGHTLY_ENVIRONMENTS": str(self.environments)}
        self._environment.pop("PYTHONPATH", None)

    def set(self, variable: str, value: str) -> None:
        """Let ``nightly`` find a variable in its environment from now on."""
        self._environment[variable] = value

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start ``nightly`` with ``arguments`` and return while it runs.

        It must not inherit deafness to Ctrl-C, which shells give to what they start in the background.
        """
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return subprocess.Popen(
            [self._python, str(self.root / "nightly"), *arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def nightly(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``nightly`` with ``arguments`` to its end."""
        process = self.start(*arguments)
        try:
            output, messages = process.communicate(timeout=RUN_TIMEOUT_S)
        except BaseException:
            process.kill()
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, output, messages)

    def query(self, statement: str) -> list[dict[str, Any]]:
        """Rows of a statement as the reader sees them."""
        result = self.nightly("sql", "--json", statement)
        assert result.returncode == 0, result.stderr
        rows: list[dict[str, Any]] = json.loads(result.stdout)
        return rows

    def copy_checkout(self, folder: Path) -> None:
        """Use a copy of the checkout, which a test may change."""
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT), dirs_exist_ok=False)
        self.root = folder

    def processes(self) -> list[int]:
        """Whatever still runs for this home."""
        return marked(self.home)

    def listening(self) -> set[str]:
        """Local addresses on which this home's processes listen, as ``/proc/net/tcp`` writes them."""
        sockets = set()
        for pid in self.processes():
            with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile, as those of a moment do
                for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                    with suppress(OSError):
                        sockets.add(str(descriptor.readlink()))
        found = set()
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENING and f"socket:[{fields[9]}]" in sockets:
                    found.add(fields[1].partition(":")[0])
        return found

    def titles(self) -> dict[int, str]:
        """Command lines of this home's processes by pid; one that ends while it is looked at has none."""
        found = {}
        for pid in self.processes():
            with suppress(OSError):
                found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        return found

    def wait_until_quiet(self, timeout_s: float = 240) -> None:
        """Wait until nothing runs any more; fails when something stays."""
        deadline = time.monotonic() + timeout_s
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.2)
        assert self.processes() == []

    def remove(self) -> None:
        from local.paths import Home

        stop(Home(self.home))
        shutil.rmtree(self.home)
