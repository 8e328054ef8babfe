"""For ``nightly status``: which runs Airflow has that are not finished, and what is known of them where it is away."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from local.errors import LauncherError
from local.stack import Stack

NONE = "none is queued or running"
AWAY = "not known, as Airflow is not running"
STALE = "Airflow says that a part of it is not healthy: this is what it knew last"
_MARGIN = " " * len("runs:       ")


def runs_in_short(stack: Stack) -> list[str]:
    """A line a run that is queued or running, of whatever DAG; that none is known of where Airflow does not say so."""
    state = stack.state()
    if state is None or not state.airflow_ready:
        return _lines([AWAY])
    try:
        client = stack.airflow()
        runs = client.every_unfinished_run()
        stale = [] if client.is_healthy() else [STALE]
        return _lines([*(map(_line, runs) if runs else [NONE]), *stale])
    except LauncherError as error:
        return _lines([f"not known: {error}"])
    except (ValueError, KeyError, TypeError) as error:
        return _lines([f"not known: Airflow's answer: expected its runs, found {error!r:.200}"])


def _lines(told: Sequence[str]) -> list[str]:
    return [f"{_MARGIN if number else 'runs:       '}{line}" for number, line in enumerate(told)]


def _line(run: dict[str, Any]) -> str:
    """A queued run waits since it was queued; one that runs, since it began."""
    since = run["start_date"] if run["state"] == "running" else run["queued_at"]
    return f"{run['state']:<7}  {run['dag_run_id']} of {run['dag_id']}, since {_moment(since or run['run_after'])}"


def _moment(text: str) -> str:
    return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
