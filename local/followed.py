"""Runs that a command waits for: they end with it, even where it was killed and could end nothing itself.

When interrupted, the command itself marks its run as failed, which ends the tasks. For when it cannot, each run has a
file that the command holds locked from before the run is triggered until it has ended: a file that nobody holds any
more belongs to a command that is gone, and the supervisor of the stack, or that of the next one, marks the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, unquote

from local.errors import LauncherError
from local.locks import FileLock
from local.paths import Home
from local.rest import FINISHED, Airflow

_TAKING_S = 5
"""Somebody who looks whether the file is held holds it for a moment himself."""


@contextmanager
def following(home: Home, client: Airflow, dag_id: str, run_id: str) -> Iterator[None]:
    """Within this block the run is triggered and waited for; what interrupts it ends the run."""
    path = _folder(home) / dag_id / quote(run_id, safe="")
    lock = FileLock(path)
    while True:
        if not lock.wait(_TAKING_S):
            raise LauncherError(f"run {run_id} is followed by pid {lock.holder()} already")
        if path.exists():  # else it was taken for a file left behind, between its making and its locking
            break
        lock.release()
    try:
        yield
    except BaseException:
        with suppress(LauncherError):  # where Airflow is away, too, the file stays
            client.fail_run(dag_id, run_id)
            path.unlink(missing_ok=True)
        raise
    else:
        path.unlink(missing_ok=True)
    finally:
        lock.release()


def end_abandoned(home: Home, client: Airflow) -> list[str]:
    """Mark the runs failed whose command is gone, which ends their tasks; returns what was done, a line each.

    Raises ``LauncherError`` when Airflow does not answer; what was not done is then done the next time.
    """
    told = []
    for path in sorted(_folder(home).glob("*/*")):
        lock = FileLock(path)
        if not lock.acquire():
            continue
        try:
            dag_id, run_id = path.parent.name, unquote(path.name)
            if client.run_state(dag_id, run_id) not in (*FINISHED, None):
                client.fail_run(dag_id, run_id)
                told.append(f"run {run_id} of {dag_id}: whoever waited for it is gone; marked as failed")
            path.unlink(missing_ok=True)
        finally:
            lock.release()
    return told


def _folder(home: Home) -> Path:
    return home.locks / "followed"
