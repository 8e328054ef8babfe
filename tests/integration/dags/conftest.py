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
FAULTY_PYTHON = Path(__file__).with_name("faulty_python.py")


@dataclass(frozen=True)
class Ran:
    """A finished DAG run: its state, the states of its tasks (sets, for mapped ones), its verdict and its log."""

    dag_run_id: str
    state: str
    tasks: dict[str, set[str | None]]
    verdict: dict[str, Any]
    log: str


@pytest.fixture(scope="session")
def metadata_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An Airflow home with a migrated SQLite database, to be copied."""
    home = tmp_path_factory.mktemp("airflow")
    command = [sys.executable, "-m", "airflow", "db", "migrate"]
    subprocess.run(command, env=_environment(home), check=True, capture_output=True)
    return home


@pytest.fixture
def run_night(metadata_template: Path, database: Database, tmp_path: Path) -> Iterator[Callable[..., Ran]]:
    """Function that runs a night with parameters and, if asked, a fault; results in ``database``.

    ``dag``: of another DAG, which has all of its parameters from the test.
    """
    ensure_first_baselines(database.writer, BASELINES)
    home = tmp_path / "airflow"
    shutil.copytree(metadata_template, home)
    (home / "airflow.cfg").unlink(missing_ok=True)

    def run(fault: str = "", *, dag: str = NIGHT, environment: dict[str, str] | None = None, **conf: Any) -> Ran:
        values = _environment(home) | {
            "NIGHTLY_ROOT": str(ROOT),
            "NIGHTLY_RUNS": str(tmp_path / "runs"),
            "NIGHTLY_RECORDS": str(tmp_path / "records"),
            "NIGHTLY_CANDIDATES": str(tmp_path / "candidates"),
            "NIGHTLY_TEST_DAG": str(ROOT / "dags" / f"{dag}.py"),
            "NIGHTLY_TEST_FAULT": fault,
            "NIGHTLY_GPU_PYTHON": str(_faulty_python(tmp_path)) if fault else sys.executable,
            "AIRFLOW_CONN_KERNEL_NIGHTLY_RESULTS": _connection(database),
        }
        defaults = {"device": "reference", "draws": [0, 3], "rounds": 1} if dag == NIGHT else {}
        command = [sys.executable, str(RUN_DAG), json.dumps(defaults | conf)]
        ended = subprocess.run(
            command, env=values | (environment or {}), capture_output=True, text=True, timeout=300, check=False
        )
        (tmp_path / "night.log").write_text(ended.stdout + ended.stderr)
        line = next((x for x in ended.stdout.splitlines() if x.startswith("RESULT ")), None)
        assert line, ended.stdout[-5000:] + ended.stderr[-5000:]
        result = json.loads(line.removeprefix("RESULT "))
        tasks: dict[str, set[str | None]] = {}
        for instance in result["tasks"]:
            tasks.setdefault(instance["task"], set()).add(instance["state"])
        with database.reader.connect() as connection:
            verdict = run_verdict(connection, dag, result["dag_run_id"]).as_json()
        return Ran(result["dag_run_id"], result["state"], tasks, verdict, ended.stdout + ended.stderr)

    yield run


def _faulty_python(folder: Path) -> Path:
    """The faulty interpreter as an executable that runs under this interpreter, wherever that is."""
    path = folder / "faulty-python"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAULTY_PYTHON}" "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def _environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "NIGHTLY"))}
    return kept | {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
    }


def _connection(database: Database) -> str:
    url = database.writer.url
    parts = {"conn_type": "postgres", "host": url.host, "port": url.port, "schema": url.database}
    return json.dumps(parts | {"login": url.username, "password": url.password})
