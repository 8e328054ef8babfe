"""Trigger a run of a DAG, follow it task by task, and read its verdict from the database."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import create_engine

from gpu_tasks.records import BadInput, RunRequest
from local.errors import LauncherError, Usage
from local.followed import following
from local.paths import Home
from local.rest import FINISHED, Airflow
from local.stack import Stack
from local.workloads import payload_folders
from regression.nights import schema
from regression.nights.params import build_request
from regression.nights.schema import Schema
from regression.nights.workloads import DEFAULT, WITH_KERNELS, WORKLOADS
from regression.results.outcome import RunVerdict, run_verdict

DAG_TIMEOUT_S = 90
POLL_S = 0.5
COMES_AGAIN = (None, "up_for_retry", "up_for_reschedule")
"""States of a task that has ended for now."""


@dataclass(frozen=True)
class Dag:
    """A DAG that people trigger: its id, its workload, and how the run of a command that waits is called.

    ``schema`` says what its params may be; None: what those of the workload's nights may be.
    """

    dag_id: str
    workload: str
    prefix: str
    schema: Schema | None = None


NIGHTS = {workload.name: Dag(workload.dag_id, workload.name, "run__") for workload in WORKLOADS.values()}
"""The night of each workload."""
NIGHT = NIGHTS[DEFAULT.name]
COMPARISON = Dag("compare_kernels", WITH_KERNELS.name, "try__", schema.COMPARISON)
TRIGGERED = "manual__"  # the run of a command that does not wait, as of Airflow's form
WATCHDOG = "nightly_watchdog"
CHANGED = "kernel_changed"
"""The DAG, and the asset that it waits for."""
ASKED_FOR = (*(night.dag_id for night in NIGHTS.values()), COMPARISON.dag_id, CHANGED)
"""Their runs take the GPU or lead to one that does: somebody waits for them, and they are not cut off unasked."""
DAGS = (*ASKED_FOR, WATCHDOG)


def parse_params(pairs: list[str], device: str | None) -> dict[str, Any]:
    """``KEY=VALUE`` pairs as a run's params: a value that is JSON is taken as such, anything else as text."""
    params: dict[str, Any] = {} if device is None else {"device": device}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        if not separator or not key:
            raise Usage(f"--param: expected KEY=VALUE, found {pair!r}")
        if key in params:
            raise Usage(f"--param: {key} is given twice")
        try:
            params[key] = json.loads(text)
        except (ValueError, RecursionError):  # too deep for a param of ours in any case
            params[key] = text
        try:
            json.dumps(params[key], ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise Usage(f"--param {key}: expected text, found bytes or escapes that are none") from None
    return params


def accept_params(
    home: Home, pairs: list[str], device: str | None, dag: Dag = NIGHT, options: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The params of a run, refused here already, before anything is started, when the first task would refuse them.

    ``options`` are params that have options of their own; those that are None were not given.
    """
    params = parse_params(pairs, device)
    for name, value in (options or {}).items():
        if value is not None and name in params:
            raise Usage(f"--param: {name} is given twice")
        params |= {} if value is None else {name: value}
    given = {name for name, value in {"device": device, **(options or {})}.items() if value is not None}
    requested(home, params, dag, options=given)
    return params


def requested(home: Home, params: Mapping[str, Any], dag: Dag, *, options: Collection[str] = ()) -> RunRequest:
    """What a run with these params is asked for, defaults filled in; raises ``Usage`` where the run would refuse.

    ``options`` are those of the params that were given by options of their own, and are called so.
    """
    try:
        return build_request(
            params,
            workload=dag.workload,
            dag_id=dag.dag_id,
            dag_run_id="",
            trigger="manual",
            logical_date=None,
            payload_folders=payload_folders(home),
            schema=dag.schema,
        )
    except BadInput as error:
        name, _, said = error.message.partition(":")
        raise Usage(f"--{name}:{said}" if name in options else f"param {error.message}") from None


def queue(stack: Stack, dag: Dag, params: dict[str, Any]) -> str:
    """Trigger a run that nobody waits for and return its id."""
    run_id = _name_now(TRIGGERED)
    _trigger(stack.airflow(), dag, run_id, params)
    return run_id


def carry_out(stack: Stack, dag: Dag, params: dict[str, Any], say: Callable[[str], None]) -> tuple[str, str]:
    """Trigger a run and wait for its end, saying each task as it ends; returns the run's id and its state.

    The run ends with this command, whatever ends that (``local.followed``).
    """
    client = stack.airflow()
    run_id = _name_now(dag.prefix)
    with following(stack.home, client, dag.dag_id, run_id):
        _trigger(client, dag, run_id, params)
        say(f"run {run_id}")
        return run_id, _follow(client, dag.dag_id, run_id, say)


def make_available(client: Airflow, dag_id: str) -> None:
    """Wait until Airflow knows the DAG, and let it run."""
    if _wait_for_dag(client, dag_id)["is_paused"]:
        client.unpause(dag_id)


def unfinished(client: Airflow) -> list[str]:
    """Ids of the runs that nobody wants cut off, in the order in which they were asked for."""
    runs = [run for dag_id in ASKED_FOR for run in client.unfinished_runs(dag_id)]
    return [run["dag_run_id"] for run in sorted(runs, key=lambda run: str(run["queued_at"]))]


def verdict(stack: Stack, dag: Dag, run_id: str) -> RunVerdict:
    """The run's verdict as the results database has it."""
    engine = create_engine(stack.databases().reader)
    try:
        with engine.connect() as connection:
            return run_verdict(connection, dag.dag_id, run_id)
    finally:
        engine.dispose()


def failed_tasks(stack: Stack, dag: Dag, run_id: str) -> list[str]:
    """Tasks of the run that failed themselves, in order of time."""
    tasks = stack.airflow().task_instances(dag.dag_id, run_id)
    failed = [task for task in tasks if task["state"] == "failed"]
    return [_name(task) for task in sorted(failed, key=lambda task: task["end_date"] or "")]


def _wait_for_dag(client: Airflow, dag_id: str) -> dict[str, Any]:
    deadline = time.monotonic() + DAG_TIMEOUT_S
    while (dag := client.dag(dag_id)) is None:
        errors = client.import_errors()
        if errors:
            raise LauncherError(f"the DAG could not be imported: {errors[0]}")
        if time.monotonic() > deadline:
            raise LauncherError(f"Airflow did not read the DAG {dag_id} within {DAG_TIMEOUT_S} s")
        time.sleep(0.2)
    return dag


def _trigger(client: Airflow, dag: Dag, run_id: str, params: dict[str, Any]) -> None:
    make_available(client, dag.dag_id)
    client.trigger(dag.dag_id, run_id, params)


def _follow(client: Airflow, dag_id: str, run_id: str, say: Callable[[str], None]) -> str:
    seen: set[tuple[str, int]] = set()
    waiting_said = False
    while True:
        state = client.run_state(dag_id, run_id)
        if state is None:
            raise LauncherError(f"run {run_id}: expected to find it in Airflow, found it deleted")
        for task in sorted(client.task_instances(dag_id, run_id), key=lambda item: item["end_date"] or ""):
            key = (task["task_id"], task["map_index"])
            if task["end_date"] and task["state"] not in COMES_AGAIN and key not in seen:
                seen.add(key)
                say(_task_line(task))
            elif task["state"] == "up_for_reschedule" and not waiting_said:
                waiting_said = _say_what_is_waited_for(client, run_id, say)
        if state in FINISHED:
            return state
        if state == "queued" and not waiting_said:
            waiting_said = _say_what_is_waited_for(client, run_id, say)
        time.sleep(POLL_S)


def _say_what_is_waited_for(client: Airflow, run_id: str, say: Callable[[str], None]) -> bool:
    waiting = unfinished(client)
    before = waiting[: waiting.index(run_id)] if run_id in waiting else []
    if before:
        say(f"queued behind {before[0]}")
    return bool(before)


def _name_now(prefix: str) -> str:
    return f"{prefix}{datetime.now(UTC).isoformat(timespec='milliseconds')}"


def _name(task: dict[str, Any]) -> str:
    return task["task_id"] if task["map_index"] < 0 else f"{task['task_id']}[{task['map_index']}]"


def _task_line(task: dict[str, Any]) -> str:
    duration = f"{task['duration']:6.1f} s" if task["duration"] is not None else " " * 8
    return f"  {task['state']:<16} {duration}  {_name(task)}"
