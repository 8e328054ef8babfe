"""Work shared out over the CPUs, its results in order, no more of it than is needed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any, TypeVar

from gpu_tasks.records import InfrastructureFailure, Outcome, TaskError
from gpu_tasks.tied import die_with

Item = TypeVar("Item")
Result = TypeVar("Result")
Failure = tuple[Outcome, str, str]


def in_parallel(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    enough: Callable[[Result], bool],
    processes: int | None = None,
) -> list[Result]:
    """Results of ``work`` in the order of ``items``, up to the first that is ``enough``; the same however many CPUs.

    ``processes`` defaults to the CPUs that this process may use. Workers are forked, so that what is loaded is not
    loaded again, keep what ``work`` leaves in its closure, and end with their parent, however that ends. Raises what
    ``work`` raises, with its class of outcome, code and message, and ``InfrastructureFailure`` for a lost worker.
    """
    count = min(processes or len(os.sched_getaffinity(0)), len(items))
    results: list[Result] = []
    if count < 2:
        for item in items:
            results.append(work(item))
            if enough(results[-1]):
                break
        return results
    with _Workers(work, items, count) as workers:
        found = workers.results(enough)
    for index in range(len(items)):
        if isinstance(found[index], TaskError):
            raise found[index]
        results.append(found[index])
        if enough(results[-1]):
            break
    return results


class _Workers:
    """Forked processes, each with a pipe: an index goes in, a result or a failure comes out."""

    def __init__(self, work: Callable[[Any], Any], items: Sequence[Any], count: int) -> None:
        self._work, self._items, self._count = work, items, count
        self._pipes: list[Connection] = []
        self._processes: list[ForkProcess] = []

    def __enter__(self) -> _Workers:
        context = multiprocessing.get_context("fork")
        sys.stdout.flush()  # what is buffered would be written by every worker again
        sys.stderr.flush()
        for _ in range(self._count):
            mine, theirs = multiprocessing.Pipe()
            # An end of a pipe that a worker inherits and keeps open would hide from the others that the parent is gone.
            inherited = [*self._pipes, mine]
            process = context.Process(
                target=_serve, args=(theirs, os.getpid(), inherited, self._work, self._items), daemon=True
            )
            process.start()
            theirs.close()
            self._pipes.append(mine)
            self._processes.append(process)
        return self

    def __exit__(self, *_: object) -> None:
        for process, pipe in zip(self._processes, self._pipes, strict=True):
            pipe.close()
            process.kill()
        for process in self._processes:
            process.join()

    def results(self, enough: Callable[[Any], bool]) -> dict[int, Any]:
        """Result or ``TaskError`` by index: all of them, or every one up to the first that ends it and perhaps more.

        Items go out in order, so that everything before one that is out is out as well.
        """
        found: dict[int, Any] = {}
        out: dict[Connection, int] = {}
        idle, following, over = list(self._pipes), 0, False
        while True:
            while idle and following < len(self._items) and not over:
                pipe = idle.pop()
                out[pipe] = following
                pipe.send(following)
                following += 1
            if not out:
                return found
            for ready in wait(list(out)):
                pipe = next(pipe for pipe in out if pipe is ready)
                index = out.pop(pipe)
                found[index] = _received(pipe)
                over = over or isinstance(found[index], TaskError) or enough(found[index])
                idle.append(pipe)


def _received(pipe: Connection) -> Any:
    try:
        good, answer = pipe.recv()
    except (EOFError, OSError):
        message = "a process that shared the work ended before it was done; was there too little memory?"
        raise InfrastructureFailure("worker_lost", message) from None
    return answer if good else _error(*answer)


def _error(outcome: Outcome, code: str, message: str) -> TaskError:
    """The error of a worker: exceptions with arguments of their own do not survive the pipe."""
    error = TaskError(code, message)
    error.outcome = outcome
    return error


def _serve(
    pipe: Connection, parent: int, inherited: list[Connection], work: Callable[[Any], Any], items: Sequence[Any]
) -> None:
    die_with(parent)  # the pipe would tell as well, but only once this piece of work is done
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt from the terminal is for the parent, which ends us
    for other in inherited:
        other.close()
    try:
        while True:
            pipe.send(_answer(work, items[pipe.recv()]))
    except (EOFError, OSError):
        return


def _answer(work: Callable[[Any], Any], item: Any) -> tuple[bool, Any]:
    try:
        return True, work(item)
    except TaskError as error:
        failure: Failure = error.outcome, error.code, error.message
    except Exception as error:
        traceback.print_exc()
        line = " ".join(f"{type(error).__name__}: {error}".split())
        failure = Outcome.INFRASTRUCTURE_FAILURE, "unexpected_error", line
    return False, failure
