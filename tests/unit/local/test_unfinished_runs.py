"""``nightly status``: the runs that Airflow has queued or running, and what it says where Airflow says nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.errors import LauncherError
from local.paths import Home
from local.rest import Airflow
from local.stack import Stack
from local.stack_files import State
from local.unfinished_runs import runs_in_short

READY = State(1, "", None, airflow_ready=True, api_port=1)
HEALTHY = {name: {"status": "healthy"} for name in ("metadatabase", "scheduler", "dag_processor")}


def dag_run(number: int, state: str = "queued", **changes: Any) -> dict[str, Any]:
    return {
        "dag_run_id": f"manual__{number}",
        "dag_id": "nightly_qda",
        "state": state,
        "queued_at": "2026-12-01T01:00:00.123456Z",
        "start_date": None,
        "run_after": "2026-12-01T00:59:00Z",
        **changes,
    }


def stack(
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[httpx.Request], httpx.Response],
    state: State | None = READY,
) -> Stack:
    """A running stack whose Airflow answers so, once its client is logged in."""
    client = Airflow(1, "admin", "")
    client._http = httpx.Client(
        base_url=client.address, transport=httpx.MockTransport(answer), headers={"Authorization": "Bearer x"}
    )
    monkeypatch.setattr(Stack, "state", lambda _: state)
    monkeypatch.setattr(Stack, "airflow", lambda _: client)
    return Stack(Home(Path("/nonexistent")), None)


def answering(
    runs: list[dict[str, Any]], health: dict[str, Any] = HEALTHY
) -> Callable[[httpx.Request], httpx.Response]:
    """An Airflow that has these runs and tells 100 of them at most, as the real one does."""

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/api/v2/monitor/health":
            return httpx.Response(200, json=health)
        assert (request.method, request.url.path) == ("GET", "/api/v2/dags/~/dagRuns")
        states, first = request.url.params.get_list("state"), int(request.url.params["offset"])
        wanted = [run for run in runs if run["state"] in states]
        return httpx.Response(200, json={"dag_runs": wanted[first : first + 100], "total_entries": len(wanted)})

    return answer


def test_every_run_is_told_with_its_state_and_since_when(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [
        dag_run(1, "running", start_date="2026-12-01T02:00:01+01:00"),
        dag_run(2, dag_id="compare_kernels"),
        dag_run(3, queued_at=None),
        dag_run(4, "success"),
        dag_run(5, "failed"),
    ]
    assert runs_in_short(stack(monkeypatch, answering(runs))) == [
        "runs:       running  manual__1 of nightly_qda, since 2026-12-01 01:00:01 UTC",
        "            queued   manual__2 of compare_kernels, since 2026-12-01 01:00:00 UTC",
        "            queued   manual__3 of nightly_qda, since 2026-12-01 00:59:00 UTC",
    ]


def test_no_run_is_told_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    found = runs_in_short(stack(monkeypatch, answering([dag_run(1, "success")])))
    assert found == ["runs:       none is queued or running"]


@pytest.mark.parametrize("count", [99, 100, 101, 250])
def test_more_runs_than_airflow_tells_at_once(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    found = runs_in_short(stack(monkeypatch, answering([dag_run(number) for number in range(count)])))
    assert [line.removeprefix("runs:").split()[1] for line in found] == [f"manual__{n}" for n in range(count)]


def test_what_airflow_knew_before_a_part_of_it_died_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    health = {**HEALTHY, "scheduler": {"status": "unhealthy"}}
    found = runs_in_short(stack(monkeypatch, answering([dag_run(1)], health)))
    assert found == [
        "runs:       queued   manual__1 of nightly_qda, since 2026-12-01 01:00:00 UTC",
        "            Airflow says that a part of it is not healthy: this is what it knew last",
    ]


@pytest.mark.parametrize("state", [None, State(1, "", None, postgres_ready=True)])
def test_without_airflow_nobody_says_that_there_is_no_run(monkeypatch: pytest.MonkeyPatch, state: State | None) -> None:
    found = runs_in_short(stack(monkeypatch, answering([]), state))
    assert found == ["runs:       not known, as Airflow is not running"]


def refused(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("Connection refused", request=request)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (refused, "runs:       not known: Airflow at http://127.0.0.1:1 does not answer: Connection refused"),
        (lambda _: httpx.Response(503, json={"detail": "later"}), "runs:       not known: Airflow refused GET /dags/~"),
        (lambda _: httpx.Response(200, text="<html>"), "runs:       not known: Airflow's answer: expected its runs"),
        (lambda _: httpx.Response(200, json={}), "runs:       not known: Airflow's answer: expected its runs"),
    ],
)
def test_an_airflow_that_does_not_tell_is_no_airflow_without_runs(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[httpx.Request], httpx.Response], told: str
) -> None:
    (line,) = runs_in_short(stack(monkeypatch, answer))
    assert line.startswith(told)


def test_a_stack_that_has_just_stopped_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(_: Stack) -> Airflow:
        raise LauncherError("Airflow is not running")

    running = stack(monkeypatch, refused)
    monkeypatch.setattr(Stack, "airflow", stopped)
    assert runs_in_short(running) == ["runs:       not known: Airflow is not running"]
