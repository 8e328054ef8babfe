"""The look at the first rounds of a night says what the checks will say of them, and plans more where that is out."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from gpu_tasks.records import ConfirmationRecord, Outcome, Reason, RunRecord, read_record, write_record
from regression.nights.confirmation import plan
from regression.nights.folder import Night
from regression.results.baselines import accept_baseline
from regression.results.energies import energy_findings
from regression.results.history import find_run
from regression.results.loading import load_run
from regression.results.times import time_findings
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import (
    INVALID,
    SIMULATED_GPU,
    energy_round,
    energy_run,
    gate,
    telemetry,
)
from tests.integration.regression.example_records import ENVIRONMENT, GPU, payload, sha256_of

HIGH, LOW = (0.69, 0.695, 0.7, 0.7, 0.701, 0.705, 0.71), (0.49, 0.495, 0.5, 0.5, 0.501, 0.505, 0.51)
SLOW = [energy_round(number, 0.6, cuda_ms=0.0174 + number / 1e6) for number in range(7)]
A_LITTLE_SLOW = [energy_round(number, 0.6, cuda_ms=0.01645 + number / 1e9) for number in range(7)]
ALL_INVALID = [energy_round(number, 0.7, **INVALID) for number in range(7)]
BAND_MISSED = [telemetry("before", gates=[gate("reference_load", "before", passed=False)]), telemetry("after")]
NOT_CHECKED = [telemetry("before", gates=[gate("reference_load", "before", passed=None)]), telemetry("after")]
OTHER_LIMIT = [
    telemetry(when, state_before=dataclasses.replace(telemetry(when).state_before, power_limit_w=300.0))  # type: ignore[type-var]
    for when in ("before", "after")
]
ONE_VALID = [energy_round(0, 0.7), *(energy_round(number, 0.6, **INVALID) for number in range(1, 7))]
OTHER_WINDOW = [energy_round(number, 0.7, repeats=100) for number in range(7)]
OTHER_BOARD = dataclasses.replace(GPU, uuid="GPU-2")
OTHER_DRIVER = dataclasses.replace(ENVIRONMENT, driver="999.1")


@pytest.fixture
def runs(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where nights are; the database has an accepted run of the same board."""
    monkeypatch.setenv("NIGHTLY_RUNS", str(tmp_path))
    base = energy_run("base")
    load_run(database.writer, base, sha256_of(base))
    accept_baseline(database.writer, base.request.run_id, accepted_by="test", reason="for the test")
    return tmp_path


def night_of(record: RunRecord, confirm_rounds: int = 7) -> Night:
    """The folder of a night as its tasks would have left it before the look."""
    night = Night("nightly_qda", record.request.dag_run_id)
    parts: dict[str, Any] = {"request": dataclasses.replace(record.request, confirm_rounds=confirm_rounds)}
    parts |= {"provision": record.provision, "verify-payload": record.verify_payload}
    parts |= {f"round-{r.round:02d}": r for r in record.rounds}
    parts |= {f"telemetry-{t.when}": t for t in record.telemetry if t.when == "before"}
    for name, part in parts.items():
        write_record(part, night.folder / f"{name}.json")
    return night


def with_environment(record: RunRecord) -> RunRecord:
    assert record.provision
    return dataclasses.replace(record, provision=dataclasses.replace(record.provision, environment=OTHER_DRIVER))


@pytest.mark.parametrize(
    ("record", "code", "verdicts"),
    [
        (energy_run("tonight"), "within_spread", ("ok", "ok")),
        (energy_run("tonight", HIGH), "out_of_spread", ("regressed", "ok")),
        (energy_run("tonight", LOW), "out_of_spread", ("regressed", "ok")),
        (energy_run("tonight", rounds=SLOW), "out_of_spread", ("ok", "regressed")),
        (energy_run("tonight", rounds=A_LITTLE_SLOW), "within_spread", ("ok", "ok")),
        (
            energy_run("tonight", HIGH, telemetry=BAND_MISSED, failed=["reference_load"]),
            "within_spread",
            ("invalid", "ok"),
        ),
        (
            energy_run("tonight", HIGH, telemetry=NOT_CHECKED, unchecked=["reference_load"]),
            "within_spread",
            ("inconclusive", "ok"),
        ),
        (energy_run("tonight", rounds=ONE_VALID), "out_of_spread", ("regressed", "ok")),
        (energy_run("tonight", rounds=OTHER_WINDOW), "within_spread", ("inconclusive", "ok")),
        (energy_run("tonight", rounds=ALL_INVALID), "nothing_to_compare", ("invalid", "invalid")),
        (energy_run("tonight", HIGH, device=OTHER_BOARD), "nothing_to_compare", ("inconclusive", "inconclusive")),
        (energy_run("tonight", HIGH, device=SIMULATED_GPU), "nothing_to_compare", ("inconclusive", "inconclusive")),
        (with_environment(energy_run("tonight", HIGH)), "nothing_to_compare", ("inconclusive", "inconclusive")),
    ],
)
def test_the_look_says_what_the_checks_will_say(
    database: Database, runs: Path, record: RunRecord, code: str, verdicts: tuple[str, str]
) -> None:
    found = plan(night_of(record), lambda: database.reader)
    assert (found.outcome, found.reason and found.reason.code) == (Outcome.OK, code)
    assert found.rounds == (list(range(7, 14)) if code == "out_of_spread" else [])
    assert tuple(look.verdict for look in found.looks) == verdicts
    load_run(database.writer, record, sha256_of(record))
    with database.reader.connect() as connection:
        run = find_run(connection, "nightly_qda", "tonight")
        stored = [energy_findings(connection, run)[0].verdict, time_findings(connection, run)[0].verdict]
    for look, verdict in zip(found.looks, stored, strict=True):
        assert (look.check, look.verdict, look.value) == (verdict.check, verdict.verdict.value, verdict.value)
        assert (look.baseline_low, look.baseline_high) == (verdict.baseline_low, verdict.baseline_high)
        if verdict.baseline_low is not None:
            assert look.baseline_run_id == energy_run("base").request.run_id


def test_what_is_out_is_said_with_its_figures(database: Database, runs: Path) -> None:
    found = plan(night_of(energy_run("tonight", HIGH)), lambda: database.reader)
    assert found.reason
    assert found.reason.message.startswith(
        "energy: adjusted energy 0.7 mJ a replay (median of 7 of 7 rounds) is above the"
    )
    assert "time" not in found.reason.message
    assert [look.out_of_spread for look in found.looks] == [True, False]


@pytest.mark.parametrize("count", [2, 100])
def test_as_many_rounds_as_were_asked_for(database: Database, runs: Path, count: int) -> None:
    found = plan(night_of(energy_run("tonight", HIGH), confirm_rounds=count), lambda: database.reader)
    assert found.rounds == list(range(7, 7 + count))


def not_to_be_asked() -> Any:
    raise AssertionError("the database was asked")


def test_none_are_planned_where_none_are_asked_for(runs: Path) -> None:
    found = plan(night_of(energy_run("tonight", HIGH), confirm_rounds=0), not_to_be_asked)
    assert (found.rounds, found.looks, found.reason and found.reason.code) == ([], [], "not_asked")


@pytest.mark.parametrize("kind", ["emulated", "reference"])
def test_none_are_planned_for_a_cpu(runs: Path, kind: str) -> None:
    device = dataclasses.replace(GPU, kind=kind, energy_counter=False, energy_counter_reason=Reason("x", "y"))
    found = plan(night_of(energy_run("tonight", HIGH, device=device)), not_to_be_asked)
    assert (found.rounds, found.reason and found.reason.code) == ([], "no_figures")


def test_a_database_that_is_away_costs_the_confirmation_and_not_the_night(runs: Path) -> None:
    away = create_engine("postgresql+psycopg2://x@127.0.0.1:1/x", connect_args={"connect_timeout": 2})
    found = plan(night_of(energy_run("tonight", HIGH)), lambda: away)
    assert (found.rounds, found.outcome) == ([], Outcome.OK)
    assert found.reason and found.reason.code == "results_unavailable"
    assert "\n" not in found.reason.message and "refused" in found.reason.message


def test_a_database_without_a_baseline_confirms_nothing(database: Database, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("NIGHTLY_RUNS", str(tmp_path))
    found = plan(night_of(energy_run("tonight", HIGH)), lambda: database.reader)
    assert (found.rounds, found.reason and found.reason.code) == ([], "nothing_to_compare")


@pytest.mark.parametrize("damaged", ["round-03", "telemetry-before", "verify-payload"])
def test_a_damaged_part_is_left_to_the_summary(database: Database, runs: Path, damaged: str) -> None:
    night = night_of(energy_run("tonight", HIGH))
    (night.folder / f"{damaged}.json").write_text("{")
    found = plan(night, lambda: database.reader)
    assert found.rounds == (list(range(7, 14)) if damaged == "round-03" else [])


def test_a_payload_that_the_database_never_saw_has_no_baseline(database: Database, runs: Path) -> None:
    record = energy_run("tonight", HIGH)
    assert record.verify_payload
    other = dataclasses.replace(payload(), manifest_sha256="9" * 64)
    verified = dataclasses.replace(record.verify_payload, payload=other)
    found = plan(night_of(dataclasses.replace(record, verify_payload=verified)), lambda: database.reader)
    assert found.reason and found.reason.code == "nothing_to_compare"
    assert "another payload" in found.reason.message


def test_the_plan_is_a_record_like_every_other(database: Database, runs: Path) -> None:
    night = night_of(energy_run("tonight", HIGH))
    found = plan(night, lambda: database.reader)
    write_record(found, night.confirmation_file)
    assert read_record(night.confirmation_file, ConfirmationRecord) == found
    assert json.loads(night.confirmation_file.read_text())["looks"][0]["check"] == "energy"
