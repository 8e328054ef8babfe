"""Run a DAG once with ``dag.test`` in a process of its own; prints one JSON line of task states.

``dag.test`` never raises, and parameters of one run leak into the next of the same process: hence a script.
Usage: ``run_dag.py CONF_JSON``; the environment is prepared by the caller. ``NIGHTLY_TEST_LOGICAL_DATE`` names the run:
the same one again is the same run, cleared and run once more.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from datetime import datetime
from pathlib import Path


def main() -> None:
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
    dag_run = module.dag.test(run_conf=json.loads(sys.argv[1]), **date)
    states = [
        {"task": ti.task_id, "index": ti.map_index, "state": ti.state and str(ti.state)}
        for ti in dag_run.get_task_instances()
    ]
    print("\nRESULT " + json.dumps({"dag_run_id": dag_run.run_id, "state": str(dag_run.state), "tasks": states}))


if __name__ == "__main__":
    main()
