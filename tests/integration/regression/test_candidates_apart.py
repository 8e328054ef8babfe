"""A run that tries a kernel is no night: not in views, series, baselines, alerts, bands; whoever looks for it finds it.

Each candidate here is a night in everything but its mark: it would be in all of them if nobody looked at that.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from gpu_tasks.records import RunRecord, run_id_for, write_record
from local.cookbook import find_question
from regression.alerts.resolving import resolve_quiet
from regression.alerts.telling import alert_of_run
from regression.detectors.long_term import ADJUSTED, CUDA
from regression.detectors.missing_night import Plan
from regression.nights.watchdog import Watched, night_signal, watch
from regression.results.baselines import accept_baseline
from regression.results.comparisons import compared
from regression.results.history import find_run
from regression.results.promotion import promote_run
from regression.results.reference_bands import learnt_bands
from regression.results.series import key_of, segment_of, series_of, stored_keys
from tests.integration.regression import many_nights, test_backtests
from tests.integration.regression.alert_nights import energy, judged_night, missing, moment, night_record, states
from tests.integration.regression.cookbook_rounds import LIMITED
from tests.integration.regression.databases import Database
from tests.integration.regression.example_comparisons import DAG, candidate, candidate_run, comparison
from tests.integration.regression.example_energy import energy_run
from tests.integration.regression.example_nights import asked, night, store
from tests.integration.regression.example_records import OTHER_GPU, validation
from tests.integration.regression.test_views_history import changed_run

MARKS = ["compared", "marked"]
BY_MARK = pytest.mark.parametrize("mark", MARKS)


def tries(record: RunRecord, mark: str = "compared") -> RunRecord:
    """The same record of a run that tries a kernel: in a comparison, or a night that somebody marked."""
    if mark == "marked":
        return replace(record, request=replace(record.request, kernel_changed=True))
    name = record.request.dag_run_id
    request = replace(record.request, dag_id=DAG, run_id=run_id_for(DAG, name), candidate="kernels/original.py")
    return replace(record, request=request, candidate=candidate(), comparison=comparison())


def other_in_everything(mark: str) -> RunRecord:
    """A candidate of December 2 with another kernel, driver, predictions and an invalid round."""
    draws = [validation(draw, predictions_int32_sha256="9" * 64) for draw in range(11)]
    record = changed_run(night(2, "tried", of=energy_run, validations=draws), driver="599.9")
    assert record.kernel
    return tries(replace(record, kernel=replace(record.kernel, ptx_sha256="8" * 64)), mark)


@BY_MARK
def test_it_is_in_no_view_of_nights_and_nothing_looks_back_at_it(database: Database, mark: str) -> None:
    store(database, night(1, of=energy_run), other_in_everything(mark), night(3, of=energy_run))
    nights = ["scheduled__01", "scheduled__03"]
    for view in ("nightly", "round_trend", "validation_history"):
        assert asked(database, f"SELECT DISTINCT dag_run_id FROM {view} ORDER BY 1") == [(name,) for name in nights]
    assert asked(database, "SELECT count(*) FROM environment_changes") == [(0,)], "neither its own nor back again"
    assert asked(database, "SELECT DISTINCT changed FROM validation_history WHERE night = '2026-12-03'") == [(False,)]
    assert asked(database, "SELECT dag_run_id FROM candidate_runs") == [("tried",)]
    assert asked(database, "SELECT dag_run_id FROM run_detail WHERE candidate") == [("tried",)]
    assert asked(database, "SELECT count(*) FROM run_detail") == [(3,)]


def test_what_it_lacks_is_not_looked_for_in_candidates_further_back(database: Database) -> None:
    """The night before knows neither predictions nor sources: the one before it does, not the candidate between."""
    lost = night(3, "lost", of=energy_run, validations=[], verify_sources=None, kernel=None)
    store(database, night(1, of=energy_run), other_in_everything("compared"), lost, night(4, of=energy_run))
    columns = "previous_run_id = (SELECT run_id FROM run WHERE dag_run_id = 'scheduled__01')"
    last = f"SELECT DISTINCT changed, {columns} FROM validation_history WHERE night = '2026-12-04'"
    assert asked(database, last) == [(False, True)]
    assert asked(database, "SELECT count(*) FROM environment_changes") == [(0,)]


def ask(database: Database, question: str, **params: str) -> list[dict[str, Any]]:
    found = find_question(question)
    with database.reader.connect() as connection:
        rows = connection.exec_driver_sql(found.bound, found.values(params)).mappings()
        return [dict(row) for row in rows]


def test_no_question_about_nights_comes_upon_it(database: Database) -> None:
    """The newest night, the one before it, what changed between them, and what predictions were before."""
    lost = night(3, "lost", of=energy_run, validations=[])
    newest = tries(replace(night(6, of=energy_run), request=replace(energy_run("new").request, dag_run_id="newest")))
    store(database, night(1, of=energy_run), other_in_everything("compared"), lost, night(4, of=energy_run), newest)
    assert ask(database, "prediction_changes") == []
    assert [row["dag_run_id"] for row in ask(database, "run_report")] == ["scheduled__04"]
    assert ask(database, "changed_between") == []
    assert ask(database, "changed_between", earlier="2026-12-02") == [], "on that day there was no night"
    changed = ask(database, "changed_between", earlier="scheduled__01", later="tried")
    assert {"driver", "ptx_sha256"} <= {row["name"] for row in changed}, "unless it is named"


def test_nor_does_a_question_about_the_night_before(database: Database) -> None:
    store(database, night(1, of=energy_run), other_in_everything("compared"), night(3, of=energy_run))
    assert ask(database, "changed_between") == []


def test_what_changed_to_a_candidate_is_told_by_its_own_rounds(database: Database) -> None:
    tried = other_in_everything("compared")
    compared_rounds = [
        replace(r, energy=replace(r.energy, state_before=LIMITED))
        for r in (tried.comparison.rounds if tried.comparison else [])
        if r.energy
    ]
    assert tried.comparison
    tried = replace(tried, comparison=replace(tried.comparison, rounds=compared_rounds))
    store(database, night(1, of=energy_run), tried)
    changed = ask(database, "changed_between", earlier="scheduled__01", later="tried")
    assert "measurement" not in {row["part"] for row in changed}


def series(database: Database, name: str, dag_id: str = "nightly_qda") -> list[str | None]:
    with database.reader.connect() as connection:
        run = find_run(connection, dag_id, name)
        key = key_of(run)
        assert key is not None
        found = series_of(connection, key, CUDA, segment_of(connection, key, CUDA), run=run)
    return [figure.run for figure in found.figures]


@BY_MARK
def test_it_is_in_no_series_but_its_own(database: Database, mark: str) -> None:
    tried = tries(many_nights.night(1, "tried", request={"trigger": "manual"}), mark)
    store(database, many_nights.night(0), tried, many_nights.night(2))
    assert series(database, "scheduled__002") == ["scheduled__000", "scheduled__002"]
    dag_id = "nightly_qda" if mark == "marked" else DAG
    assert series(database, "tried", dag_id) == ["scheduled__000", "tried"], "held against the nights before"


@BY_MARK
def test_a_board_on_which_nothing_but_candidates_ran_has_no_series(database: Database, mark: str) -> None:
    store(database, many_nights.night(0), tries(many_nights.night(1, "tried", device=OTHER_GPU), mark))
    with database.reader.connect() as connection:
        assert [key.device_uuid for key in stored_keys(connection)] == ["GPU-1"]


@BY_MARK
def test_a_backtest_sees_nights_alone(database: Database, mark: str) -> None:
    store(database, *test_backtests.nights())
    before = test_backtests.found(database)
    tried = [tries(many_nights.night(day, f"tried__{day}", ms=0.1, mj=3.0, hour=9), mark) for day in range(10, 20)]
    store(database, *tried)
    assert test_backtests.found(database) == before


def test_a_promoted_kernel_begins_what_is_usual_when_it_is_accepted(database: Database) -> None:
    """Nights between its run and its acceptance may have run the kernel before."""
    store(database, *(many_nights.night(day) for day in range(3)))
    accept_baseline(database.writer, many_nights.night(0).request.run_id, accepted_by="ana", reason="first")
    tried = tries(many_nights.night(1, "tried", hour=9))
    store(database, tried)
    with database.admin.begin() as connection:
        connection.execute(text("UPDATE run SET verdict = 'ok', exit_code = 0 WHERE candidate"))
        connection.execute(
            text(
                "INSERT INTO check_result (run_id, check_name, step, verdict, metric, unit, reason_code, reason, "
                "details) SELECT run_id, 'compare_predictions', 0, 'ok', 'agreed', 'predictions', 'x', 'x', '{}' "
                "FROM run WHERE candidate"
            )
        )
    promote_run(database.writer, tried.request.run_id, promoted_by="ben", reason="faster")
    at = datetime(2026, 12, 3, 12, tzinfo=UTC)
    with database.admin.begin() as connection:
        for change in (
            "accepted_at = :first, retired_at = :at WHERE retired_at IS NOT NULL",
            "accepted_at = :at WHERE retired_at IS NULL",
        ):
            values = {"at": at, "first": many_nights.FIRST + timedelta(hours=1)}
            connection.execute(text(f"UPDATE baseline SET {change}"), values)
    store(database, many_nights.night(3))
    assert series(database, "scheduled__003") == ["scheduled__003"], "not the night of the day after it was tried"
    with database.reader.connect() as connection:
        run = find_run(connection, "nightly_qda", "scheduled__003")
        key = key_of(run)
        assert key is not None
        assert segment_of(connection, key, ADJUSTED).since == at
        history = test_backtests.stored_history(connection)
    assert {usual.start for usual in history.usual} == {many_nights.FIRST, at}


@BY_MARK
def test_what_is_compared_with_a_baseline_is_asked_of_nights(database: Database, mark: str) -> None:
    store(database, energy_run("base"))
    accept_baseline(database.writer, energy_run("base").request.run_id, accepted_by="ana", reason="first")
    with database.reader.connect() as connection:
        before = compared(connection)
    assert {found.purpose for found in before} == {"predictions", "time", "energy"}
    store(database, tries(energy_run("tried", device=OTHER_GPU), mark))
    with database.reader.connect() as connection:
        assert compared(connection) == before


def test_it_teaches_a_band_only_once_it_was_accepted(database: Database) -> None:
    names = ("a", "b", "c")
    for name in names[:2]:
        store(database, energy_run(name))
        accept_baseline(database.writer, energy_run(name).request.run_id, accepted_by="ana", reason="x")
    store(database, tries(energy_run("c"), "marked"))
    with database.reader.connect() as connection:
        assert learnt_bands(connection, simulated=False) == {}
    run_id = energy_run("c").request.run_id
    accept_baseline(database.writer, run_id, accepted_by="ana", reason="x", promoted=True)
    with database.reader.connect() as connection:
        assert list(learnt_bands(connection, simulated=False)) == ["Test GPU"]


NIGHT = datetime(2026, 11, 30, 2, tzinfo=UTC)
WATCHED = Watched("nightly_qda", "qda", Plan("0 2 * * *", "UTC", NIGHT - timedelta(hours=1)), by_hand=True)


@pytest.mark.parametrize("trigger", ["scheduled", "manual"])
@pytest.mark.parametrize("where", ["database", "folder"])
@pytest.mark.parametrize("mark", [None, "kernel_changed", "candidate"])
def test_a_night_on_which_only_a_candidate_ran_did_not_come(
    database: Database, tmp_path: Path, mark: str | None, where: str, trigger: str
) -> None:
    """Without the mark the same run is the night."""
    record = energy_run(
        f"{trigger}__2026-11-30", started_at="2026-11-30T02:00:00Z", completed_at="2026-11-30T02:05:00Z"
    )
    marks = {"kernel_changed": {"kernel_changed": True}, "candidate": {"candidate": "fused"}, None: {}}[mark]
    changes = {"trigger": trigger, "accepted_at": "2026-11-30T02:00:00Z", "logical_date": "2026-11-30T02:00:00Z"}
    record = replace(record, request=replace(record.request, **changes, **marks))
    if where == "database":
        store(database, record)
        with database.admin.begin() as connection:
            connection.execute(text("UPDATE run SET verdict = 'ok', exit_code = 0"))
    else:
        write_record(record.request, tmp_path / "nightly_qda" / record.request.dag_run_id / "request.json")
    with database.reader.connect() as connection:
        (found,) = watch(connection, replace(WATCHED, runs=tmp_path), NIGHT + timedelta(hours=5))
    assert [attempt.dag_run_id for attempt in found.attempts] == ([] if mark else [record.request.dag_run_id])
    assert (night_signal(WATCHED, [found]) is None) == (mark is None and where == "database")


@BY_MARK
def test_it_raises_no_alert_and_ends_none(database: Database, mark: str) -> None:
    judged_night(database, 1, energy("regressed"))
    alert_of_run(database.writer, "nightly_qda", "scheduled__01", moment(1))
    request: dict[str, Any] = {"kernel_changed": True} if mark == "marked" else {"candidate": "fused"}
    for day in range(2, 12):
        judged_night(database, day, energy("ok"), verdict="ok", request=replace(night_record(day).request, **request))
    resolve_quiet(database.writer, moment(12))
    assert states(database) == [("energy", "higher", "open", 1)], "ten fine candidates are no fine nights"
    worse = energy("regressed", direction="lower")
    judged_night(database, 12, worse, request=replace(night_record(12).request, **request))
    given = {"otherwise": [missing(12)]}
    assert alert_of_run(database.writer, "nightly_qda", "scheduled__12", moment(12), **given) == []
    assert states(database) == [("energy", "higher", "open", 1)]
    for day in range(13, 20):
        judged_night(database, day, energy("ok"), verdict="ok")
    resolve_quiet(database.writer, moment(20))
    assert states(database) == [("energy", "higher", "resolved", 1)]


def test_a_candidate_run_says_how_it_did(database: Database) -> None:
    """Before it was judged there are no words; a marked night has no comparison at all."""
    store(database, candidate_run(), tries(energy_run("marked"), "marked"))
    columns = "dag_run_id, verdict, spec, origin, predictions_word, energy_effect_percent, blocks, adjusted_mj_median"
    assert asked(database, f"SELECT {columns} FROM candidate_runs ORDER BY dag_run_id") == [
        ("marked", "not judged", None, None, None, None, 0, 0.6),
        ("tried__1", "not judged", "kernels/original.py", "source", None, None, 8, 0.54),
    ]
