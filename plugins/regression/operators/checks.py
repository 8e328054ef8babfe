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

    from regression.detectors import CheckVerdict
    from regression.results.history import StoredBaseline

RED = {"regressed", "invalid"}


class CheckOperator(BaseOperator):
    """What all checks share.

    Stores one ``check_result`` a run, check and step, and returns its verdict, reason code and reason as XCom.
    Fails without retry when the verdict is ``regressed`` or ``invalid``; everything else is said and passes.

    :param conn_id: Airflow connection of the results database (writer role).
    :param run_dag_id: DAG of the run to judge; this one by default (templated).
    :param run_dag_run_id: the run to judge; this one by default (templated).
    :param step: 0 for the first look, 1 and up after confirmation rounds.
    """

    template_fields: Sequence[str] = ("conn_id", "run_dag_id", "run_dag_run_id")
    ui_color = "#f5e6c8"

    def __init__(
        self,
        *,
        conn_id: str = RESULTS_CONNECTION,
        run_dag_id: str = "{{ dag.dag_id }}",
        run_dag_run_id: str = "{{ run_id }}",
        step: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.conn_id = conn_id
        self.run_dag_id = run_dag_id
        self.run_dag_run_id = run_dag_run_id
        self.step = step

    @abstractmethod
    def judge(self, connection: Connection, run: Row[Any]) -> tuple[CheckVerdict, StoredBaseline | None]:
        """Verdict on a stored run, and the baseline that it was compared with."""

    def execute(self, context: Context) -> dict[str, str]:  # noqa: ARG002 - Airflow's signature
        """Judge, store, and fail when red."""
        from regression.results.checks import store_check
        from regression.results.history import find_run

        try:
            with results_engine(self.conn_id).begin() as connection:
                run = find_run(connection, self.run_dag_id, self.run_dag_run_id)
                found, baseline = self.judge(connection, run)
                store_check(connection, run.run_id, found, baseline.baseline_id if baseline else None, self.step)
        except TaskError as error:
            raise failure(error.outcome, Reason(error.code, error.message)) from error
        line = f"{found.check} {found.verdict.value}: {found.reason}"
        if found.verdict.value in RED:
            where = f"{run.workload} on {run.device_name or 'no device'}, run {self.run_dag_run_id}"
            raise AirflowFailException(f"{line} [{found.reason_code}; {where}]")
        self.log.info("%s", line)
        return {"verdict": found.verdict.value, "reason_code": found.reason_code, "reason": found.reason}


class AgreementRegressionOperator(CheckOperator):
    """Exact agreement of a run's predictions with the accepted baseline of its payload, on any device."""

    def judge(self, connection: Connection, run: Row[Any]) -> tuple[CheckVerdict, StoredBaseline | None]:
        """See ``regression.detectors.agreement``."""
        from regression.detectors import judge_agreement
        from regression.results.history import agreement_baseline, agreement_run

        baseline, stored = agreement_baseline(connection, run)
        return judge_agreement(agreement_run(connection, run), baseline), stored


class EnergyDriftOperator(CheckOperator):
    """Adjusted energy of a run against the round spread of the accepted baseline of the same device."""

    def judge(self, connection: Connection, run: Row[Any]) -> tuple[CheckVerdict, StoredBaseline | None]:
        """See ``regression.detectors.energy``."""
        from regression.detectors import judge_energy
        from regression.results.history import energy_baseline, energy_run

        baseline, stored = energy_baseline(connection, run)
        return judge_energy(energy_run(connection, run), baseline), stored
