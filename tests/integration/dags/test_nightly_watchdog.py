"""The DAG of the watchdog by ``dag.test``: red and told when the night did not come, green when none was due."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from tests.integration.dags.conftest import Ran
from tests.integration.regression.databases import Database


@pytest.mark.parametrize(("hours_ago", "state", "alerts"), [(4, "failed", [("night", "missing")]), (2, "success", [])])
def test_the_watchdog_looks_at_the_night_that_is_due(
    run_night: Callable[..., Ran],
    database: Database,
    hours_ago: int,
    state: str,
    alerts: list[tuple[str, str]],
) -> None:
    planned = datetime.now(UTC) - timedelta(hours=hours_ago)
    ran = run_night(
        dag="nightly_watchdog",
        environment={
            "NIGHTLY_SCHEDULE": f"{planned.minute} {planned.hour} * * *",
            "NIGHTLY_START_DATE": (planned - timedelta(minutes=5)).isoformat(),
        },
    )
    assert (ran.state, ran.tasks) == (state, {"missing_night_qda": {state}}), ran.log[-3000:]
    with database.reader.connect() as connection:
        stored = [tuple(row) for row in connection.execute(text("SELECT metric, direction FROM alert"))]
    assert stored == alerts
    night = f"{planned:%Y-%m-%d %H:%M} UTC"
    told = f"the night of {night} is missing: no run began" if alerts else f"{night} waiting: no run yet"
    assert told in ran.log
