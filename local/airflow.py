"""The three Airflow processes: their settings, their start, and what they need once they are healthy."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from local import alert_channels, environments
from local.databases import Databases
from local.errors import LauncherError
from local.paths import ROOT, Home
from local.processes import die_with_parent
from local.secrets import Secrets
from regression.nights.workloads import DEFAULT, WORKLOADS

# The log server would listen on every address; task logs are read from the disk that everything here shares.
COMPONENTS = {"api-server": [], "scheduler": ["--skip-serve-logs"], "dag-processor": []}
USER = "admin"
GPU_POOL = "gpu"


@dataclass(frozen=True)
class Schedule:
    """When the nights run: a cron line or "none" in a time zone, from ``start_date`` (ISO 8601) on.

    ``workloads`` are those whose nights they are, by name with commas.
    """

    cron: str
    timezone: str
    start_date: str
    workloads: str = DEFAULT.name

    def environment(self) -> dict[str, str]:
        """Variables that the DAG file reads."""
        return {
            "NIGHTLY_SCHEDULE": self.cron,
            "NIGHTLY_TIMEZONE": self.timezone,
            "NIGHTLY_START_DATE": self.start_date,
            "NIGHTLY_WORKLOADS": self.workloads,
        }


def settings(home: Home, target: Databases, secrets: Secrets, port: int, schedule: Schedule) -> dict[str, str]:
    """Environment of every Airflow process."""
    api = f"http://127.0.0.1:{port}"
    airflow = {
        "CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__EXECUTOR": "LocalExecutor",
        "CORE__PARALLELISM": "4",
        "CORE__FERNET_KEY": secrets.fernet_key,
        "CORE__EXECUTION_API_SERVER_URL": f"{api}/execution/",
        "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home.airflow / "passwords.json"),
        "DATABASE__SQL_ALCHEMY_CONN": target.airflow,
        "API__HOST": "127.0.0.1",
        "API__PORT": str(port),
        "API__BASE_URL": api,
        "API__WORKERS": "1",
        "API__SECRET_KEY": secrets.api_secret_key,
        "API_AUTH__JWT_SECRET": secrets.jwt_secret,
        "LOGGING__BASE_LOG_FOLDER": str(home.airflow / "logs"),
        # A night is a chain of short tasks: idle pauses of the scheduler are most of what Airflow costs it.
        "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.1",
        # A task whose process is gone (a killed scheduler takes its workers along) is noticed in a minute, not in five.
        "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
        "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "30",
        # A task that fails has often closed its pipes before it is gone, and is looked at again only with the next
        # heartbeat: with the default of 5 s every red task takes 5 s more than a green one.
        "WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
        "DAG_PROCESSOR__REFRESH_INTERVAL": "60",
        "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "60",
        "USAGE_DATA_COLLECTION__ENABLED": "False",
    }
    # The addresses of the channels are passwords: Airflow has them as connections, which it masks, and not twice.
    foreign = ("AIRFLOW", "_AIRFLOW", alert_channels.PREFIX)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return (
        inherited
        | {f"AIRFLOW__{name}": value for name, value in airflow.items()}
        | alert_channels.connections()
        | {
            "AIRFLOW_HOME": str(home.airflow),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
            "NIGHTLY_ROOT": str(ROOT),
            "NIGHTLY_GPU_PYTHON": str(environments.python(home, environments.of_gpu_tasks())),
            "NIGHTLY_GPU_ENVIRONMENT": environments.of_gpu_tasks(),
            "NIGHTLY_ENVIRONMENTS": str(home.environments),
            "NIGHTLY_RUNS": str(home.runs),
            "NIGHTLY_RECORDS": str(home.records),
            "NIGHTLY_CANDIDATES": str(home.candidates),
            "NIGHTLY_PAYLOADS": os.environ.get("NIGHTLY_PAYLOADS") or str(home.payloads),
            "SPT_NOENV": "1",  # Airflow's process titles would overwrite the environment that marks them as ours
            "NIGHTLY_GPU_POOL": GPU_POOL,
            "NIGHTLY_SCHEDULE_FILE": str(home.schedule),
        }
        | _of_workloads(home)
        | schedule.environment()
    )


def _of_workloads(home: Home) -> dict[str, str]:
    """Environment and interpreter of each workload's programs, made or not: ``provision`` makes what is missing."""
    found = {}
    for workload in WORKLOADS.values():
        name, suffix = environments.of_gpu_tasks(workload), workload.name.upper()
        found[f"NIGHTLY_GPU_ENVIRONMENT_{suffix}"] = name
        found[f"NIGHTLY_GPU_PYTHON_{suffix}"] = str(environments.python(home, name))
    return found


def write_password_file(home: Home, secrets: Secrets) -> None:
    """Give the simple auth manager the generated password instead of letting it print one into a log."""
    home.airflow.mkdir(parents=True, exist_ok=True)
    path = home.airflow / "passwords.json"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
        json.dump({USER: secrets.airflow_admin}, stream)


def migrate(environment: dict[str, str], log: Path) -> None:
    """Bring Airflow's metadata database up to date."""
    with log.open("ab") as output:
        command = [sys.executable, "-m", "airflow", "db", "migrate"]
        result = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
        )
    if result.returncode != 0:
        raise LauncherError(f"airflow db migrate failed with {result.returncode}; see {log}")


def start(component: str, environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Start one Airflow process in a session of its own; it is told to stop when this process ends."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "airflow", component, *COMPONENTS[component]],
            env=environment,
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGTERM),  # noqa: PLW1509 - no threads here
        )
