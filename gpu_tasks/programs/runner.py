"""How every program runs and ends: a record on success and on failure, one line for people, a documented status.

A signal to end (SIGTERM, or Ctrl-C) ends a program like any failure: the record says ``interrupted``.
"""

from __future__ import annotations

import errno
import signal
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from types import FrameType
from typing import Any

from gpu_tasks.programs.console import complain
from gpu_tasks.records import Outcome, Reason, TaskError, failure_record, to_json, write_record

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


class Interrupted(BaseException):
    """SIGTERM, as an exception that no handler of ordinary errors swallows."""


def run_record_program(arguments: Namespace) -> int:
    """Run a program that writes one record; returns its exit status."""
    _end_on_sigterm()
    program: str = arguments.program
    try:
        _enter_environment(arguments)  # first: what the program imports only the environment may have
        record = import_module(f"gpu_tasks.programs.{program}").run(arguments)
    except BaseException as error:
        outcome, reason = _classify(error)
        record = failure_record(arguments.program, vars(arguments), outcome, reason)
        if record is None:
            complain(program, outcome, reason)
            return outcome.exit_code
    return _deliver(program, record, arguments)


def run_tool(arguments: Namespace) -> int:
    """Run a program that writes no record; it returns nothing and raises ``TaskError`` when it fails."""
    _end_on_sigterm()
    run: Callable[[Namespace], None]
    try:
        run = import_module(f"gpu_tasks.programs.{arguments.module}").run
        run(arguments)
    except BaseException as error:
        outcome, reason = _classify(error)
        complain(arguments.module.replace("_", " "), outcome, reason)
        return outcome.exit_code
    return Outcome.OK.exit_code


def _enter_environment(arguments: Namespace) -> None:
    if getattr(arguments, "environment", None) is not None:
        from gpu_tasks.environments import build, enter

        enter.enter(build.named(arguments.environment), arguments.environments)


def _end_on_sigterm() -> None:
    def interrupt(number: int, _frame: FrameType | None) -> None:
        raise Interrupted(signal.Signals(number).name)

    signal.signal(signal.SIGTERM, interrupt)


def _classify(error: BaseException) -> tuple[Outcome, Reason]:
    if isinstance(error, TaskError):
        return error.outcome, Reason(error.code, error.message)
    if isinstance(error, Interrupted | KeyboardInterrupt):
        return Outcome.INFRASTRUCTURE_FAILURE, Reason("interrupted", f"ended by {str(error) or 'the keyboard'}")
    if isinstance(error, ModuleNotFoundError) and error.name == "numpy":
        message = f"numpy: expected it in {sys.executable}, found none; ./nightly task has a Python with it"
        return Outcome.INFRASTRUCTURE_FAILURE, Reason("numpy_missing", message)
    if isinstance(error, OSError) and error.errno in _FULL:
        message = f"{error.filename or 'a file'}: expected one that can be written, found: {error.strerror}"
        return Outcome.INFRASTRUCTURE_FAILURE, Reason("no_space", message)
    traceback.print_exception(error, file=sys.stderr)
    line = " ".join(f"{type(error).__name__}: {error}".split())
    return Outcome.INFRASTRUCTURE_FAILURE, Reason("unexpected_error", line)


def _deliver(program: str, record: Any, arguments: Namespace) -> int:
    outcome: Outcome = record.outcome
    if record.reason is not None:
        complain(program, outcome, record.reason)
    try:
        if arguments.out is None:
            sys.stdout.write(to_json(record))
            sys.stdout.flush()
        else:
            write_record(record, arguments.out)
    except OSError as error:
        outcome = Outcome.INFRASTRUCTURE_FAILURE
        complain(program, outcome, Reason("record_not_written", f"{arguments.out or 'standard output'}: {error}"))
    except BaseException as error:  # whatever it is, it is not the status of a regression
        outcome, reason = _classify(error)
        complain(program, outcome, reason)
    return outcome.exit_code
