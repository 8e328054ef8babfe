"""The Grafana dashboard: its files agree, and each of its queries runs as the reader on the cookbook's history."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import psycopg2
import pytest
import yaml

from gpu_tasks.records import Outcome, Reason
from regression.results.columns import VERDICTS
from regression.results.loading import load_run
from regression.results.migrate import VIEWS
from tests.integration.regression.cookbook_database import cookbook_database
from tests.integration.regression.databases import Database
from tests.integration.regression.example_records import run_record, sha256_of
from tests.support.grafana import FOLDER, Statement, as_sent, dashboard, statements

__all__ = ["cookbook_database"]

DASHBOARD = dashboard()
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
BY_PANEL = pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
BY_STATEMENT = pytest.mark.parametrize("statement", statements(DASHBOARD), ids=lambda statement: statement.title)
(SOURCE,) = yaml.safe_load((FOLDER / "provisioning/datasources/results.yaml").read_text())["datasources"]
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SINCE, UNTIL = "2026-01-01T00:00:00Z", "2026-12-31T23:59:59Z"
BOARDS = ("GPU-1", "GPU-2", "GPU-simulated", "cpu-1")
VARIABLES = {"workload": ("qda",), "device": BOARDS}
VISUALISATIONS = {"timeseries": "time_series", "barchart": "table", "table": "table"}
"""Kinds of panels, all of which Grafana has built in, and the form of result that each of them draws."""


@pytest.fixture
def reader(cookbook_database: str) -> Iterator[Any]:
    connection = psycopg2.connect(cookbook_database)
    yield connection
    connection.close()


def ask(
    reader: Any, statement: Statement, since: str = SINCE, **variables: tuple[str, ...]
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Names of the columns, and the rows."""
    with reader.cursor() as cursor:
        cursor.execute(as_sent(statement.sql, since, UNTIL, {**VARIABLES, **variables}))
        return [column.name for column in cursor.description], cursor.fetchall()


def rows_of(reader: Any, title: str, **options: Any) -> list[tuple[Any, ...]]:
    (statement,) = (statement for statement in statements(DASHBOARD) if statement.title == title)
    return ask(reader, statement, **options)[1]


def test_the_dashboard_has_what_grafana_asks_of_one() -> None:
    assert DASHBOARD["uid"] == "kernel-nightly-nights"
    assert DASHBOARD["title"]
    assert DASHBOARD["schemaVersion"] == 41  # of Grafana 12; newer versions bring it up to their own
    assert DASHBOARD["timezone"] == "utc"  # as the nights are counted
    assert "id" not in DASHBOARD, "the key in one Grafana's database"
    assert {"list"} == set(DASHBOARD["annotations"]) == set(DASHBOARD["templating"])
    assert set(DASHBOARD["time"]) == {"from", "to"}


def test_no_two_panels_have_the_same_id_title_or_place() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
    taken: set[tuple[int, int]] = set()
    for panel in PANELS:
        grid = panel["gridPos"]
        assert grid["x"] + grid["w"] <= 24
        cells = {
            (x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])
        }
        assert not taken & cells, panel["title"]
        taken |= cells


@BY_PANEL
def test_a_panel_has_a_query_a_unit_and_says_what_it_shows(panel: dict[str, Any]) -> None:
    assert VISUALISATIONS[panel["type"]]
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["description"].endswith(".")
    (target,) = panel["targets"]
    assert target["rawSql"].startswith("SELECT ")
    assert target["rawQuery"] is True
    assert target["format"] == VISUALISATIONS[panel["type"]]
    assert target["refId"] == "A"


def test_everything_asks_the_one_data_source_that_is_provisioned() -> None:
    source = {"type": SOURCE["type"], "uid": SOURCE["uid"]}
    asking = [*PANELS, *DASHBOARD["annotations"]["list"], *DASHBOARD["templating"]["list"]]
    asking += [target for panel in PANELS for target in panel["targets"]]
    assert asking
    assert all(one["datasource"] == source for one in asking)


def test_variables_that_are_used_are_there_and_in_an_order_that_they_can_be_asked_in() -> None:
    known: set[str] = set()
    for variable, statement in zip(DASHBOARD["templating"]["list"], statements(DASHBOARD), strict=False):
        assert set(re.findall(r"\$\{(\w+)", statement.sql)) <= known
        known.add(variable["name"])
    assert known == set(VARIABLES)
    for statement in statements(DASHBOARD):
        assert set(re.findall(r"\$\{(\w+)", statement.sql)) <= known
    assert all(panel.get("repeat", "device") in known for panel in PANELS)


def test_the_data_source_is_the_reader_and_holds_no_password() -> None:
    assert SOURCE["user"] == "nightly_reader"
    assert SOURCE["secureJsonData"] == {"password": "${NIGHTLY_READER_PASSWORD}"}
    assert "password" not in {key.lower() for key in (*SOURCE, *SOURCE["jsonData"])}


def test_compose_gives_grafana_every_variable_and_lets_nobody_else_in() -> None:
    (service,) = COMPOSE["services"].values()
    given = service["environment"]
    asked = set(re.findall(r"\$\{(\w+)\}", (FOLDER / "provisioning/datasources/results.yaml").read_text()))
    assert asked == {name for name in given if name.startswith("NIGHTLY_")}
    assert given["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"
    for name in ("NIGHTLY_READER_PASSWORD", "GF_SECURITY_ADMIN_PASSWORD"):
        assert ":?" in given[name], "no default: without it Grafana must not start"
    assert "ports" not in service  # of its own network; with the host's, the address above decides
    (provider,) = yaml.safe_load((FOLDER / "provisioning/dashboards/files.yaml").read_text())["providers"]
    mounts = dict(volume.split(":")[:2] for volume in service["volumes"])
    assert mounts["./dashboards"] == provider["options"]["path"]
    assert given["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == f"{mounts['./dashboards']}/nights.json"
    assert mounts["./provisioning"] == "/etc/grafana/provisioning"


@BY_STATEMENT
def test_a_query_is_over_the_views_alone(statement: Statement) -> None:
    views = {path.stem for path in VIEWS.glob("*.sql")}
    named = re.findall(r"\b(?:FROM|JOIN)\s+(?!unnest)(\w+)", statement.sql)
    assert named
    assert set(named) <= views


@BY_STATEMENT
def test_a_query_runs_as_the_reader_and_finds_something(statement: Statement, reader: Any) -> None:
    _, rows = ask(reader, statement, device=("GPU-1",) if statement.repeated else BOARDS)
    assert rows


@BY_PANEL
def test_what_a_query_gives_is_what_its_panel_draws(panel: dict[str, Any], reader: Any) -> None:
    statement = Statement(panel["title"], panel["targets"][0]["rawSql"])
    names, rows = ask(reader, statement)
    for rule in panel["fieldConfig"]["overrides"]:
        assert rule["matcher"]["id"] == "byName"
        assert rule["matcher"]["options"] in names
    if panel["type"] == "timeseries":
        assert names[0] == "time"
        assert [row[0] for row in rows] == sorted(row[0] for row in rows), "Grafana asks for rising times"
        assert all(isinstance(row[0], datetime) and row[0].tzinfo for row in rows)
        assert names[1] == "metric" or "repeat" in panel
        values = [value for row in rows for value in row[2 if names[1] == "metric" else 1 :]]
    elif panel["type"] == "barchart":
        assert names[0] == panel["options"]["xField"]
        assert all(isinstance(row[0], str) for row in rows)
        values = [value for row in rows for value in row[1:]]
    else:
        return
    assert values
    assert all(isinstance(value, int | float) for value in values)


@BY_STATEMENT
def test_a_query_keeps_to_the_chosen_board_and_range(statement: Statement, reader: Any) -> None:
    for changes in ({"device": ("GPU-9", "it's")}, {"since": "2026-12-30T00:00:00Z"}):
        _, rows = ask(reader, statement, **changes)
        if statement.title == "Open alerts":
            assert [row[1] for row in rows if row[1]] == ([] if "device" in changes else ["Test GPU"])
        elif statement.title.startswith("variable") and "device" in changes:
            assert rows, "the choice does not depend on what was chosen"
        else:
            assert rows == []


def test_known_answers(reader: Any) -> None:
    months = {row[0]: row[1:] for row in rows_of(reader, "Verdicts by month", device=("GPU-1",))}
    (panel,) = (panel for panel in PANELS if panel["title"] == "Verdicts by month")
    names = re.findall(r'AS "([^"]+)"', panel["targets"][0]["rawSql"])
    assert sorted(names) == sorted([*VERDICTS, "not judged"])
    march, april = (dict(zip(names, months[month], strict=True)) for month in ("2026-03", "2026-04"))
    assert (march["ok"], march["regression"], march["invalid_measurement"], march["inconclusive"]) == (9, 2, 2, 0)
    assert (april["inconclusive"], sum(april.values())) == (1, 1)
    assert rows_of(reader, "Failed gates") == [("meters_agree", 1), ("reference_load", 1)]
    assert rows_of(reader, "Invalid rounds by reason") == [("clock_dropped", 6), ("throttled", 2)]
    disagreeing = [
        (row[0], row[2]) for row in rows_of(reader, "Predictions that disagree", device=("GPU-1",)) if row[2]
    ]
    assert disagreeing == [(datetime(2026, 3, day, 2, tzinfo=UTC), 2) for day in (3, 8)]


def test_a_night_without_a_device_is_among_those_that_were_not_ok(database: Database) -> None:
    record = run_record(device=None, rounds=[], energy_trust="unverified")
    reason = Reason("no_device", "no GPU answered")
    record = replace(record, outcome=Outcome.INFRASTRUCTURE_FAILURE, reason=reason)
    load_run(database.writer, record, sha256_of(record))
    connection = database.reader.raw_connection()
    assert rows_of(connection, "Verdicts by month")[0][0] == "2026-11"
    assert [row[3:5] for row in rows_of(connection, "Nights that were not ok")] == [("not judged", "no_device")]
    connection.close()


def test_energy_that_may_not_be_compared_is_not_drawn(reader: Any) -> None:
    drawn = {row[0]: row[2] for row in rows_of(reader, "Energy by night", device=("GPU-1",))}
    assert 0.9 not in {round(mj, 2) for mj in drawn.values()}, "its meters did not agree"
    assert rows_of(reader, "Energy by night", device=("GPU-simulated",)) == [], "injected"
    spread = rows_of(reader, "Energy with the spread of its rounds", device=("GPU-1",))
    assert [(row[0], row[1]) for row in spread] == list(drawn.items())
    assert all(low <= middle <= high for _, middle, low, high in spread)


def test_what_was_tried_is_drawn_beside_the_nights_and_never_as_one(reader: Any) -> None:
    drawn = rows_of(reader, "Candidates beside nights", device=("GPU-1",))
    nights = [row for row in drawn if row[1].startswith("nights ")]
    assert [(row[0], row[2]) for row in nights] == [
        (row[0], row[2]) for row in rows_of(reader, "Energy by night", device=("GPU-1",))
    ]
    tried = [row for row in drawn if row not in nights]
    assert tried == [(datetime(2026, 3, 6, 12, tzinfo=UTC), "tile-64 Test GPU GPU-1", 0.6)]


def test_annotations_say_what_changed_one_for_each_run(reader: Any) -> None:
    notes = rows_of(reader, "Environment changes", device=("GPU-1",))
    changed = {(row[0].date().isoformat(), tag) for row in notes for tag in row[2].split(",")[1:]}
    assert ("2026-03-06", "driver") in changed
    assert ("2026-03-06", "power_limit_w") in changed
    assert len({row[0] for row in notes}) == len(notes)
    (sixth,) = (row for row in notes if row[0] == datetime(2026, 3, 6, 2, tzinfo=UTC))
    assert "driver: 570.1 became 580.2" in sixth[1].splitlines()


@pytest.mark.parametrize(
    "sql", ["SELECT $__interval", "SELECT ${device}", "SELECT $device", "SELECT $__timeGroup(a,1h)"]
)
def test_macros_that_are_not_known_here_are_refused(sql: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        as_sent(sql, SINCE, UNTIL, VARIABLES)


def test_a_quote_in_a_value_stays_in_the_value() -> None:
    assert as_sent("x IN (${device:sqlstring})", SINCE, UNTIL, {"device": ("it's", "b")}) == "x IN ('it''s', 'b')"
