"""Nights of an installation whose clock is ours: the real tasks in the order of the DAG, without its scheduler.

What a night consists of is done by the very functions and programs that the DAG calls; the programs run in this
process, so that they see the clock that the test sets.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import time_machine
from airflow.sdk.exceptions import AirflowFailException

from gpu_tasks.programs.cli import main as gpu_program
from gpu_tasks.records import Outcome
from regression.nights import alerting, tasks
from regression.nights.folder import Night
from regression.operators import (
    AgreementRegressionOperator,
    EnergyDriftOperator,
    EnvironmentChangeOperator,
    MissingNightOperator,
    TimeDriftOperator,
)

DAG_ID, WORKLOAD = "nightly_qda", "qda"
CRON = "0 2 * * *"
FIRST = datetime(2027, 1, 4, 2, tzinfo=UTC)
ROUNDS = 7
CHECKS = (AgreementRegressionOperator, EnergyDriftOperator, TimeDriftOperator, EnvironmentChangeOperator)


def planned(night: int) -> datetime:
    """When night 1, 2, ... is planned."""
    return FIRST + timedelta(days=night - 1)


class Fortnight:
    """An installation: ``NIGHTLY_RUNS``, ``NIGHTLY_RECORDS`` and Airflow's connections are in the environment."""

    def night(self, number: int, inject: str = "", seed: int = 0) -> dict[str, Any]:
        """One night at its planned time; returns its verdict as ``./nightly run --json`` does."""
        with time_machine.travel(planned(number), tick=True):
            return self._night(number, inject or None, seed)

    def _night(self, number: int, inject: str | None, seed: int) -> dict[str, Any]:
        run_id = f"scheduled__{planned(number):%Y-%m-%d}"
        params = {"device": "simulated", "draws": [0], "rounds": ROUNDS, "inject": inject, "seed": seed}
        dag_run = SimpleNamespace(run_id=run_id, conf={}, run_type="scheduled", logical_date=planned(number))
        context = {"params": params, "dag_run": dag_run, "dag": SimpleNamespace(dag_id=DAG_ID), "run_id": run_id}
        tasks.accept_request(context, WORKLOAD)
        self._programs(context, inject, seed)
        loaded = tasks.load(context)
        run = {"run_dag_id": DAG_ID, "run_dag_run_id": run_id}
        for operator in CHECKS:
            with suppress(AirflowFailException):  # red: its verdict is in the database
                operator(task_id="check", **run).execute({})  # type: ignore[typeddict-item]
        told = tasks.report(context, loaded, ("agreement", "energy", "time", "environment"))
        alerting.alert(context)
        return told

    def watchdog(self, night: int, hours: float) -> bool:
        """A look of the watchdog so many hours after a planned night; whether it was content."""
        with time_machine.travel(planned(night) + timedelta(hours=hours), tick=True):
            watching = MissingNightOperator(
                task_id="watch", watched_dag_id=DAG_ID, workload=WORKLOAD, cron=CRON, since=FIRST.isoformat()
            )
            try:
                watching.execute({})
            except AirflowFailException:
                return False
            return True

    def _programs(self, context: dict[str, Any], inject: str | None, seed: int) -> None:
        folder = Night(DAG_ID, context["run_id"]).folder
        device = ["--device", "simulated", "--seed", str(seed), *(["--inject", inject] if inject else [])]

        def run(program: str, record: str, *options: str) -> None:
            status = gpu_program([program, *options, "--out", str(folder / f"{record}.json")])
            assert status in (Outcome.OK.exit_code, Outcome.INVALID_MEASUREMENT.exit_code), (program, record, status)

        def rounds(numbers: list[int]) -> None:
            before = ["--telemetry", str(folder / "telemetry-before.json")]
            for number in numbers:
                run("measure", f"round-{number:02d}", "--round", str(number), "--protocol", "audited", *before, *device)

        request = ["--request", str(folder / "request.json")]
        run("provision", "provision", *device)
        for subject in ("sources", "payload"):
            run("verify", f"verify-{subject}", "--subject", subject)
        run("telemetry", "telemetry-before", "--when", "before", *request, *device)
        run("validate", "validation-00", "--draw", "0", "--check", "races", *device)
        rounds(tasks.plan_rounds(context))
        rounds(tasks.plan_confirmation(context))
        run("telemetry", "telemetry-after", "--when", "after", *request, *device)
        run("summarise", "run", *request, "--folder", str(folder))
