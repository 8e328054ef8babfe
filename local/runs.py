"""Trigger a run of the nightly DAG, follow it task by task, and read its verdict from the database."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine

from gpu_tasks.records import BadInput
from local.errors import LauncherError, Usage
from local.paths import ROOT, Home
from local.rest import FINISHED, Airflow
from local.stack import Stack
from regression.nights.params import build_request
from regression.results.outcome import RunVerdict, run_verdict

WORKLOAD = "qda"
DAG_ID = f"nightly_{WORKLOAD}"
WATCHDOG = "nightly_watchdog"
RUN_PREFIX = "run__"
DAG_TIMEOUT_S = 90
POLL_S = 0.5


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
        except ValueError:
            params[key] = text
        try:
            json.dumps(params[key], ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise Usage(f"--param {key}: expected text, found bytes or escapes that are none") from None
    return params


def accept_params(home: Home, pairs: list[str], device: str | None) -> dict[str, Any]:
    """The params of a run, refused here already, before anything is started, when the first task would refuse them."""
    params = parse_params(pairs, device)
    folders = [Path(os.environ.get("NIGHTLY_PAYLOADS") or home.payloads), ROOT / "gpu_tasks" / "payload"]
    try:
        build_request(
            params,
            workload=WORKLOAD,
            dag_id=DAG_ID,
            dag_run_id="",
            trigger="manual",
            logical_date=None,
            payload_folders=folders,
        )
    except BadInput as error:
        raise Usage(f"param {error.message}") from None
    return params


def queue(stack: Stack, params: dict[str, Any], *, prefix: str) -> str:
    """Trigger the DAG with ``params`` and return the id of the run."""
    client = stack.airflow()
    make_available(client)
    if prefix == RUN_PREFIX:
        _fail_orphans(client)
    run_id = f"{prefix}{datetime.now(UTC).isoformat(timespec='milliseconds')}"
    client.trigger(DAG_ID, run_id, params)
    return run_id


def make_available(client: Airflow, dag_id: str = DAG_ID) -> None:
    """Wait until Airflow knows the DAG, and let it run."""
    if _wait_for_dag(client, dag_id)["is_paused"]:
        client.unpause(dag_id)


def follow(stack: Stack, run_id: str, say: Callable[[str], None]) -> str:
    """Wait for the run to finish, saying each task as it ends; returns the DAG run's state.

    When interrupted, the run is marked failed, which ends its tasks, before the interruption goes on.
    """
    client = stack.airflow()
    seen: set[tuple[str, int]] = set()
    waiting_said = False
    try:
        while True:
            state = client.run_state(DAG_ID, run_id)
            for task in sorted(client.task_instances(DAG_ID, run_id), key=lambda item: item["end_date"] or ""):
                key = (task["task_id"], task["map_index"])
                if task["end_date"] and task["state"] not in ("up_for_retry", None) and key not in seen:
                    seen.add(key)
                    say(_task_line(task))
            if state in FINISHED:
                return state
            if state == "queued" and not waiting_said:
                waiting_said = _say_what_is_waited_for(client, run_id, say)
            time.sleep(POLL_S)
    except BaseException:
        client.fail_run(DAG_ID, run_id)
        raise


def verdict(stack: Stack, run_id: str) -> RunVerdict:
    """The run's verdict as the results database has it."""
    engine = create_engine(stack.databases().reader)
    try:
        with engine.connect() as connection:
            return run_verdict(connection, DAG_ID, run_id)
    finally:
        engine.dispose()


def failed_tasks(stack: Stack, run_id: str) -> list[str]:
    """Tasks of the run that failed themselves, in order of time."""
    tasks = stack.airflow().task_instances(DAG_ID, run_id)
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


def _fail_orphans(client: Airflow) -> None:
    """Runs of a ``nightly run`` that was killed would block the next one; whoever calls this holds the run lock."""
    for run in client.unfinished_runs(DAG_ID):
        if run["dag_run_id"].startswith(RUN_PREFIX):
            print(f"marking {run['dag_run_id']}, which was interrupted, as failed", file=sys.stderr)
            client.fail_run(DAG_ID, run["dag_run_id"])


def _say_what_is_waited_for(client: Airflow, run_id: str, say: Callable[[str], None]) -> bool:
    others = [run["dag_run_id"] for run in client.unfinished_runs(DAG_ID) if run["dag_run_id"] != run_id]
    if others:
        say(f"queued behind {others[0]}")
    return bool(others)


def _name(task: dict[str, Any]) -> str:
    return task["task_id"] if task["map_index"] < 0 else f"{task['task_id']}[{task['map_index']}]"


def _task_line(task: dict[str, Any]) -> str:
    duration = f"{task['duration']:6.1f} s" if task["duration"] is not None else " " * 8
    return f"  {task['state']:<16} {duration}  {_name(task)}"
