"""The check operators on stored runs: what they store, what they return, and the line of a red one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from airflow.sdk.exceptions import AirflowFailException
from sqlalchemy import text

from regression.operators import (
    AgreementRegressionOperator,
    EnergyDriftOperator,
    EnvironmentChangeOperator,
    TimeDriftOperator,
    checks,
)
from regression.operators.checks import CheckOperator
from tests.integration.regression.databases import Database
from tests.integration.regression.example_records import CPU, digest, run_record
from tests.integration.regression.many_nights import MJ, MS, accept, night, noisy, store

OPERATORS: tuple[type[CheckOperator], ...] = (
    AgreementRegressionOperator,
    EnergyDriftOperator,
    TimeDriftOperator,
    EnvironmentChangeOperator,
)
NIGHTS = 30


@pytest.fixture(autouse=True)
def connection_of_the_test(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "results_engine", lambda conn_id: database.writer)


def run(operator: type[CheckOperator], name: str) -> dict[str, dict[str, str]]:
    task = operator(task_id="check", run_dag_id="nightly_qda", run_dag_run_id=name)
    return task.execute({})  # type: ignore[typeddict-item]


def verdicts(found: dict[str, dict[str, str]]) -> dict[str, str]:
    return {check: told["reason_code"] for check, told in found.items()}


def stored(database: Database) -> dict[str, str]:
    with database.reader.connect() as connection:
        rows = connection.execute(text("SELECT check_name, reason_code FROM check_result"))
        return dict(tuple(row) for row in rows)


def test_every_check_of_a_quiet_night_is_stored_and_returned(database: Database) -> None:
    nights = list(noisy(NIGHTS))
    store(database, *nights)
    accept(database, nights[0])
    store(database, night(NIGHTS, mj=nights[0].rounds[3].adjusted_mj or 0, ms=nights[0].rounds[0].cuda_ms))
    found = [verdicts(run(operator, f"scheduled__{NIGHTS:03d}")) for operator in OPERATORS]
    assert found == [
        {"agreement": "same_predictions"},
        {
            "energy": "within_spread",
            "energy_history": "no_shift",
            "gross_energy_history": "no_shift",
            "idle_power_history": "no_shift",
        },
        {"time": "within_spread", "time_history": "no_shift", "wall_time_history": "no_shift"},
        {"environment": "same_surroundings"},
    ]
    assert stored(database) == {check: code for one in found for check, code in one.items()}


def test_a_red_time_says_what_a_woken_engineer_wants_and_everything_is_stored(database: Database) -> None:
    nights = list(noisy(NIGHTS))
    store(database, *nights)
    accept(database, nights[0])
    slower = night(NIGHTS, ms=MS * 1.06)
    assert slower.kernel
    store(database, replace(slower, kernel=replace(slower.kernel, ptx_sha256=digest("new"))))
    with pytest.raises(AirflowFailException) as raised:
        run(TimeDriftOperator, f"scheduled__{NIGHTS:03d}")
    spread, history = str(raised.value).split(" | ")
    assert spread.startswith("time regressed: CUDA time 0.017384 ms a replay (median of 7 of 7 rounds) is above the")
    where = f"qda on Test GPU, run scheduled__{NIGHTS:03d}]"
    changed = f"also changed: kernel {digest('ptx')[:12]} -> {digest('new')[:12]}"
    assert spread.endswith(f"{changed} [time_above_spread; {where}")
    assert history.startswith("time_history regressed: 0.01738 ms tonight, usual 0.01637 ms of ")
    assert history.endswith(f"{changed} [shift_higher; {where}")
    assert stored(database) == {
        "time": "time_above_spread",
        "time_history": "shift_higher",
        "wall_time_history": "no_shift",
    }


def test_a_red_energy_history_is_red_though_the_spread_is_wide(database: Database) -> None:
    """asv 752: what one rule is unsure of does not mask what another one is sure of."""
    nights = list(noisy(NIGHTS))
    wide = [replace(r, adjusted_mj=MJ * (0.9 + n / 30)) for n, r in enumerate(nights[0].rounds)]
    nights[0] = replace(nights[0], rounds=wide)
    store(database, *nights, night(NIGHTS, mj=MJ * 1.05))
    accept(database, nights[0])
    with pytest.raises(AirflowFailException, match=r"^energy_history regressed: [^|]*$"):
        run(EnergyDriftOperator, f"scheduled__{NIGHTS:03d}")
    assert stored(database)["energy"] in ("within_spread", "within_wide_spread")


def test_a_new_driver_is_said_and_green(database: Database) -> None:
    first = night(0)
    store(database, first)
    accept(database, first)
    store(database, night(1, ms=2 * MS, environment={"driver": "580.2"}))
    found = run(EnvironmentChangeOperator, "scheduled__001")
    assert (found["environment"]["verdict"], found["environment"]["reason_code"]) == ("inconclusive", "new_segment")
    assert verdicts(run(TimeDriftOperator, "scheduled__001"))["time"] == "baseline_other_environment"


def test_a_cpu_device_has_nothing_to_judge_but_predictions(database: Database) -> None:
    store(database, run_record("cpu", device=CPU, energies=[None] * 7))
    found = {}
    for operator in OPERATORS[1:3]:
        found |= run(operator, "cpu")
    assert {told["verdict"] for told in found.values()} == {"unavailable"}
    assert len(found) == 7


def test_a_judged_night_can_be_judged_again(database: Database) -> None:
    store(database, *noisy(14))
    first = [run(operator, "scheduled__013") for operator in OPERATORS]
    before = stored(database)
    assert [run(operator, "scheduled__013") for operator in OPERATORS] == first
    assert stored(database) == before


def test_a_run_that_is_not_stored_is_named(database: Database) -> None:
    with pytest.raises(AirflowFailException, match="run_not_stored: nightly_qda/nothing"):
        run(TimeDriftOperator, "nothing")
