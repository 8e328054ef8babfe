"""Failures of the launcher, with the exit code of their class."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpu_tasks.records import Outcome, TaskError, one_line


class LauncherError(Exception):
    """One line for the user and the class of the failure, which sets the exit code."""

    def __init__(self, message: str, outcome: Outcome = Outcome.INFRASTRUCTURE_FAILURE) -> None:
        super().__init__(one_line(message))
        self.outcome = outcome


class Usage(LauncherError):
    """The command line cannot be carried out as it is: exit 2."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Outcome.BAD_INPUT)


@contextmanager
def told_in_one_line() -> Iterator[None]:
    """Failures of the other houses as the launcher's own."""
    try:
        yield
    except TaskError as error:
        raise LauncherError(error.message, error.outcome) from error
