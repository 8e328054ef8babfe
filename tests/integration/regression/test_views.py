"""The views: their columns stay as they are on file, and each says what it promises."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from gpu_tasks.records import Outcome, Reason
from regression.results.withdrawals import withdraw_run
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import ENERGIES, INVALID, energy_round, energy_run, figure
from tests.integration.regression.example_nights import asked, night, store
from tests.integration.regression.example_records import (
    CPU,
    run_record,
)
from tests.integration.regression.test_verdicts import accept, judge, settle

PINNED = Path(__file__).with_name("view_columns.txt")
COLUMNS = """
    SELECT c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'v'
    ORDER BY c.relname, a.attnum
"""


def test_columns_keep_name_type_and_order(database: Database) -> None:
    """New columns go to the end of their view, and of its lines in the file; nothing else may change."""
    assert [line for (line,) in asked(database, COLUMNS)] == PINNED.read_text(encoding="utf-8").splitlines()


def test_round_trend_has_every_round_with_its_figures(database: Database) -> None:
    rounds = [energy_round(n, mj, **(INVALID if n == 2 else {})) for n, mj in enumerate(ENERGIES)]
    attempts = [Reason("not_ready", "the counter was not ready")]
    rounds[1] = replace(rounds[1], earlier_attempts=attempts)
    store(database, night(1, of=energy_run, rounds=rounds), night(2, device=CPU, energies=[None] * 2))
    columns = "night, round, valid, reason_code, adjusted_mj, idle_w, earlier_attempts, trigger, energy_trust"
    found = asked(database, f"SELECT {columns} FROM round_trend ORDER BY started_at, round")
    assert len(found) == 9
    assert found[1] == (date(2026, 12, 1), 1, True, None, 0.595, pytest.approx(40.05), 1, "manual", "verified")
    assert found[2] == (date(2026, 12, 1), 2, False, "throttled", 0.6, pytest.approx(40.05), 0, "manual", "verified")
    assert found[8] == (date(2026, 12, 2), 1, True, None, None, pytest.approx(40.05), 0, "manual", "unavailable")
    columns = ", ".join(f"{name}_mj, {name}_low_mj, {name}_high_mj" for name in ("classic", "aligned", "audited"))
    (figures,) = asked(database, f"SELECT {columns} FROM round_trend WHERE round = 0 AND device_kind = 'cuda'")
    expected = [figure(name, 0.59 + off) for name, off in (("classic", 0.02), ("aligned", -0.01), ("audited", 0.0))]
    edges = [(f.adjusted_mj, f.uncertainty.low_mj, f.uncertainty.high_mj) for f in expected]
    assert figures == pytest.approx(tuple(value for edge in edges for value in edge))
    assert asked(database, "SELECT DISTINCT interleaved_mj, classic_mj FROM round_trend WHERE round = 9") == []


def test_open_alerts_show_what_is_not_resolved_and_whether_it_is_muted(full: Database) -> None:
    columns = (
        "device, metric, direction, state, is_muted, round(change_percent::numeric, 6), first_night, last_dag_run_id"
    )
    (found,) = asked(full, f"SELECT {columns} FROM open_alerts")
    assert found == (
        *("Test GPU", "adjusted_energy_per_replay", "higher", "open", False, 10, date(2026, 11, 30), "manual__1"),
    )
    for until, muted in (("now() + interval '1 h'", True), ("now()", False)):
        with full.writer.begin() as connection:
            connection.execute(
                text(
                    "UPDATE alert SET state = 'muted', acknowledged_by = 'ana', acknowledged_reason = 'the fan', "
                    f"acknowledged_at = opened_at, muted_until = {until}"
                )
            )
        assert asked(full, "SELECT state, is_muted, acknowledged_by FROM open_alerts") == [("muted", muted, "ana")]
    missing = (
        "INSERT INTO alert (workload, metric, direction, outcome, state, occurrences, text) "
        "VALUES ('qda', 'night', 'missing', 'infrastructure_failure', 'open', 1, 'no night by 06:00')"
    )
    with full.writer.begin() as connection:
        connection.execute(text("UPDATE alert SET state = 'resolved', resolved_at = now()"))
        connection.execute(text(missing))
    columns = "device, metric, value, change_percent, first_night, last_night, text"
    expected = [(None, "night", None, None, None, None, "no night by 06:00")]
    assert asked(full, f"SELECT {columns} FROM open_alerts") == expected


def test_run_detail_tells_everything_of_a_run_in_one_row(database: Database) -> None:
    accept(database, energy_run("base"))
    disturbed = energy_round(1, **INVALID)
    rounds = [energy_round(0), disturbed, energy_round(2)]
    judge(database, night(1, "tonight", of=energy_run, rounds=rounds, failed=["sham_window"], unchecked=["exclusive"]))
    settle(database, "tonight")
    (row,) = asked(database, "SELECT to_jsonb(run_detail) FROM run_detail WHERE dag_run_id = 'tonight'")
    found = row[0]
    expected = {
        **{"night": "2026-12-01", "verdict": "invalid_measurement", "exit_code": 3, "energy_trust": "failed"},
        **{"gates_failed": ["sham_window@run"], "gates_unchecked": ["exclusive@run"], "is_baseline": False},
        **{"invalid_rounds": ["1: throttled"], "cases_not_ok": [], "agreed": 11000, "power_limit_w": 400.0},
        **{"agreement_verdict": "ok", "energy_verdict": "invalid", "withdrawn": None, "duration_s": 300.0},
        **{"agreement_baseline_run_id": energy_run("base").request.run_id, "payload": "original", "driver": "570.1"},
    }
    assert {name: found[name] for name in expected} == expected
    assert {"reference_load@before", "reference_load@after", "sampling@run"} <= set(found["gates_passed"])
    assert found["checks"].keys() == {"agreement", "energy"}
    agreement = found["checks"]["agreement"]
    assert (agreement["verdict"], agreement["value"], agreement["unit"]) == ("ok", 11000, "predictions")
    assert (agreement["baseline_run_id"], agreement["accepted_by"]) == (energy_run("base").request.run_id, "test")
    assert found["figures"]["aligned"]["rounds"] == 2
    assert found["params"]["draws"] == list(range(11))


def test_run_detail_has_a_row_for_a_run_of_which_nothing_is_left(database: Database) -> None:
    nothing: dict[str, Any] = {"provision": None, "verify_sources": None, "verify_payload": None, "kernel": None}
    lost = {"outcome": Outcome.INFRASTRUCTURE_FAILURE, "reason": Reason("device_lost", "gone")}
    store(database, night(1, validations=[], rounds=[], **nothing, **lost))
    (row,) = asked(database, "SELECT to_jsonb(run_detail) FROM run_detail")
    found = row[0]
    empty = ("cases_not_ok", "invalid_rounds", "gates_passed", "gates_failed", "gates_unchecked")
    assert [found[name] for name in empty] == [[]] * 5
    unknown = ("device", "payload", "driver", "figures", "checks", "agreement_verdict", "withdrawn", "power_limit_w")
    assert [found[name] for name in unknown] == [None] * 8
    assert (found["verdict"], found["reason_code"]) == ("not judged", "device_lost")


def test_withdrawn_runs_stay_readable_with_reason_and_successor(database: Database) -> None:
    store(database, night(1, of=energy_run), night(2, of=energy_run), night(3))
    first, second, third = (f"scheduled__0{day}" for day in (1, 2, 3))
    run_ids = dict(asked(database, "SELECT dag_run_id, run_id::text FROM run"))
    words = {"withdrawn_by": "ana", "reason": "the sensor was wrong"}
    figures = "0.01 mJ, truly 0.6 mJ"
    withdraw_run(
        database.writer, run_ids[first], scope="energy", successor_run_id=run_ids[second], figures=figures, **words
    )
    withdraw_run(database.writer, run_ids[third], scope="energy", **words)
    withdraw_run(database.writer, run_ids[third], scope="all", **words)
    columns = "night, scope, reason, figures, withdrawn_by, adjusted_mj_median, successor_night, successor_energy_trust"
    assert asked(database, f"SELECT {columns} FROM withdrawn ORDER BY night, scope") == [
        (date(2026, 12, 1), "energy", words["reason"], figures, "ana", 0.6, date(2026, 12, 2), "verified"),
        (date(2026, 12, 3), "all", words["reason"], None, "ana", 0.6, None, None),
        (date(2026, 12, 3), "energy", words["reason"], None, "ana", 0.6, None, None),
    ]
    for view in ("nightly", "run_detail", "round_trend", "validation_history"):
        scopes = asked(database, f"SELECT withdrawn FROM {view} GROUP BY night, withdrawn ORDER BY night")
        assert scopes == [("energy",), (None,), ("all",)]


def test_nights_are_days_in_utc_whatever_the_session_says(database: Database) -> None:
    store(database, run_record("late", started_at="2026-12-01T23:30:00Z", completed_at="2026-12-02T00:10:00Z"))
    for view in ("nightly", "round_trend", "validation_history", "run_detail"):
        with database.reader.connect() as connection:
            connection.execute(text("SET timezone = 'Asia/Tokyo'"))
            nights = connection.execute(text(f"SELECT DISTINCT night FROM {view}")).scalars().all()
            assert nights == [date(2026, 12, 1)]
            started = connection.execute(text(f"SELECT max(started_at) FROM {view}")).scalar_one()
            assert started == datetime(2026, 12, 1, 23, 30, tzinfo=UTC)


def test_imported_records_are_no_nights_but_have_their_rounds_and_draws(database: Database) -> None:
    store(database, night(1, trigger="import"))
    counts = {view: asked(database, f"SELECT count(*) FROM {view}") for view in ("nightly", "run_detail")}
    assert counts == {"nightly": [(0,)], "run_detail": [(1,)]}
    assert asked(database, "SELECT count(*) FROM round_trend") == [(7,)]
    assert asked(database, "SELECT count(*) FROM validation_history") == [(11,)]


@pytest.mark.parametrize(
    ("statement", "absent", "times"),
    [
        ("SELECT night, adjusted_mj, valid FROM round_trend", "round_energy", 0),
        ("SELECT night, aligned_mj FROM round_trend", "round_energy", 1),
        ("SELECT night, draw, agreed FROM validation_history", "run", 1),
        ("SELECT night, draw, changed FROM validation_history", "run", 3),  # itself, the one before, and further back
        ("SELECT night, verdict FROM nightly", "check_result", 0),
        ("SELECT night, verdict FROM nightly", "telemetry_gate", 0),
        ("SELECT night, energy_verdict FROM nightly", "check_result", 1),
        ("SELECT night, verdict, params FROM run_detail", "telemetry_gate", 0),
    ],
)
def test_what_is_not_asked_for_is_not_looked_up(database: Database, statement: str, absent: str, times: int) -> None:
    assert scanned(database, statement).count(absent) == times


def test_a_night_and_the_run_before_are_found_by_index(database: Database) -> None:
    plan = plan_of(database, "SELECT changed FROM validation_history WHERE night = '2026-12-01'")
    used = {node.get("Index Name") for node in nodes(plan)}
    assert {"run_night_idx", "run_workload_device_id_started_at_run_id_idx"} <= used


def plan_of(database: Database, statement: str) -> dict[str, Any]:
    """Plan of a statement for tables that are large: a whole scan is the last thing that would be done."""
    with database.reader.connect() as connection:
        connection.execute(text("SET enable_seqscan = off"))
        found = connection.execute(text(f"EXPLAIN (FORMAT JSON) {statement}")).scalar_one()
    plan: dict[str, Any] = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
    return plan


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Every node of a plan."""
    return [plan, *(node for part in plan.get("Plans", []) for node in nodes(part))]


def scanned(database: Database, statement: str) -> list[str]:
    """Tables that a plan reads, as often as it does."""
    return [node["Relation Name"] for node in nodes(plan_of(database, statement)) if "Relation Name" in node]
