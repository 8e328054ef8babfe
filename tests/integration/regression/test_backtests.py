"""The stored history replayed: which alerts there would have been, and what people said that they were."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from gpu_tasks.records import RunRecord
from local.judging_arguments import HISTORY_CHECKS
from regression.results.backtests import CHECKS, THRESHOLD, as_json, replayed, stored_history
from regression.results.withdrawals import withdraw_run
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import SIMULATED_GPU
from tests.integration.regression.example_records import CPU, GPU, OTHER_GPU, measured, run_record
from tests.integration.regression.many_nights import FIRST, accept, night, noisy, store

STEP = 30
"""The first of the nights that are 5 % slower."""


def nights() -> list[RunRecord]:
    return [*noisy(STEP), *noisy(15, seed=8, first=STEP, time=1.05)]


def found(database: Database, since: datetime | None = None, threshold: float = THRESHOLD, **wanted: Any) -> Any:
    with database.reader.connect() as connection:
        return as_json(replayed(stored_history(connection, **wanted), threshold, since), threshold)


def told(result: Any) -> list[tuple[int, str, str, str | None]]:
    """Night, metric, direction and cause of each alert."""
    return [
        ((datetime.fromisoformat(a["opened"]) - FIRST).days, a["metric"], a["direction"], a["cause"])
        for a in result["alerts"]
    ]


def acknowledge(database: Database, day: int, metric: str, reason: str, direction: str = "higher") -> None:
    run_id = night(day).request.run_id
    with database.admin.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO alert (workload, device_id, metric, direction, outcome, state, first_run_id, last_run_id,"
                " occurrences, text, opened_at, last_seen_at, acknowledged_by, acknowledged_at, acknowledged_reason)"
                " SELECT workload, device_id, :metric, :direction, 'regression', 'acknowledged', run_id, run_id, 1,"
                " 'x', started_at, started_at, 'ann', started_at, :reason FROM run WHERE run_id = :run_id"
            ),
            {"run_id": run_id, "metric": metric, "direction": direction, "reason": reason},
        )


def accept_all(database: Database, *days: int) -> None:
    """Accept the runs of these nights one after the other, as if each had been accepted nine hours after it began."""
    ids = [accept(database, night(day)) for day in days]
    times = [FIRST + timedelta(days=day, hours=9) for day in days]
    with database.admin.begin() as connection:
        for baseline_id, accepted, retired in zip(ids, times, [*times[1:], None], strict=True):
            statement = "UPDATE baseline SET accepted_at = :a, retired_at = :r WHERE baseline_id = :id"
            connection.execute(text(statement), {"a": accepted, "r": retired, "id": baseline_id})


def test_an_alert_without_a_named_cause_is_a_false_one(database: Database) -> None:
    store(database, *nights())
    result = found(database)
    alerts = told(result)
    assert {(metric, direction, cause) for _, metric, direction, cause in alerts} == {
        ("cuda_time_per_replay", "higher", None),
        ("wall_time_per_replay", "higher", None),
    }
    assert all(STEP <= day <= STEP + 2 for day, *_ in alerts)
    assert (result["causes"], result["precision"], result["recall"]) == (0, 0.0, None)
    assert result["alerts_false"] == len(alerts) == 2
    assert result["series_years"] == pytest.approx(5 * 44 / 365.25)
    assert result["false_per_series_year"] == pytest.approx(2 / result["series_years"])


@pytest.mark.parametrize(
    ("metric", "reason", "explained"),
    [
        ("time", "the new tile size", True),
        ("time", "False alarm: the room was hot", False),
        ("energy", "the new tile size", False),
    ],
)
def test_an_acknowledged_reason_is_a_cause_of_its_own_metrics(
    database: Database, metric: str, reason: str, explained: bool
) -> None:
    store(database, *nights())
    acknowledge(database, STEP + 1, metric, reason)
    result = found(database)
    cause = f"alert 1, ann: {reason}" if explained else None
    assert {each[3] for each in told(result)} == {cause}
    assert result["precision"] == (1.0 if explained else 0.0)
    assert result["recall"] == (1.0 if explained else 0.0 if metric == "energy" else None)
    assert [missed["note"] for missed in result["missed"]] == (
        [f"alert 1, ann: {reason}"] if metric == "energy" else []
    )


def test_the_other_direction_is_another_cause(database: Database) -> None:
    store(database, *nights())
    acknowledge(database, STEP, "time", "a faster clock", "lower")
    assert {each[3] for each in told(found(database))} == {None}


def test_a_baseline_in_the_place_of_another_is_a_cause_and_a_new_usual(database: Database) -> None:
    store(database, *nights())
    accept_all(database, 0, STEP + 3)
    result = found(database)
    cause = "baseline accepted by test: for the test"
    assert {each[3] for each in told(result)} == {cause}
    assert (result["causes"], result["recall"], result["precision"]) == (1, 1.0, 1.0)
    last = max(datetime.fromisoformat(alert["last"]) for alert in result["alerts"])
    assert last <= FIRST + timedelta(days=STEP + 3)  # from then on it is usual
    # What was acknowledged and then accepted is one change.
    acknowledge(database, STEP, "time", "the new tile size")
    assert found(database)["causes"] == 1


def test_the_first_baseline_of_a_key_is_no_change(database: Database) -> None:
    store(database, *nights())
    accept_all(database, 0)
    result = found(database)
    assert (result["causes"], {each[3] for each in told(result)}) == (0, {None})


def test_thresholds_differ_in_what_they_find(database: Database) -> None:
    store(database, *nights())
    assert len(told(found(database, threshold=3.86))) == 2
    assert told(found(database, threshold=20)) == []


def test_it_is_narrowed_to_a_device_a_metric_and_a_time(database: Database) -> None:
    store(database, *nights())
    other = [night(day, f"other-{day}", ms=0.02, device=OTHER_GPU) for day in range(3)]
    store(database, *other)
    assert {each[1] for each in told(found(database, checks=["time_history"]))} == {"cuda_time_per_replay"}
    assert told(found(database, checks=["energy_history"])) == []
    for device in ("Other GPU", "GPU-2"):
        assert found(database, device=device)["series_years"] == pytest.approx(5 * 2 / 365.25)
    assert told(found(database, device="GPU-1")) == told(found(database))
    with database.reader.connect() as connection:
        assert stored_history(connection, device="none").series == ()
    late = found(database, since=FIRST + timedelta(days=STEP + 10))
    assert {each[0] for each in told(late)} == {STEP + 10}  # still out, and new to a replay that begins then
    assert late["series_years"] < 1


def test_cpu_times_withdrawn_and_injected_runs_are_not_replayed(database: Database) -> None:
    store(database, *[run_record(f"cpu-{n}", device=CPU, rounds=[measured(0, None)]) for n in range(2)])
    with database.reader.connect() as connection:
        assert stored_history(connection).series == ()
    simulated = [night(d, f"s{d}", device=SIMULATED_GPU, inject="energy+10%", seed=1) for d in range(2)]
    store(database, *simulated, *nights())
    for record in nights()[STEP:]:
        withdraw_run(database.writer, record.request.run_id, scope="all", withdrawn_by="t", reason="another kernel")
    assert told(found(database)) == []
    with database.reader.connect() as connection:
        assert {s.key.device_uuid for s in stored_history(connection).series if s.key} == {GPU.uuid}


def test_the_checks_that_can_be_asked_for_are_those_there_are() -> None:
    assert tuple(CHECKS) == HISTORY_CHECKS
