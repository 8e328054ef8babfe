"""The task ``alert`` of a nightly DAG: tell people what the night showed. Never in the way of its verdict."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from regression import settings
from regression.alerts import texts
from regression.alerts.channels import configured
from regression.alerts.telling import alert_of_run, tell, tell_without_database
from regression.operators.connection import results_engine

log = logging.getLogger(__name__)


def alert(context: Mapping[str, Any]) -> dict[str, Any]:
    """Raise and deliver the alerts of this run; returns what was raised and what became of each delivery.

    Whatever goes wrong in it is logged and nothing else: the night is what its verdict says. Where the results
    database is away, the channels are told so directly.
    """
    try:
        return tell_of_run(context["dag"].dag_id, context["run_id"])
    except Exception:
        log.exception("the alerts of this night are not complete; the next night and the watchdog try again")
        return {"raised": [], "deliveries": []}


def tell_of_run(dag_id: str, dag_run_id: str) -> dict[str, Any]:
    """Raise and deliver the alerts of a run that was judged."""
    channels, now, url = configured(), datetime.now(UTC), airflow_url()
    try:
        engine, records = results_engine(), settings.records()
        raised = alert_of_run(engine, dag_id, dag_run_id, now, records=records, airflow_url=url)
        if raised is None:
            log.warning("%s/%s is not in the results database: nothing to tell of it", dag_id, dag_run_id)
        for found in raised or []:
            log.warning("alert %d: %s", found.alert_id, found.event)
        deliveries = tell(engine, channels, records=records)
    except SQLAlchemyError as error:
        log.error("the results database is away: %s", type(error).__name__)
        message = texts.database_away(dag_id, dag_run_id, now, texts.run_link(url, dag_id, dag_run_id))
        answers = tell_without_database(channels, message)
        return {"raised": [], "deliveries": [[None, found.channel, found.taken, found.answer] for found in answers]}
    return {
        "raised": [found.alert_id for found in raised or []],
        "deliveries": [[found.alert_id, found.channel, found.taken, found.answer] for found in deliveries],
    }


def airflow_url() -> str | None:
    """Where Airflow's pages are, as it is configured."""
    from airflow.sdk.configuration import conf

    url: str | None = conf.get("api", "base_url", fallback=None)
    return url
