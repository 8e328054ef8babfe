"""A run of a DAG by ``dag.test``: throwaway SQLite for Airflow, real PostgreSQL for the results, real programs."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from regression.results.baselines import ensure_first_baselines
from regression.results.outcome import run_verdict
from tests.integration.regression.databases import Database, database, newest_schema, roles

__all__ = ["database", "newest_schema", "roles"]

ROOT = Path(__file__).resolve().parents[3]
BASELINES = ROOT / "gpu_tasks" / "baselines"
RUN_DAG = Path(__file__).with_name("run_dag.py")
NIGHT = "nightly_qda"
RUN_TIMEOUT_S = 300
FAULTY_PYTHON = Path(__file__).with_name("faulty_python.py")


@dataclass(frozen=True)
class Ran:
    """A finished DAG run: its state, the states of its tasks (sets, for mapped ones), its verdict and its log."""

    dag_run_id: str
    state: str
    tasks: dict[str, set[str | None]]
    verdict: dict[str, Any]
    log: str


class Runner:
    """A process that runs DAGs with the modules of one tree, and the metadata database that each run has a copy of."""

    def __init__(self, environment: dict[str, str], template: Path) -> None:
        self.template = template
        command = [sys.executable, str(RUN_DAG), str(template)]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._await(Path(f"{template}.log"))

    def run(self, conf: dict[str, Any], environment: dict[str, str], output: Path) -> str:
        """What a run of the DAG that the environment names wrote."""
        asked = {"conf": conf, "environment": environment, "output": str(output), "timeout_s": RUN_TIMEOUT_S}
        assert self._process.stdin is not None
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        self._await(output)
        return output.read_text()

    def close(self) -> None:
        self._process.communicate()

    def _await(self, output: Path) -> None:
        assert self._process.stdout is not None
        told = self._process.stdout.readline().strip()
        assert told == "ended with 0", f"{told}\n{output.read_text()[-5000:] if output.exists() else ''}"


@pytest.fixture(scope="session")
def runners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[dict[str, str]], Runner]]:
    """Function that returns the runner for an environment: one for each place that modules come from."""
    home = tmp_path_factory.mktemp("airflow")
    started: dict[str, Runner] = {}

    def runner_for(environment: dict[str, str]) -> Runner:
        tree = environment["PYTHONPATH"]
        if tree not in started:
            started[tree] = Runner(environment | {"AIRFLOW_HOME": str(home)}, home / "template.db")
        return started[tree]

    yield runner_for
    for runner in started.values():
        runner.close()


@pytest.fixture
def run_night(
    runners: Callable[[dict[str, str]], Runner], database: Database, tmp_path: Path
) -> Iterator[Callable[..., Ran]]:
    """Function that runs a night with parameters and, if asked, a fault; results in ``database``.

    ``dag``: of another DAG, which has all of its parameters from the test.
    """
    ensure_first_baselines(database.writer, BASELINES)
    home = tmp_path / "airflow"
    home.mkdir()
    metadata = home / "airflow.db"

    def run(fault: str = "", *, dag: str = NIGHT, environment: dict[str, str] | None = None, **conf: Any) -> Ran:
        values = _environment(home) | {
            "NIGHTLY_ROOT": str(ROOT),
            "NIGHTLY_RUNS": str(tmp_path / "runs"),
            "NIGHTLY_RECORDS": str(tmp_path / "records"),
            "NIGHTLY_CANDIDATES": str(tmp_path / "candidates"),
            "NIGHTLY_TEST_DAG": str(_alone(ROOT / "dags" / f"{dag}.py", tmp_path)),
            "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / dag),
            "NIGHTLY_TEST_FAULT": fault,
            "NIGHTLY_GPU_PYTHON": str(_faulty_python(tmp_path)) if fault else sys.executable,
            "AIRFLOW_CONN_KERNEL_NIGHTLY_RESULTS": _connection(database),
        }
        defaults = {"device": "reference", "draws": [0, 3], "rounds": 1} if dag == NIGHT else {}
        values |= environment or {}
        runner = runners(values)
        if not metadata.exists():
            shutil.copy(runner.template, metadata)
        log = runner.run(defaults | conf, values, tmp_path / "night.log")
        line = next((x for x in log.splitlines() if x.startswith("RESULT ")), None)
        assert line, log[-5000:]
        result = json.loads(line.removeprefix("RESULT "))
        tasks: dict[str, set[str | None]] = {}
        for instance in result["tasks"]:
            tasks.setdefault(instance["task"], set()).add(instance["state"])
        with database.reader.connect() as connection:
            verdict = run_verdict(connection, dag, result["dag_run_id"]).as_json()
        return Ran(result["dag_run_id"], result["state"], tasks, verdict, log)

    yield run


def _alone(path: Path, folder: Path) -> Path:
    """The DAG file in a folder of its own, for ``dag.test`` reads and stores every DAG of the folder anew."""
    link = folder / path.stem / path.name
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(path)
    return link


def _faulty_python(folder: Path) -> Path:
    """The faulty interpreter as an executable that runs under this interpreter, wherever that is."""
    path = folder / "faulty-python"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAULTY_PYTHON}" "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def _environment(home: Path) -> dict[str, str]:
    foreign = ("AIRFLOW", "_AIRFLOW", "NIGHTLY")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return kept | {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
    }


def _connection(database: Database) -> str:
    url = database.writer.url
    parts = {"conn_type": "postgres", "host": url.host, "port": url.port, "schema": url.database}
    return json.dumps(parts | {"login": url.username, "password": url.password})
