"""What the launcher asks of Airflow's REST API, against one that answers as it is told to."""

from __future__ import annotations

import httpx
import pytest

from local import rest
from local.errors import LauncherError
from local.rest import Airflow

PATH = "/api/v2/dags/nightly_learner/dagRuns/run__1%2B00%3A00"


def client_of(answers: list[int], monkeypatch: pytest.MonkeyPatch) -> tuple[Airflow, list[str]]:
    """A logged-in client whose requests are answered with one status after the other, and the paths they went to."""
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.raw_path.decode())
        return httpx.Response(answers.pop(0), json={"detail": "deadlock detected"})

    monkeypatch.setattr(rest, "PAUSE_S", 0.0)
    client = Airflow(1, "admin", "")
    client._http = httpx.Client(
        base_url=client.address, transport=httpx.MockTransport(answer), headers={"Authorization": "Bearer x"}
    )
    return client, asked


@pytest.mark.parametrize("answers", [[200], [404], [500, 200], [500, 500, 500, 200]])
def test_a_run_is_marked_failed_though_the_scheduler_wrote_it_at_the_same_time(
    answers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = len(answers)
    client, asked = client_of(answers, monkeypatch)
    client.fail_run("nightly_learner", "run__1+00:00")
    assert asked == [PATH] * tries


@pytest.mark.parametrize(("answers", "left"), [([500] * 5, 1), ([403, 200], 1)])
def test_what_does_not_pass_is_said(answers: list[int], left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    client, _ = client_of(answers, monkeypatch)
    with pytest.raises(LauncherError, match=r"Airflow refused PATCH .*deadlock detected"):
        client.fail_run("nightly_learner", "run__1+00:00")
    assert len(answers) == left
