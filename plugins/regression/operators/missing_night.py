"""The watchdog as an Airflow task: finds the night that did not come, raises its alert, and is red."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from gpu_tasks.records import Outcome, Reason, TaskError
from regression import settings
from regression.operators.connection import results_engine
from regression.operators.failures import failure
from regression.results import RESULTS_CONNECTION

if TYPE_CHECKING:
    from airflow.sdk import Context

    from regression.detectors.missing_night import Plan


class MissingNightOperator(BaseOperator):
    """Fails when the latest night that is due is missing, stuck or incomplete, after raising an alert of it.

    Alerts that could not be delivered before are tried again, whatever is found. It reads the results database and the
    folders of runs, and nothing of the watched DAG or of Airflow's tables. The plan of the nights is by default the
    launcher's (``NIGHTLY_SCHEDULE_FILE``), else the settings of the environment.

    :param watched_dag_id: DAG whose runs are the nights (templated).
    :param workload: workload that the alert is about (templated).
    :param cron: cron line of five fields of the nights; None: the plan in force.
    :param timezone: time zone of the cron line.
    :param since: first moment for which nights are expected, ISO 8601 with an offset; None: a week ago.
    :param deadline_minutes: minutes after its planned start by which a night must be judged.
    :param by_hand: whether a run that somebody asked for counts as a night.
    :param conn_id: Airflow connection of the results database (writer role).
    """

    template_fields: Sequence[str] = ("watched_dag_id", "workload", "conn_id")
    ui_color = "#f5d0d0"

    def __init__(
        self,
        *,
        watched_dag_id: str,
        workload: str,
        cron: str | None = None,
        timezone: str = "UTC",
        since: str | None = None,
        deadline_minutes: int = 180,
        by_hand: bool = False,
        conn_id: str = RESULTS_CONNECTION,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.watched_dag_id = watched_dag_id
        self.workload = workload
        self.cron = cron
        self.timezone = timezone
        self.since = since
        self.deadline_minutes = deadline_minutes
        self.by_hand = by_hand
        self.conn_id = conn_id

    def execute(self, context: Context) -> dict[str, str]:  # noqa: ARG002 - Airflow's signature
        """Look, raise, and fail when a night is lost; returns the state of each night by its planned time."""
        from sqlalchemy.exc import DBAPIError

        from regression.alerts.channels import configured
        from regression.alerts.raising import raise_alerts
        from regression.alerts.telling import look_after
        from regression.nights.watchdog import Watched, night_signal, watch

        now = datetime.now(UTC)
        try:
            plan = self.plan(now)
            if plan is None:
                self.log.info("no nights are planned")
                look_after(results_engine(self.conn_id), configured(), now, records=_folder("records"))
                return {}
            watched = Watched(
                self.watched_dag_id, self.workload, plan, _folder("runs"), _folder("records"), self.by_hand
            )
            engine = results_engine(self.conn_id)
            with engine.connect() as connection:
                nights = watch(connection, watched, now)
            signal = night_signal(watched, nights)
            if signal:
                raise_alerts(engine, [signal], now, records=watched.records)
            look_after(engine, configured(), now, records=watched.records)  # also what a night could not deliver
        except TaskError as error:
            raise failure(error.outcome, Reason(error.code, error.message)) from error
        except DBAPIError as error:
            told = " ".join(f"the results database is away, nobody knows of the nights ({error.orig})".split())
            raise AirflowException(told) from error
        for night in nights:
            self.log.info("%s %s: %s", f"{night.planned:%Y-%m-%d %H:%M} UTC", night.state.value, night.reason)
        if signal:
            outcome = Outcome.INFRASTRUCTURE_FAILURE
            raise AirflowFailException(f"{outcome.value} (exit {outcome.exit_code}): {signal.headline}")
        return {f"{night.planned:%Y-%m-%dT%H:%M}Z": night.state.value for night in nights}

    def plan(self, now: datetime) -> Plan | None:
        """The plan that was given, else the one in force; None where no nights are planned. Raises ``BadInput``."""
        from regression.nights.schedule import NightPlan, read_plan

        if self.cron is None:
            file = settings.schedule_file()
            if file and (found := read_plan(file)):
                return found.plan()
            cron, zone, minutes = settings.schedule(), settings.timezone(), settings.deadline_minutes()
        else:
            cron, zone, minutes = self.cron, self.timezone, self.deadline_minutes
        if cron is None:
            return None
        since = self.since or max(settings.start_date(), now - timedelta(days=7)).isoformat()
        return NightPlan("night_plan", cron, zone, since, minutes).plan()


def _folder(name: str) -> Path | None:
    """A folder of the settings; None where it is not set: the database alone then says what there is."""
    try:
        return {"runs": settings.runs, "records": settings.records}[name]()
    except RuntimeError:
        return None
