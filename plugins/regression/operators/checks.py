"""Checks as Airflow tasks: read a stored run and its baseline, ask the detector, store the answer, fail on red."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from gpu_tasks.records import Reason, TaskError
from regression.operators.connection import results_engine
from regression.operators.failures import failure
from regression.results import RESULTS_CONNECTION

if TYPE_CHECKING:
    from airflow.sdk import Context
    from sqlalchemy import Connection, Row

    from regression.results.checks import Finding

RED = {"regressed", "invalid"}


class CheckOperator(BaseOperator):
    """What all checks share.

    Stores one ``check_result`` a run, check and step, all of them or none, and returns the last step of each check as
    XCom: ``{check: {verdict, reason_code, reason}}``. Fails without retry when the last step of any is ``regressed``
    or ``invalid``; everything else is said and passes.

    :param conn_id: Airflow connection of the results database (writer role).
    :param run_dag_id: DAG of the run to judge; this one by default (templated).
    :param run_dag_run_id: the run to judge; this one by default (templated).
    """

    template_fields: Sequence[str] = ("conn_id", "run_dag_id", "run_dag_run_id")
    ui_color = "#f5e6c8"

    def __init__(
        self,
        *,
        conn_id: str = RESULTS_CONNECTION,
        run_dag_id: str = "{{ dag.dag_id }}",
        run_dag_run_id: str = "{{ run_id }}",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.conn_id = conn_id
        self.run_dag_id = run_dag_id
        self.run_dag_run_id = run_dag_run_id

    @abstractmethod
    def judge(self, connection: Connection, run: Row[Any]) -> list[Finding]:
        """Verdicts on a stored run, one for each check and step, with the baselines they were compared with."""

    def execute(self, context: Context) -> dict[str, dict[str, str]]:  # noqa: ARG002 - Airflow's signature
        """Judge, store, and fail when red."""
        from regression.results.checks import last_findings, store_findings
        from regression.results.history import find_run

        try:
            with results_engine(self.conn_id).begin() as connection:
                run = find_run(connection, self.run_dag_id, self.run_dag_run_id)
                findings = self.judge(connection, run)
                store_findings(connection, run.run_id, findings)
        except TaskError as error:
            raise failure(error.outcome, Reason(error.code, error.message)) from error
        last = [found.verdict for found in last_findings(findings)]
        for found in last:
            self.log.info("%s %s: %s", found.check, found.verdict.value, found.reason)
        red = [found for found in last if found.verdict.value in RED]
        if red:
            where = f"{run.workload} on {run.device_name or 'no device'}, run {self.run_dag_run_id}"
            told = (f"{f.check} {f.verdict.value}: {f.reason} [{f.reason_code}; {where}]" for f in red)
            raise AirflowFailException(" | ".join(told))
        return {f.check: {"verdict": f.verdict.value, "reason_code": f.reason_code, "reason": f.reason} for f in last}


class AgreementRegressionOperator(CheckOperator):
    """Exact agreement of a run's predictions with the accepted baseline of its payload, on any device."""

    def judge(self, connection: Connection, run: Row[Any]) -> list[Finding]:
        """See ``regression.detectors.agreement``."""
        from regression.detectors import judge_agreement
        from regression.results.checks import Finding
        from regression.results.history import agreement_baseline, agreement_run

        baseline, stored = agreement_baseline(connection, run)
        found = judge_agreement(agreement_run(connection, run), baseline)
        return [Finding(found, stored.baseline_id if stored else None)]


class EnergyDriftOperator(CheckOperator):
    """Adjusted energy of a run against the round spread of its baseline; energies and idle power against history."""

    def judge(self, connection: Connection, run: Row[Any]) -> list[Finding]:
        """See ``regression.detectors.energy`` and ``regression.detectors.long_term``."""
        from regression.results.energies import energy_findings
        from regression.results.history_checks import energy_history

        return [*energy_findings(connection, run), *energy_history(connection, run)]
