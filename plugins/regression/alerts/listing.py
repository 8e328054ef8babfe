"""Alerts as they are stored, for people who ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select

from regression.alerts.answers import find_alert
from regression.results import tables

Alert = dict[str, Any]


def alerts(connection: Connection, states: Sequence[str] = ()) -> list[Alert]:
    """Alerts in one of the states (all where none is given), those that are not resolved first, then by age."""
    alert = tables.alert.c
    chosen = _alerts().where(alert.state.in_(states)) if states else _alerts()
    ordered = chosen.order_by(alert.resolved_at.is_not(None), alert.opened_at, alert.alert_id)
    return [dict(row._mapping) for row in connection.execute(ordered)]


def alert(connection: Connection, alert_id: int) -> tuple[Alert, list[dict[str, Any]]]:
    """One alert and what happened to it, in order; raises ``BadInput`` where there is none of that number."""
    find_alert(connection, alert_id)
    found = connection.execute(_alerts().where(tables.alert.c.alert_id == alert_id)).one()
    event, run = tables.alert_event, tables.run
    events = connection.execute(
        select(event.c.at, event.c.event, event.c.author, event.c.text, event.c.channel, event.c.night)
        .add_columns(event.c.run_id, run.c.dag_run_id)
        .select_from(event.outerjoin(run, run.c.run_id == event.c.run_id))
        .where(event.c.alert_id == alert_id)
        .order_by(event.c.alert_event_id)
    )
    return dict(found._mapping), [dict(row._mapping) for row in events]


def _alerts() -> Any:
    alert, device, run = tables.alert, tables.device, tables.run
    return select(alert, device.c.name.label("device"), run.c.dag_run_id.label("last_dag_run_id")).select_from(
        alert.outerjoin(device).outerjoin(run, run.c.run_id == alert.c.last_run_id)
    )
