"""Nights of ``nightly_qda`` from end to end: which tasks run, what is stored, and how the run ends."""

from __future__ import annotations

from collections.abc import Callable

from tests.integration.dags.conftest import Ran

Night = Callable[..., Ran]


def test_a_good_night_is_green_and_stored(run_night: Night) -> None:
    ran = run_night()
    assert ran.state == "success", ran.log[-3000:]
    assert ran.verdict["verdict"] == "ok"
    assert ran.verdict["agreement"] == {"agreed": 2000, "total": 2000}
