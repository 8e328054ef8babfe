"""What the small tasks of the DAGs do; ``shared_tasks`` makes Airflow tasks of them, and the DAG files wire those."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from gpu_tasks.records import (
    InfrastructureFailure,
    Outcome,
    Reason,
    RunRecord,
    RunRequest,
    TaskError,
    read_record,
    write_record,
    write_text_atomically,
)
from regression import settings
from regression.nights.fallback import empty_run, unread_request
from regression.nights.folder import Night
from regression.nights.params import build_request
from regression.nights.schema import COMPARISON, Schema
from regression.nights.turn import LOCKS, Waiting, leave_turn, take_turn
from regression.operators.connection import results_engine
from regression.operators.failures import failure

log = logging.getLogger(__name__)
TRIGGERS = {"scheduled": "scheduled", "backfill": "backfill"}
WITH_ENERGY = ("auto", "cuda", "simulated")  # what may have a sensor to be held against a band


def accept_request(context: Mapping[str, Any], workload: str, schema: Schema | None = None) -> list[int]:
    """First task: freeze the parameters into ``request.json``; returns the numbers of the draws.

    ``schema`` is that of the workload's nights unless it is given.
    Refused parameters leave ``refused.json``, from which the run is stored as bad input. What an earlier try of the
    same run left is put aside: its parts are none of this one.
    """
    night, dag_run = _night(context), context["dag_run"]
    night.put_aside_earlier_try()
    given = {**context["params"], **(dag_run.conf or {})}
    trigger = TRIGGERS.get(str(getattr(dag_run.run_type, "value", dag_run.run_type)), "manual")
    logical_date = dag_run.logical_date.isoformat() if dag_run.logical_date else None
    with _as_airflow_failure():
        try:
            request = build_request(
                given,
                workload=workload,
                dag_id=night.dag_id,
                dag_run_id=night.dag_run_id,
                trigger=trigger,
                logical_date=logical_date,
                payload_folders=settings.payload_folders(),
                schema=schema,
            )
        except TaskError as error:
            tried = schema is COMPARISON or given.get("kernel_changed") is True
            empty = unread_request(workload, night.dag_id, night.dag_run_id, trigger, kernel_changed=tried)
            refused = empty_run(empty, error.outcome, Reason(error.code, error.message), refused_params=repr(given))
            write_record(refused, night.refusal_file)
            raise
    write_record(replace(request, reference_bands=_reference_bands(request.device)), night.request_file)
    return request.draws


def _reference_bands(device: str) -> dict[str, list[float]]:
    """What accepted runs taught of the reference load; none, and no failed night, where the database is away."""
    from sqlalchemy.exc import SQLAlchemyError

    from regression.results.reference_bands import learnt_bands

    if device not in WITH_ENERGY:
        return {}
    try:
        with results_engine().connect() as connection:
            return learnt_bands(connection, simulated=device == "simulated")
    except (SQLAlchemyError, AirflowException) as error:
        log.warning("no bands of the reference load were learnt: %s", " ".join(str(error).split()))
        return {}


def has_turn(context: Mapping[str, Any]) -> bool:
    """Whether this run may use the GPU now; the log says which one it waits for."""
    night, task_instance = _night(context), context["ti"]

    def is_over(waiting: Waiting) -> bool:
        # Counted, for a run that was deleted has no state. One that was cleared waits for its tasks to begin anew.
        held: int = task_instance.get_dr_count(waiting.dag_id, run_ids=[waiting.dag_run_id], states=["running"])
        return held == 0

    before = take_turn(settings.runs() / LOCKS, night.dag_id, night.dag_run_id, is_over)
    if before:
        first, others = before[0], len(before) - 1
        behind = f", and {others} more before it" if others else ""
        log.info("waits for run %s of %s, in the queue since %s%s", first.dag_run_id, first.dag_id, first.since, behind)
    return not before


def release_turn(context: Mapping[str, Any]) -> None:
    """Let the next run use the GPU."""
    night = _night(context)
    leave_turn(settings.runs() / LOCKS, night.dag_id, night.dag_run_id)


def plan_rounds(context: Mapping[str, Any]) -> list[int]:
    """Numbers of the rounds to measure; raises ``AirflowSkipException`` where the candidate is wrong."""
    night = _night(context)
    with _as_airflow_failure():
        request = night.request
        found = night.comparison if request.candidate is not None else None
    if found and found.outcome is not Outcome.OK:
        raise AirflowSkipException(f"the candidate is not measured: {found.reason.message if found.reason else ''}")
    return list(range(request.rounds))


def plan_confirmation(context: Mapping[str, Any]) -> list[int]:
    """Numbers of the confirmation rounds, which the look at the first ones calls for; the plan is a part of the run."""
    from regression.nights.confirmation import plan

    night = _night(context)
    with _as_airflow_failure():
        found = plan(night, results_engine)
        write_record(found, night.confirmation_file)
    log.info("%s: %s", found.reason and found.reason.code, found.reason and found.reason.message)
    return found.rounds


def load(context: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the run record in the spool, then load it and whatever older record still waits; says what it stored.

    Stores a run that failed as well: refused, or so broken that there is nothing but its request.
    """
    from regression.results.spool import keep_record, load_record

    with _as_airflow_failure():
        record = run_record_of(_night(context))
        keep_record(record, settings.records())
        result = load_record(results_engine(), settings.records(), record)
    log.info("run %s %s (records: %s)", result.run_id, result.status.value, settings.records())
    return {"run_id": result.run_id, "status": result.status.value, "outcome": record.outcome.value}


def report(context: Mapping[str, Any], loaded: Mapping[str, Any] | None, expected: Sequence[str]) -> dict[str, Any]:
    """Settle the verdict of the run, store and keep it, show it as a table, and return it for the last task.

    ``loaded`` is what the load of this very attempt returned; None: it failed. What the database then holds is an
    earlier attempt's, and must not be reported as this one's.
    """
    from sqlalchemy.exc import DBAPIError

    from regression.nights.table import verdict_table
    from regression.results.judgements import keep_judgement
    from regression.results.outcome import settle_verdict

    night = _night(context)
    with _as_airflow_failure():
        if not loaded:
            raise InfrastructureFailure("not_loaded", "the record of this attempt was not loaded; see the task load")
        try:
            with results_engine().begin() as connection:
                verdict = settle_verdict(connection, night.dag_id, night.dag_run_id, expected)
                keep_judgement(connection, settings.records(), verdict.run_id)
        except DBAPIError as error:
            message = f"the results database is away, the run is not judged; its record is kept ({error.orig})"
            raise InfrastructureFailure("results_unavailable", " ".join(message.split())) from error
        told = [*_compared(night), *verdict_table(verdict).splitlines()]
    for line in told:
        log.info("%s", line)
    write_text_atomically(json.dumps(verdict.as_json()) + "\n", night.verdict_file)
    return verdict.as_json()


def _compared(night: Night) -> list[str]:
    """The table of the two kernels, where two were compared."""
    if not night.comparison_file.exists():
        return []
    from regression.nights.comparing import comparison_table, verdicts_of

    record = run_record_of(night)
    if record.comparison is None:
        return []
    return [*comparison_table(record.comparison, verdicts_of(record.comparison, record.validations)).splitlines(), ""]


def require_fine(verdict: Mapping[str, Any]) -> None:
    """Last task: red unless the exit status is 0; its message is the run's verdict."""
    if verdict["exit"] == 0:
        log.info("verdict: %s", verdict["verdict"])
        return
    told = [f"{name} {line['verdict']}: {line['reason']}" for name, line in verdict["checks"].items()]
    raise AirflowFailException(" | ".join([f"{verdict['verdict']} (exit {verdict['exit']})", *told]))


def run_record_of(night: Night) -> RunRecord:
    """The record of the run; the refusal of its request, or its bare request, where there is none."""
    for path in (night.refusal_file, night.run_file):
        if path.exists():
            return read_record(path, RunRecord)
    if not night.request_file.exists():
        raise InfrastructureFailure("nothing_to_load", f"{night.folder}: expected a request, found nothing")
    request: RunRequest = night.request
    reason = Reason("no_run_record", f"no record of the run could be put together; its parts are in {night.folder}")
    return empty_run(request, Outcome.INFRASTRUCTURE_FAILURE, reason)


def _night(context: Mapping[str, Any]) -> Night:
    return Night(context["dag"].dag_id, context["run_id"])


@contextmanager
def _as_airflow_failure() -> Iterator[None]:
    try:
        yield
    except TaskError as error:
        raise failure(error.outcome, Reason(error.code, error.message)) from error
