"""Airflow's REST API, as far as the launcher uses it."""

from __future__ import annotations

import time
from typing import Any, cast
from urllib.parse import quote

import httpx

from local.errors import LauncherError, Usage

FINISHED = ("success", "failed")
TRIES, PAUSE_S = 4, 0.5


class Airflow:
    """A logged-in client of one api-server. Raises ``LauncherError`` when it is away or refuses."""

    def __init__(self, port: int, user: str, password: str) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self._credentials = {"username": user, "password": password}
        # trust_env off: a proxy of the user's must not be asked for 127.0.0.1
        self._http = httpx.Client(base_url=self.address, timeout=30, trust_env=False)

    def is_healthy(self) -> bool:
        """Whether database, scheduler and dag-processor all report healthy."""
        try:
            answer = self._http.get("/api/v2/monitor/health", timeout=5)
            parts = answer.json()
        except (httpx.HTTPError, ValueError):
            return False
        names = ("metadatabase", "scheduler", "dag_processor")
        return all((parts.get(name) or {}).get("status") == "healthy" for name in names)

    def dag(self, dag_id: str) -> dict[str, Any] | None:
        """The DAG's details with its params, or None while the dag-processor has not stored it."""
        answer = self._request("GET", f"/dags/{quote(dag_id)}/details", accept=(200, 404))
        return cast(dict[str, Any], answer.json()) if answer.status_code == 200 else None

    def import_errors(self) -> list[str]:
        """One line per DAG file that could not be imported."""
        errors = self._request("GET", "/importErrors").json()["import_errors"]
        return [f"{item['filename']}: {item['stack_trace'].strip().splitlines()[-1]}" for item in errors]

    def unpause(self, dag_id: str) -> None:
        self._request("PATCH", f"/dags/{quote(dag_id)}", json={"is_paused": False})

    def ensure_pool(self, name: str, slots: int, description: str) -> None:
        body = {"name": name, "slots": slots, "description": description, "include_deferred": True}
        self._request("POST", "/pools", json=body, accept=(201, 409))

    def put_connection(self, connection: dict[str, Any]) -> None:
        """Create the connection or replace it (its password changes with a new installation)."""
        if self._request("POST", "/connections", json=connection, accept=(201, 409)).status_code == 409:
            self._request("PATCH", f"/connections/{quote(connection['connection_id'])}", json=connection)

    def trigger(self, dag_id: str, run_id: str, params: dict[str, Any]) -> None:
        """Queue a manual run; raises ``Usage`` with Airflow's own words when a param is refused."""
        body = {"dag_run_id": run_id, "logical_date": None, "conf": params}
        answer = self._request("POST", f"/dags/{quote(dag_id)}/dagRuns", json=body, accept=(200, 400, 409, 422))
        if answer.status_code != 200:
            raise Usage(f"the run was refused: {_detail(answer)}")

    def run_state(self, dag_id: str, run_id: str) -> str | None:
        """queued, running, success or failed; None where there is no such run."""
        answer = self._request("GET", f"/dags/{quote(dag_id)}/dagRuns/{quote(run_id, safe='')}", accept=(200, 404))
        return cast(str, answer.json()["state"]) if answer.status_code == 200 else None

    def unfinished_runs(self, dag_id: str) -> list[dict[str, Any]]:
        """Runs that are queued or running, oldest first; none of a DAG that Airflow has not read yet."""
        query = {"state": ["queued", "running"], "order_by": "id", "limit": 100}
        answer = self._request("GET", f"/dags/{quote(dag_id)}/dagRuns", params=query, accept=(200, 404))
        return cast(list[dict[str, Any]], answer.json()["dag_runs"]) if answer.status_code == 200 else []

    def every_unfinished_run(self) -> list[dict[str, Any]]:
        """Runs of every DAG that are queued or running, oldest first."""
        query = {"state": ["queued", "running"], "order_by": "id", "limit": 100}
        found: list[dict[str, Any]] = []
        while True:
            page = self._request("GET", "/dags/~/dagRuns", params={**query, "offset": len(found)}).json()
            found += page["dag_runs"]
            if not page["dag_runs"] or len(found) >= page["total_entries"]:
                return found

    def asset_event(self, name: str, extra: dict[str, Any]) -> int:
        """Say that the asset has changed; returns the number of the event. Raises ``Usage`` where there is none."""
        query = {"name_pattern": name, "limit": 100}
        found = self._request("GET", "/assets", params=query).json()["assets"]
        number = next((asset["id"] for asset in found if asset["name"] == name), None)
        if number is None:
            raise Usage(f"asset {name}: expected one that a DAG of the running stack names, found none")
        event = self._request("POST", "/assets/events", json={"asset_id": number, "extra": extra}).json()
        return cast(int, event["id"])

    def fail_run(self, dag_id: str, run_id: str) -> None:
        """Mark a run failed, which ends its tasks; nothing where there is no such run.

        Airflow's scheduler writes the same rows, and the database may end the one of the two that asked last.
        """
        path = f"/dags/{quote(dag_id)}/dagRuns/{quote(run_id, safe='')}"
        for tried in range(1, TRIES + 1):
            lost = (500,) if tried < TRIES else ()
            answer = self._request("PATCH", path, json={"state": "failed"}, accept=(200, 404, *lost))
            if answer.status_code != 500:
                return
            time.sleep(PAUSE_S * tried)

    def task_instances(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """Every task instance of the run, mapped ones included."""
        path = f"/dags/{quote(dag_id)}/dagRuns/{quote(run_id, safe='')}/taskInstances"
        found: list[dict[str, Any]] = []
        while True:
            page = self._request("GET", path, params={"limit": 100, "offset": len(found)}).json()
            found += page["task_instances"]
            if not page["task_instances"] or len(found) >= page["total_entries"]:
                return found

    def _login(self) -> None:
        answer = self._http.post("/auth/token", json=self._credentials)
        if answer.status_code not in (200, 201):
            raise LauncherError(f"Airflow at {self.address} refused the login: {_detail(answer)}")
        self._http.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"

    def _request(self, method: str, path: str, *, accept: tuple[int, ...] = (200,), **arguments: Any) -> httpx.Response:
        try:
            if "Authorization" not in self._http.headers:
                self._login()
            answer = self._http.request(method, f"/api/v2{path}", **arguments)
            if answer.status_code == 401:  # the token ran out
                self._login()
                answer = self._http.request(method, f"/api/v2{path}", **arguments)
        except httpx.HTTPError as error:
            raise LauncherError(f"Airflow at {self.address} does not answer: {error}") from error
        if answer.status_code not in accept:
            raise LauncherError(f"Airflow refused {method} {path}: {answer.status_code} {_detail(answer)}")
        return answer


def _detail(answer: httpx.Response) -> str:
    try:
        detail = answer.json().get("detail")
    except (ValueError, AttributeError):
        detail = answer.text[:200]
    return str(detail)
