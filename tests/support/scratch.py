"""A checkout of its own that a test may change, as a git repository, and ``./nightly`` in it with this interpreter."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from local.paths import ROOT

CHANGES = Path(__file__).parent / "kernel_changes"
LEFT_OUT = (".git", ".hypothesis", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".import_linter_cache")
NIGHTLY = """\
import sys
from pathlib import Path
from local import cli, environments
environments.python = lambda home, name: Path(sys.executable)
cli._inside_scheduler = lambda home: True
sys.exit(cli.main())
"""
PERSON = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")


class Scratch:
    """A copy of the checkout, its first commit made, and a home beside it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "checkout"
        self.home = folder / "home"
        shutil.copytree(ROOT, self.root, ignore=shutil.ignore_patterns(*LEFT_OUT))
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit("as it was")

    def git(self, *arguments: str) -> str:
        """What git says; it must succeed."""
        environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        command = ["git", "-C", str(self.root), *PERSON, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()

    def commit(self, subject: str) -> str:
        """Commit everything; returns the full hash."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        return self.git("rev-parse", "HEAD")

    def change(self, name: str) -> None:
        """One of the prepared changes of the kernels' sources."""
        self.git("apply", str(CHANGES / f"{name}.patch"))

    def replace(self, file: str, old: str, new: str) -> None:
        """Change the text of a file, where it stands once."""
        path = self.root / file
        text = path.read_text()
        assert text.count(old) == 1, f"{file}: {old!r} stands there {text.count(old)} times"
        path.write_text(text.replace(old, new))

    def restore(self) -> None:
        """The files as in HEAD."""
        self.git("checkout", "--quiet", "--", ".")

    def start(self, *arguments: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        """Start ``./nightly`` and return while it runs; it hears Ctrl-C, whatever started this test."""
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        environment = {
            k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "_AIRFLOW", "NIGHTLY", "GIT_"))
        }
        environment |= {
            "NIGHTLY_HOME": str(self.home),
            "PYTHONPATH": os.pathsep.join([str(self.root), str(self.root / "plugins")]),
            "PYTHONSAFEPATH": "1",
        }
        return subprocess.Popen(
            [sys.executable, "-c", NIGHTLY, *arguments],
            cwd=cwd or self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def nightly(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run ``./nightly`` to its end."""
        process = self.start(*arguments, cwd=cwd)
        try:
            output, messages = process.communicate(timeout=300)
        except BaseException:
            process.kill()
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, output, messages)
