"""Run one GPU program as an Airflow task: a child process of its own, a record read back, nothing left behind."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowTaskTimeout

from gpu_tasks.records import (
    RECORDS,
    BadInput,
    InfrastructureFailure,
    Outcome,
    Reason,
    TaskError,
    read_record,
    write_record,
)
from regression import settings
from regression.operators.child import Child, child_environment
from regression.operators.failures import failure
from regression.operators.locks import device_lock
from regression.operators.part_records import NUMBERS, record_for

if TYPE_CHECKING:
    from airflow.sdk import Context

SUMMARISE = "summarise"  # its record tells the outcome of the run; putting it together is all it has to do
FINISHED = {Outcome.OK, Outcome.REGRESSION}  # a finding is for the checks to judge, not a failure of the task


class GpuTaskOperator(BaseOperator):
    """Run ``python -m gpu_tasks PROGRAM --OPTION VALUE... --out RECORD`` beside the GPU.

    The task succeeds when the program ends with 0 or 1 (``summarise``: whenever it leaves the record of the run,
    whatever that says), and fails with the reason of its record otherwise. A program that leaves no record refused its
    arguments if it ended with 2 (bad input, its last line the reason); anything else, a kill or a time-out as well,
    is an infrastructure failure. A record that says so is written for it. Returns path, outcome, reason and draw or
    round number (not the record) as XCom.

    :param program: one of those that leave a record, such as provision or measure.
    :param options: long options and their values; an empty value leaves its option out, and True stands for one that
        takes none (templated).
    :param record: file that the record is written to; an older one is removed first (templated).
    :param lock: uuid of the device that the program uses, or empty: no two programs use one device at the same
        time, in or outside Airflow (templated).
    :param number: draw or round, for use in templates as ``task.number``; this is what to ``expand`` over.
    :param grace_s: seconds between SIGTERM and SIGKILL when the task is ended.
    :param workload: whose interpreter: ``NIGHTLY_GPU_PYTHON_`` and its name in capitals, where that is set.
    :param python: interpreter; default ``NIGHTLY_GPU_PYTHON``.
    :param env: environment variables to add, those that are empty left out (templated). Airflow's own and whatever
        looks like a secret are taken out.
    """

    template_fields: Sequence[str] = ("options", "record", "lock", "env")
    ui_color = "#dcefdc"

    def __init__(
        self,
        *,
        program: str,
        options: Mapping[str, str | bool] | None = None,
        record: str,
        lock: str = "",
        number: int | None = None,
        grace_s: float = 5.0,
        workload: str = "",
        python: str | None = None,
        env: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if program not in RECORDS:
            raise ValueError(f"program: expected one of {', '.join(RECORDS)}, found {program!r}")
        self.program = program
        self.options = dict(options or {})
        self.record = record
        self.lock = lock
        self.number = number
        self.grace_s = grace_s
        self.workload = workload
        self.python = python
        self.env = dict(env or {})
        self._child: Child | None = None
        self._last_line = ""

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's signature
        """Run the program and return what its record says."""
        path = Path(self.record)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        try:
            status = self._run()
            outcome, reason = self._read(path, status)
        except BaseException as error:
            self._leave_record(path, _class_of(error), _reason_for(error))
            if isinstance(error, TaskError):
                raise failure(error.outcome, Reason(error.code, error.message)) from error
            raise
        if outcome not in FINISHED and self.program != SUMMARISE:
            raise failure(outcome, reason or Reason("no_reason", f"{path.name} gives no reason"))
        numbers = {name: int(self.options[name]) for name in NUMBERS if name in self.options}
        return {"path": str(path), "outcome": outcome.value, "reason": reason and reason.message, **numbers}

    def on_kill(self) -> None:
        """End the program and everything it started."""
        if self._child:
            self.log.info("ending the program and all it started")
            self._child.kill(self.grace_s)

    def _command(self) -> list[str]:
        given = [part for name, value in self._given().items() for part in (f"--{name}", value) if part is not True]
        return [
            self.python or settings.gpu_python(self.workload),
            "-m",
            "gpu_tasks",
            self.program,
            *given,
            "--out",
            self.record,
        ]

    def _given(self) -> dict[str, str | bool]:
        given = {name: value for name, value in self.options.items() if value not in (None, "") and value is not False}
        return {name: True if value is True else str(value) for name, value in given.items()}

    def _run(self) -> int:
        command = self._command()
        self.log.info("running: %s", " ".join(command))
        with ExitStack() as stack:
            held = [stack.enter_context(device_lock(settings.runs() / "locks", self.lock))] if self.lock else []
            environment = child_environment(os.environ, {name: value for name, value in self.env.items() if value})
            self._child = Child(command, settings.root(), environment, held)
            stack.callback(self._child.close)
            try:
                for line in self._child.lines():
                    self.log.info("%s", line)
                    self._last_line = line.strip() or self._last_line
                return self._child.exit_status()
            except BaseException:
                self._child.kill(self.grace_s)
                raise

    def _read(self, path: Path, status: int) -> tuple[Outcome, Reason | None]:
        """What the record says, if it agrees with the exit status; raises ``TaskError`` if not or if there is none."""
        ending = f"signal {-status}" if status < 0 else f"exit status {status}"
        try:
            record = read_record(path, RECORDS[self.program][1])
        except BadInput as error:
            if status == Outcome.BAD_INPUT.exit_code and not path.exists():  # argparse's end: no record to write yet
                raise BadInput("arguments_refused", self._last_line or f"{self.program} gave no reason") from error
            why = error.message if path.exists() else "no record"
            raise InfrastructureFailure("program_died", f"{self.program} ended with {ending}: {why}") from error
        if record.outcome.exit_code != status:
            message = f"{self.program} ended with {ending} though its record says {record.outcome.value}"
            raise InfrastructureFailure("program_died", message)
        return record.outcome, record.reason

    def _leave_record(self, path: Path, outcome: Outcome, reason: Reason) -> None:
        values = {name: value for name, value in self._given().items() if isinstance(value, str)}
        record = record_for(self.program, values, outcome, reason)
        path.unlink(missing_ok=True)
        if record:
            write_record(record, path)


def _class_of(error: BaseException) -> Outcome:
    return error.outcome if isinstance(error, TaskError) else Outcome.INFRASTRUCTURE_FAILURE


def _reason_for(error: BaseException) -> Reason:
    if isinstance(error, TaskError):
        return Reason(error.code, error.message)
    if isinstance(error, AirflowTaskTimeout):
        return Reason("timed_out", "the task ran into its execution_timeout and was ended")
    return Reason("task_ended", f"the task was ended by {type(error).__name__}: {error}".rstrip(": "))
