"""Every question of the cookbook gives the known answer of a small history, as the reader, in any time zone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import psycopg2
import pytest
from psycopg2.extensions import connection as Connection

from gpu_tasks.sources import ROOT
from local.cookbook import FOLDER, find_question, questions
from regression.detectors import CheckVerdict, Verdict
from regression.results import tables
from regression.results.baselines import ensure_first_baselines
from regression.results.checks import store_check
from regression.results.loading import load_run
from tests.integration.regression.cookbook_answers import NIGHTS, PREDICTIONS, Answer
from tests.integration.regression.cookbook_candidate_answers import CANDIDATES
from tests.integration.regression.cookbook_database import cookbook_database
from tests.integration.regression.cookbook_energy_answers import COMPARISONS, ROUNDS, TRENDS
from tests.integration.regression.cookbook_learner import LEARNER
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import SIMULATED_GPU, energy_run
from tests.integration.regression.example_records import digest

__all__ = ["cookbook_database"]

ANSWERS = [*NIGHTS, *PREDICTIONS, *TRENDS, *COMPARISONS, *CANDIDATES, *ROUNDS, *LEARNER]
MEASURED_OTHERWISE = {"storage_by_table"}
"""Its answer depends on the server: tested by itself."""

NUMERIC = 1700
"""Type that clients read as text or as a decimal: no column of a question has it."""


@pytest.fixture
def reader(cookbook_database: str) -> Iterator[Connection]:
    """A session of the reader, half a day away from UTC."""
    connection = psycopg2.connect(cookbook_database)
    with connection.cursor() as cursor:
        cursor.execute("SET TIME ZONE 'Pacific/Auckland'")
    yield connection
    connection.close()


def ask(reader: Connection, name: str, params: dict[str, str]) -> list[dict[str, Any]]:
    question = find_question(name)
    with reader.cursor() as cursor:
        cursor.execute(question.bound, question.values(params))
        assert cursor.description
        assert [column.name for column in cursor.description if column.type_code == NUMERIC] == []
        names = [column.name for column in cursor.description]
        assert len(set(names)) == len(names)
        return [dict(zip(names, row, strict=True)) for row in cursor]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: f"{answer.question}-{answer.params}")
def test_a_question_gives_its_known_answer(reader: Connection, answer: Answer) -> None:
    found = ask(reader, answer.question, answer.params)
    assert [tuple(_plain(row[name]) for name in answer.columns.split()) for row in found] == answer.rows


def test_every_question_has_a_known_answer_that_is_not_empty() -> None:
    answered = {answer.question for answer in ANSWERS if answer.rows}
    assert answered == {question.name for question in questions()} - MEASURED_OTHERWISE
    assert len(answered) >= 24
    assert {path.suffix for path in FOLDER.iterdir()} == {".sql"}


def test_storage_by_table_names_every_table_and_adds_up(reader: Connection) -> None:
    found = ask(reader, "storage_by_table", {})
    assert {row["table_name"] for row in found} == {*tables.metadata.tables, "alembic_version"}
    assert sum(row["percent"] for row in found) == pytest.approx(100)
    assert all(row["bytes"] >= row["index_bytes"] > 0 for row in found)


def test_trials_of_the_original_records_have_their_figure(database: Database) -> None:
    """Computed again from their counters; nothing else is known of them: their windows were not kept."""
    ensure_first_baselines(database.writer, ROOT / "gpu_tasks" / "baselines")
    question = find_question("learner_trials")
    with database.reader.connect() as connection:
        values = question.values({"until": "2026-09-14"})
        rows = connection.exec_driver_sql(question.bound, values).mappings().all()
    figures = sorted((round(row["trial_mj"], 3), row["trial_low_mj"], row["aligned_mj"]) for row in rows)
    expected = (981.056, 1002.575, 1030.949, 1071.626, 1096.729, 1176.045)
    assert figures == [(figure, None, None) for figure in expected]


@pytest.mark.parametrize(
    ("verdict", "exit_code", "energy", "noticed"),
    [
        ("bad_input", 2, None, None),  # what was asked for is none: nothing was shown
        (None, None, None, None),
        ("ok", 0, None, False),
        ("ok", 0, Verdict.IMPROVED, True),
        ("infrastructure_failure", 5, None, True),  # a lost GPU
    ],
)
def test_only_what_was_shown_can_be_noticed(
    database: Database, verdict: str | None, exit_code: int | None, energy: Verdict | None, noticed: bool | None
) -> None:
    record = energy_run("injected", device=SIMULATED_GPU, inject="energy-10%", seed=1)
    load_run(database.writer, record, digest("injected"))
    with database.admin.begin() as connection:
        if energy:
            found = CheckVerdict(
                "energy", energy, "adjusted_energy", "mJ", "better", "better by 10 %", direction="lower"
            )
            store_check(connection, record.request.run_id, found, None, 0)
        connection.execute(tables.run.update().values(verdict=verdict, exit_code=exit_code))
    with database.reader.connect() as connection:
        question = find_question("injected_runs")
        rows = connection.exec_driver_sql(question.bound, question.values({})).mappings().all()
    assert [row["noticed"] for row in rows] == [noticed]


def test_one_workload_is_never_mixed_with_another(reader: Connection) -> None:
    """Of a workload that was never run, no question that asks for one says anything."""
    for question in questions():
        if any(parameter.name == "workload" for parameter in question.parameters):
            assert ask(reader, question.name, {"workload": "none"}) == [], question.name


def test_one_board_is_never_mixed_with_another(reader: Connection) -> None:
    for question in questions():
        if any(parameter.name == "device" for parameter in question.parameters):
            assert ask(reader, question.name, {"device": "GPU-3"}) == [], question.name


DATED = [question.name for question in questions() if any(p.name == "since" for p in question.parameters)]


@pytest.mark.parametrize("name", DATED)
@pytest.mark.parametrize("beyond", [{"since": "9999-01-01"}, {"until": "2000-01-01"}], ids=["since", "until"])
def test_nothing_is_said_of_nights_that_were_not_asked_for(
    reader: Connection, name: str, beyond: dict[str, str]
) -> None:
    assert ask(reader, name, beyond) == []


@pytest.mark.parametrize("name", DATED)
def test_both_ends_are_nights_in_utc_and_are_included(reader: Connection, name: str) -> None:
    """Whoever asks for one night gets that one, though in Auckland it has another date."""
    for night in ("2026-03-01", "2026-03-02", "2026-03-06"):
        for row in ask(reader, name, {"since": night, "until": night}):
            assert str(row.get("night", night)) == night


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, date):
        return str(value)
    if isinstance(value, float):
        return round(value, 6) + 0.0  # no negative zero
    if isinstance(value, str):
        return HASHES.get(value, value)
    return value


def _sources(**files: str) -> str:
    fields = {
        "sources_sha256": digest("pins"),
        "sources": {f"{name}.py": digest(content) for name, content in files.items()},
    }
    return hashlib.sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


HASHES = {digest(word): f"sha256 of {word}" for word in ("a", "b", "changed")} | {
    _sources(a="a"): "sources of a",
    _sources(a="changed", b="b"): "sources of a and b",
}
