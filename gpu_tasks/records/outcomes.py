"""How a program of this project can end, and the exit code that says so.

The same classes are used for exit codes, records, tables and alerts, so that a lost GPU or a bad
argument can never be read as a regression of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Outcome(str, Enum):
    """Class of the result of one task or one run."""

    OK = "ok"
    REGRESSION = "regression"
    BAD_INPUT = "bad_input"
    INVALID_MEASUREMENT = "invalid_measurement"
    VERIFICATION_MISMATCH = "verification_mismatch"
    INFRASTRUCTURE_FAILURE = "infrastructure_failure"

    @property
    def exit_code(self) -> int:
        """Process exit status: 0 ok, 1 regression, 2 bad input, 3 invalid, 4 mismatch, 5 infrastructure."""
        return list(Outcome).index(self)

    @classmethod
    def worst(cls, outcomes: Iterable[Outcome]) -> Outcome:
        """The one that a whole run reports; ``ok`` of nothing.

        What was run must be right before anything measured means something, and seen disagreement outranks a
        missing part: mismatch, then bad input, then regression, then infrastructure, then invalid measurement.
        """
        order = (
            cls.OK,
            cls.INVALID_MEASUREMENT,
            cls.INFRASTRUCTURE_FAILURE,
            cls.REGRESSION,
            cls.BAD_INPUT,
            cls.VERIFICATION_MISMATCH,
        )
        return max(outcomes, key=order.index, default=cls.OK)


def one_line(text: str) -> str:
    """``text`` as a log, a terminal and a database can show it: what was read from a file may be anything."""
    lines = text.splitlines()
    line = text if lines == [text] else " ".join(filter(None, map(str.strip, lines)))
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in line)


class TaskError(Exception):
    """A failure with a class and a documented code; its text is one line fit for a user.

    Raise the subclass of the failure's class. ``code`` is a short snake_case word that is stored,
    counted and documented; ``message`` names file, field, expected and found where they apply.
    """

    outcome = Outcome.INFRASTRUCTURE_FAILURE

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = one_line(message)
        super().__init__(self.message)


class BadInput(TaskError):
    """An argument, a parameter, a record or a payload source that cannot be used."""

    outcome = Outcome.BAD_INPUT


class Regression(TaskError):
    """A kernel that does something else than it must."""

    outcome = Outcome.REGRESSION


class InvalidMeasurement(TaskError):
    """A measurement that was made but cannot be trusted."""

    outcome = Outcome.INVALID_MEASUREMENT


class VerificationMismatch(TaskError):
    """Bytes that differ from their pinned hash."""

    outcome = Outcome.VERIFICATION_MISMATCH


class InfrastructureFailure(TaskError):
    """The machine, the driver or a service failed; says nothing about the kernel."""

    outcome = Outcome.INFRASTRUCTURE_FAILURE
