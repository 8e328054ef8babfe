"""Run DAGs by ``dag.test``, each in a process of its own, forked from one in which Airflow is loaded already.

``dag.test`` never raises, and parameters of one run leak into the next of the same process: hence the processes. To
load Airflow takes longer than the tasks of a night do: hence the fork.

Usage: ``run_dag.py TEMPLATE_DATABASE`` makes that database, if it is not there, and then answers each line of standard
input, a JSON object of ``environment``, ``conf``, ``output`` (file that the run writes to) and ``timeout_s``, with one
line: how the process ended. The output of a run ends with one line of task states. ``NIGHTLY_TEST_LOGICAL_DATE`` names
the run: the same one again is the same run, cleared and run once more.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from gpu_tasks.tied import die_with

LOADED_BEFORE = (
    "airflow.api.common.trigger_dag",
    "airflow.api_fastapi.execution_api.app",
    "airflow.api_fastapi.execution_api.routes",
    "airflow.dag_processing.bundles.manager",
    "airflow.dag_processing.collection",
    "airflow.dag_processing.dagbag",
    "airflow.models.dagrun",
    "airflow.sdk.execution_time.supervisor",
    "airflow.sdk.execution_time.task_runner",
    "airflow.serialization.serialized_objects",
    "regression.nights.alerting",
    "regression.nights.confirmation",
    "regression.nights.shared_tasks",
    "regression.operators",
    "regression.results.spool",
)
MIGRATE_TIMEOUT_S = 300


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")  # what is loaded writes to standard output as well
    os.dup2(2, 1)
    for name in LOADED_BEFORE:
        importlib.import_module(name)
    gc.freeze()  # nobody looks through what is loaded again, in each process that is forked from this one
    template = sys.argv[1]
    environment = {**os.environ, "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{template}"}
    print(_in_a_process(_migrate, environment, f"{template}.log", MIGRATE_TIMEOUT_S), file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        ended = _in_a_process(
            lambda conf=asked["conf"]: _run(conf), asked["environment"], asked["output"], asked["timeout_s"]
        )
        print(ended, file=answers, flush=True)


def _in_a_process(work: Callable[[], None], environment: dict[str, str], output: str, timeout_s: float) -> str:
    """Fork a process that does ``work`` with ``environment``; says with what it ended, or that it was not in time."""
    assert threading.active_count() == 1, "a fork takes one thread along"
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            die_with(parent)
            _begin(environment, output)
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    descriptor = os.pidfd_open(child)
    in_time = bool(select.select([descriptor], [], [], timeout_s)[0])
    os.close(descriptor)
    if not in_time:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return f"ended with {os.waitstatus_to_exitcode(status)}" if in_time else f"not done after {timeout_s} s"


def _begin(environment: dict[str, str], output: str) -> None:
    """Be as a process that was started with this environment."""
    os.environ.clear()
    os.environ.update(environment)
    written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(written, 1)
    os.dup2(written, 2)
    from airflow import settings

    settings.dispose_orm(do_log=False)
    settings.configure_vars()
    settings.configure_orm()


def _migrate() -> None:
    from airflow import settings
    from airflow.utils.db import upgradedb

    upgradedb()
    settings.dispose_orm(do_log=False)  # what was written is in the file itself once it is closed


def _run(conf: dict[str, Any]) -> None:
    path = Path(os.environ["NIGHTLY_TEST_DAG"])
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    for task in module.dag.tasks:
        task.retries = 0  # dag.test would wait out every retry delay
        if task.task_id in ("provision", "candidate"):
            task.python = os.environ["NIGHTLY_GPU_PYTHON"]  # the faulty one, where there is a fault
    named = os.environ.get("NIGHTLY_TEST_LOGICAL_DATE")
    date = dict.fromkeys(("logical_date", "run_after"), datetime.fromisoformat(named)) if named else {}
    time.sleep = _not_for_what_never_runs(time.sleep)
    dag_run = module.dag.test(run_conf=conf, **date)
    states = [
        {"task": ti.task_id, "index": ti.map_index, "state": ti.state and str(ti.state)}
        for ti in dag_run.get_task_instances()
    ]
    print("\nRESULT " + json.dumps({"dag_run_id": dag_run.run_id, "state": str(dag_run.state), "tasks": states}))


def _not_for_what_never_runs(sleep: Callable[[float], None]) -> Callable[[float], None]:
    """``time.sleep``, but for the whole second that ``dag.test`` waits at each step of tasks that follow a failure."""

    def shorter(seconds: float) -> None:
        caller = sys._getframe(1)
        of_dag_test = caller.f_code.co_name == "test" and caller.f_globals["__name__"] == "airflow.sdk.definitions.dag"
        sleep(0.0 if of_dag_test else seconds)

    return shorter


if __name__ == "__main__":
    main()
