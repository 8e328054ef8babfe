"""Where everything of one installation lives: one folder outside the repository.

``NIGHTLY_HOME`` names it; by default it is the XDG data folder, or a system folder when run as root, because the
unprivileged user that owns PostgreSQL must be able to reach it there.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def default_home() -> Path:
    """Folder of the installation: ``NIGHTLY_HOME``, else a system folder (root) or the XDG data folder."""
    override = os.environ.get("NIGHTLY_HOME")
    if override:
        return Path(override).expanduser().absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/kernel-nightly")
    data = os.environ.get("XDG_DATA_HOME")
    base = Path(data) if data and Path(data).is_absolute() else Path.home() / ".local" / "share"
    return base / "kernel-nightly"


@dataclass(frozen=True)
class Home:
    """Paths inside the installation's folder."""

    folder: Path

    @property
    def environments(self) -> Path:
        """Virtual environments by lock; ``NIGHTLY_ENVIRONMENTS`` shares them between installations."""
        override = os.environ.get("NIGHTLY_ENVIRONMENTS")
        return Path(override).expanduser().absolute() if override else self.folder / "environments"

    @property
    def postgres(self) -> Path:
        return self.folder / "postgres"

    @property
    def airflow(self) -> Path:
        return self.folder / "airflow"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def records(self) -> Path:
        return self.folder / "records"

    @property
    def payloads(self) -> Path:
        return self.folder / "payloads"

    @property
    def candidates(self) -> Path:
        """Frozen kernels that were tried, one folder each, named by what is in it."""
        return self.folder / "candidates"

    @property
    def bisect(self) -> Path:
        """How far a search through the history has come."""
        return self.folder / "bisect"

    @property
    def secrets(self) -> Path:
        return self.folder / "secrets.json"

    @property
    def state(self) -> Path:
        return self.folder / "stack.json"

    @property
    def schedule(self) -> Path:
        """The plan of the nights, for the watchdog."""
        return self.folder / "schedule.json"

    @property
    def locks(self) -> Path:
        return self.folder / "locks"

    def create(self) -> None:
        """Make the folders. Root's home can be passed through by others: PostgreSQL's user must reach its part."""
        is_new = not self.folder.exists() or not any(self.folder.iterdir())
        for folder in (
            self.folder,
            self.logs,
            self.runs,
            self.records,
            self.payloads,
            self.candidates,
            self.locks,
        ):
            folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0 and is_new:
            self.folder.chmod(0o755)
