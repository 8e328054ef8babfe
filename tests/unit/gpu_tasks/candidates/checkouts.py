"""A scratch repository with the project's kernels, for tests to change and commit."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.unit.gpu_tasks.running import ROOT

CHANGES = ROOT / "tests/support/kernel_changes"
IDENTITY = dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"), "t@t")


class Checkout:
    """A git repository whose HEAD has ``kernels/`` as this one does."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copytree(ROOT / "kernels", root / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
        self.git("init", "-q", "-b", "main")
        self.first = self.commit("the kernels")

    @property
    def ptx(self) -> Path:
        return self.root / "kernels/ptx"

    def git(self, *arguments: str) -> str:
        """Output of a git command that has to succeed."""
        environment = {**os.environ, **IDENTITY, "GIT_CONFIG_GLOBAL": "/dev/null"}
        command = ["git", "-C", str(self.root), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    def commit(self, message: str) -> str:
        """Commit everything; the full name of the commit."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def change(self, name: str) -> None:
        """Apply one of the prepared changes of the kernels' sources."""
        self.git("apply", str(CHANGES / f"{name}.patch"))
