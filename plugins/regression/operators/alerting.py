"""Alerts from within Airflow: what the task ``alert`` of a night does, and a notifier for anybody's DAG."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier

from regression import settings
from regression.operators.connection import results_engine
from regression.results import RESULTS_CONNECTION

if TYPE_CHECKING:
    from airflow.sdk import Context

    from regression.alerts.signal import Signal

log = logging.getLogger(__name__)


class AlertNotifier(BaseNotifier):
    """Raises an alert of a failed DAG run and delivers what is due, for ``on_failure_callback`` of a DAG or a task.

    A run that is in the results database is told by what its checks found, as a night is; any other, and one that
    failed for something else, as a night that did not come about: one alert, however many of its tasks fail. Where
    the results database is away, the channels are told that instead.

    :param workload: what the alert is about; the DAG by default.
    :param conn_id: Airflow connection of the results database (writer role).
    """

    template_fields: Sequence[str] = ()  # what is templated here fails in callbacks of a DAG

    def __init__(self, *, workload: str | None = None, conn_id: str = RESULTS_CONNECTION) -> None:
        super().__init__()
        self.workload = workload
        self.conn_id = conn_id

    def notify(self, context: Context) -> None:
        """Raise and deliver."""
        told: Any = context
        dag_id, dag_run = told["dag"].dag_id, told["dag_run"]
        otherwise = failed_run(self.workload or dag_id, dag_id, dag_run, told.get("task_instance"))
        tell_of_run(dag_id, dag_run.run_id, conn_id=self.conn_id, otherwise=[otherwise])


def tell_of_run(
    dag_id: str, dag_run_id: str, *, conn_id: str = RESULTS_CONNECTION, otherwise: Sequence[Signal] = ()
) -> dict[str, Any]:
    """Raise and deliver the alerts of a run, and say what became of them.

    Where the results database is away, the channels are told so directly.
    """
    from sqlalchemy.exc import SQLAlchemyError

    from regression.alerts import channels, telling, texts

    known, now, url = channels.configured(), datetime.now(UTC), airflow_url()
    try:
        engine, records = results_engine(conn_id), records_folder()
        raised = telling.alert_of_run(
            engine, dag_id, dag_run_id, now, records=records, airflow_url=url, otherwise=otherwise
        )
        for found in raised:
            log.warning("alert %d %s: ./nightly alerts show %d", found.alert_id, found.event, found.alert_id)
        deliveries = telling.look_after(engine, known, now, records=records)
    except SQLAlchemyError as error:
        log.error("the results database is away: %s", type(error).__name__)
        message = texts.database_away(dag_id, dag_run_id, now, texts.run_link(url, dag_id, dag_run_id))
        answers = telling.tell_without_database(known, message)
        return {"raised": [], "deliveries": [[None, found.channel, found.taken, found.answer] for found in answers]}
    return {
        "raised": [found.alert_id for found in raised],
        "deliveries": [[found.alert_id, found.channel, found.taken, found.answer] for found in deliveries],
    }


def failed_run(workload: str, dag_id: str, dag_run: Any, task_instance: Any | None) -> Signal:
    """A DAG run that failed, as a night that did not come about. No words of the error: they may hold a secret."""
    from regression.alerts import texts
    from regression.alerts.signal import MISSING, NIGHT, Signal

    moments = (getattr(dag_run, name, None) for name in ("logical_date", "run_after", "start_date"))
    task_id = getattr(task_instance, "task_id", None)
    return Signal(
        workload=workload,
        metric=NIGHT,
        direction=MISSING,
        outcome="infrastructure_failure",
        headline=f"the run {dag_run.run_id} of {dag_id} failed" + (f" in its task {task_id}" if task_id else ""),
        facts=tuple(texts.run_link(airflow_url(), dag_id, dag_run.run_id)),
        night=next((moment for moment in moments if moment is not None), datetime.now(UTC)),
    )


def airflow_url() -> str | None:
    """Where Airflow's pages are, as it is configured."""
    from airflow.sdk.configuration import conf

    url: str | None = conf.get("api", "base_url", fallback=None)
    return url


def records_folder() -> Path | None:
    """Folder of the kept records; None in an Airflow without one: alerts are then in the database alone."""
    try:
        return settings.records()
    except RuntimeError:
        return None
