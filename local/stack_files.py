"""What the supervisor of a stack and its clients tell each other, as files of the installation."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from gpu_tasks.records import write_text_atomically
from local.paths import ROOT, Home
from regression.nights.workloads import DEFAULT


@dataclass
class State:
    """What the stack is doing, as clients read it from ``stack.json``."""

    pid: int
    started_at: str
    dsn_sha256: str | None
    root: str = str(ROOT)
    phase: str = "starting PostgreSQL"
    postgres_ready: bool = False
    airflow_ready: bool = False
    postgres_port: int | None = None
    api_port: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class Wanted:
    """What clients asked for in ``wanted.json``."""

    airflow: bool
    keep: bool
    schedule: str
    timezone: str
    workloads: str = DEFAULT.name


def dsn_hash(dsn: str | None) -> str | None:
    """Tells servers apart without storing a password; None for the embedded one."""
    return hashlib.sha256(dsn.encode()).hexdigest() if dsn else None


def read_wanted(home: Home) -> Wanted:
    """Latest wish of the clients; nothing but PostgreSQL when there is none."""
    try:
        return Wanted(**json.loads((home.folder / "wanted.json").read_text()))
    except (OSError, ValueError, TypeError):
        return Wanted(airflow=False, keep=False, schedule="none", timezone="UTC")


def write_wanted(home: Home, wanted: Wanted) -> None:
    write_text_atomically(json.dumps(asdict(wanted)), home.folder / "wanted.json")
