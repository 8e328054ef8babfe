"""Whose turn it is: one run at a time uses the GPU, whichever DAG it is of, in the order in which they asked.

The runs stand in one small file. The first one has the turn; it leaves when it has done with the GPU, and whoever
comes behind one that is over (failed, cancelled, deleted) takes it out. So nothing that ends a run, however, leaves the
GPU taken.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpu_tasks.records import BadInput, read_record, utc_now, write_record

log = logging.getLogger(__name__)
LOCKS = "locks"  # the queue's folder, in that of the runs, beside the locks of the devices


@dataclass(frozen=True)
class Waiting:
    """One run in the queue, and since when (ISO 8601, UTC)."""

    dag_id: str
    dag_run_id: str
    since: str

    def is_run(self, dag_id: str, dag_run_id: str) -> bool:
        """Whether it is that run."""
        return (self.dag_id, self.dag_run_id) == (dag_id, dag_run_id)


@dataclass(frozen=True)
class Queue:
    """Who has the turn, and who waits, in this order."""

    kind: str  # "turn"
    runs: list[Waiting]


def take_turn(folder: Path, dag_id: str, dag_run_id: str, is_over: Callable[[Waiting], bool]) -> list[Waiting]:
    """Stand in the queue, and say who is before this run: nobody means that it is its turn.

    ``is_over`` says whether a run can use the GPU no more. It is asked without the lock, for it may take its time, and
    only of those that this run would wait for first. A run that stands in the queue already keeps its place.
    """
    with _locked(folder) as queue:
        if not any(waiting.is_run(dag_id, dag_run_id) for waiting in queue):
            queue.append(Waiting(dag_id, dag_run_id, utc_now()))
        seen = list(queue)
    gone = []
    for waiting in seen:
        if waiting.is_run(dag_id, dag_run_id) or not is_over(waiting):
            break
        log.info("run %s of %s is over and leaves the queue", waiting.dag_run_id, waiting.dag_id)
        gone.append(waiting)
    with _locked(folder) as queue:
        queue[:] = [waiting for waiting in queue if waiting not in gone]
        place = next((number for number, waiting in enumerate(queue) if waiting.is_run(dag_id, dag_run_id)), len(queue))
        return queue[:place]


def leave_turn(folder: Path, dag_id: str, dag_run_id: str) -> None:
    """Leave the queue: the next one has the turn. Nothing where the run does not stand in it."""
    with _locked(folder) as queue:
        queue[:] = [waiting for waiting in queue if not waiting.is_run(dag_id, dag_run_id)]


def in_turn(folder: Path) -> list[Waiting]:
    """The queue as it is; a run that is over stands in it until the next one comes."""
    return _read(folder / "turn.json")


@contextmanager
def _locked(folder: Path) -> Iterator[list[Waiting]]:
    """The queue, to be changed in place; written back where it was. Everybody else waits as long."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "turn.json"
    descriptor = os.open(folder / "turn.lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        queue = _read(path)
        before = list(queue)
        yield queue
        if queue != before:
            write_record(Queue("turn", queue), path)
    finally:
        os.close(descriptor)


def _read(path: Path) -> list[Waiting]:
    if not path.exists():
        return []
    try:
        return read_record(path, Queue).runs
    except BadInput as error:
        log.warning("the queue cannot be read and begins anew: %s", error.message)
        return []
