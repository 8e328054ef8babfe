"""Updates of the asset ``kernel_changed``: each becomes one comparison, and a bad one names what is wrong with it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowFailException, DagRunTriggerException

from regression.nights import changes
from regression.operators import KernelChangedOperator

START = datetime(2026, 11, 30, 12, tzinfo=UTC)
ROOT = Path(__file__).resolve().parents[3]


def event(number: int, seconds: float, **extra: Any) -> SimpleNamespace:
    return SimpleNamespace(id=number, timestamp=START + timedelta(seconds=seconds), extra=extra)


class Stored:
    """The events of an asset as Airflow gives them: filtered by it, in whatever order."""

    def __init__(self, *found: SimpleNamespace) -> None:
        self.found = found

    def after(self, moment: str) -> Stored:
        return Stored(*(event for event in self.found if event.timestamp >= datetime.fromisoformat(moment)))

    def limit(self, most: int) -> list[SimpleNamespace]:
        return list(self.found)[:most]


def events(triggering: list[SimpleNamespace], stored: list[SimpleNamespace]) -> list[dict[str, Any]]:
    asset = Asset(changes.ASSET)
    return changes.events({"triggering_asset_events": {asset: triggering}, "inlet_events": {asset: Stored(*stored)}})


def test_all_since_the_first_are_taken_though_airflow_names_that_one_only() -> None:
    old, first, second = event(1, -1, candidate="v1"), event(2, 0, candidate="v2"), event(3, 0.2, candidate="v3")
    found = events([first], [second, old, first])
    assert [update["given"]["candidate"] for update in found] == ["v2", "v3"]
    assert found[0]["run_id"] == "changed__2026-11-30T12:00:00+00:00__2"


def test_an_update_has_one_run_whichever_run_of_the_dag_finds_it() -> None:
    first, second = event(2, 0, candidate="v2"), event(3, 0.2, candidate="v3")
    assert events([first], [first, second])[1] == events([second], [first, second])[0]


def test_what_airflow_adds_is_no_param() -> None:
    (update,) = events([event(1, 0)], [event(1, 0, candidate="v2", from_rest_api=True)])
    assert update["given"] == {"candidate": "v2"}


def test_without_an_update_there_is_nothing_to_compare() -> None:
    with pytest.raises(AirflowFailException, match=r"no_event: expected an update of the asset kernel_changed"):
        events([], [event(1, 0, candidate="v2")])


def trigger(monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]) -> DagRunTriggerException:
    monkeypatch.setenv("NIGHTLY_ROOT", str(ROOT))
    operator = KernelChangedOperator(
        task_id="compare",
        trigger_dag_id="compare_kernels",
        workload="qda",
        event={"run_id": "changed__x__1", "given": given},
    )
    with pytest.raises(DagRunTriggerException) as raised:
        operator.execute({})  # type: ignore[arg-type]
    return raised.value


def test_a_good_update_triggers_a_comparison_with_its_params(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"candidate": "abc123", "device": "emulated", "note": "{{ conn.kernel_nightly_results.password }}"}
    told = trigger(monkeypatch, given)
    assert (told.trigger_dag_id, told.dag_run_id, told.conf) == ("compare_kernels", "changed__x__1", given)
    assert (told.logical_date, told.skip_when_already_exists) == (None, True)
    assert "event" not in KernelChangedOperator.template_fields


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "bad_param: update of changed__x__1: candidate: expected"),
        ({"candidate": "-x"}, "bad_param: update of changed__x__1: candidate: "),
        ({"candidate": "main", "devise": "cuda"}, "unknown_param: update of changed__x__1: devise: "),
        ({"candidate": "main", "payload": "absent"}, "payload_not_found: update of changed__x__1: payload absent: "),
    ],
)
def test_a_bad_update_is_red_and_says_why(monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], said: str) -> None:
    with pytest.raises(AirflowFailException) as raised:
        trigger(monkeypatch, given)
    assert str(raised.value).startswith(f"bad_input (exit 2): {said}")
    assert "\n" not in str(raised.value)
