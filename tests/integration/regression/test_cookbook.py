"""Questions of the cookbook in every form: psql as they are, bound by a driver, bound by the server, as the reader."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from typing import Any

import psycopg2
import pytest

from local import query
from local.cookbook import Question, find_question, questions
from local.paths import ROOT
from tests.integration.regression.cookbook_database import cookbook_database
from tests.support.cookbook_document import DOCUMENT, MARKER, made

__all__ = ["cookbook_database"]

PSQL = ["-X", "--csv", "-v", "ON_ERROR_STOP=1"]
BY_NAME = pytest.mark.parametrize("question", questions(), ids=lambda question: question.name)


def as_csv(printed: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(printed)))


@BY_NAME
def test_psql_alone_fills_in_the_defaults_and_says_what_nightly_says(
    question: Question, cookbook_database: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert query.psql(cookbook_database, [*PSQL, "-f", str(question.path)]) == 0
    by_psql = as_csv(capfd.readouterr().out)
    assert query.ask(cookbook_database, question, question.values({}), "csv") == 0
    assert as_csv(capfd.readouterr().out) == by_psql
    assert query.ask(cookbook_database, question, question.values({}), "json") == 0
    rows = json.loads(capfd.readouterr().out)
    assert len(rows) == len(by_psql) - 1
    assert all(list(row) == by_psql[0] for row in rows)


@BY_NAME
def test_a_server_that_binds_the_values_itself_gives_the_same_rows(question: Question, cookbook_database: str) -> None:
    names = [parameter.name for parameter in question.parameters]
    numbered = re.sub(r":'(\w+)'", lambda place: f"${names.index(place[1]) + 1}", question.sql)
    values = question.values({})
    connection = psycopg2.connect(cookbook_database)
    with connection.cursor() as cursor:
        cursor.execute("PREPARE asked AS " + numbered.replace("%", "%%"), ())
        arguments = ", ".join(["%s"] * len(names))
        cursor.execute(f"EXECUTE asked({arguments})" if names else "EXECUTE asked", [values[name] for name in names])
        by_server = cursor.fetchall()
        cursor.execute(question.bound, values)
        assert _without_moments(cursor.fetchall()) == _without_moments(by_server)
    connection.close()


def _without_moments(rows: list[tuple[Any, ...]]) -> list[str]:
    return [repr(row) for row in rows]


@pytest.mark.parametrize("form", ["table", "csv", "json"])
@pytest.mark.parametrize(
    "device", ["x' OR 'a' = 'a", "'; SELECT pg_sleep(60); --", "\\' OR true --", ":device", "%(x)s"]
)
def test_a_value_is_never_part_of_the_statement(
    form: str, device: str, cookbook_database: str, capfd: pytest.CaptureFixture[str]
) -> None:
    question = find_question("energy_trend")
    assert query.ask(cookbook_database, question, question.values({"device": device}), form) == 0
    printed = capfd.readouterr().out
    if form == "json":
        assert json.loads(printed) == []
    else:
        assert "GPU" not in printed
        assert printed.startswith("night") or "(0 rows)" in printed


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_what_postgresql_refuses_is_bad_input(
    form: str, cookbook_database: str, capfd: pytest.CaptureFixture[str]
) -> None:
    question = find_question("slowest_nights")
    assert query.ask(cookbook_database, question, question.values({"top": "-1"}), form) == 2
    assert "LIMIT must not be negative" in capfd.readouterr().err


def test_times_that_python_has_no_form_for_are_given_as_postgresql_writes_them(
    cookbook_database: str, capfd: pytest.CaptureFixture[str]
) -> None:
    statement = """
        SELECT date '20000-01-02' AS late, '-infinity'::timestamptz AS never, interval '200000 years' AS long,
               'infinity'::date AS ever, '0044-03-15 BC'::timestamp AS ides, NULL::date AS nothing,
               timestamptz '2026-11-30 02:00:00+00' AS usual, interval '90 minutes' AS short
    """
    assert query.run(cookbook_database, statement, "json") == 0
    assert json.loads(capfd.readouterr().out) == [
        {
            "late": "20000-01-02",
            "never": "-infinity",
            "long": "73000000 days, 0:00:00",
            "ever": "infinity",
            "ides": "0044-03-15 00:00:00 BC",
            "nothing": None,
            "usual": "2026-11-30 02:00:00+00:00",
            "short": "1:30:00",
        }
    ]


def test_a_database_that_is_away_is_an_infrastructure_failure(capfd: pytest.CaptureFixture[str]) -> None:
    question = find_question("storage_by_table")
    assert query.ask("postgresql://nobody@127.0.0.1:1/none", question, {}, "table") == 5
    with pytest.raises(query.LauncherError, match="does not answer"):
        query.ask("postgresql://nobody@127.0.0.1:1/none", question, {}, "json")


def test_the_password_is_not_among_the_arguments_that_others_can_see(
    cookbook_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    real = subprocess.run

    def run(arguments: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        seen.append(arguments)
        return real(arguments, **options)

    monkeypatch.setattr(subprocess, "run", run)
    assert query.run(cookbook_database, "SELECT 1", "csv") == 0
    assert len(seen) == 1
    assert "password" not in " ".join(seen[0])


@BY_NAME
def test_a_question_reads_and_nothing_else(question: Question, cookbook_database: str) -> None:
    """The reader is refused what writes; a question must also leave nothing behind in a session of somebody else."""
    connection = psycopg2.connect(cookbook_database)
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user, current_setting('transaction_read_only')")
        assert cursor.fetchone() == ("nightly_reader", "on")
        cursor.execute(question.bound, question.values({}))
    connection.close()
    words = set(re.findall(r"\w+", re.sub(r"--.*|'[^']*'", "", question.sql.lower())))
    assert not words & {"insert", "update", "delete", "set_config", "into", "nextval", "create", "pg_sleep"}


@BY_NAME
def test_the_rows_of_a_question_have_an_order(question: Question) -> None:
    assert re.search(r"\nORDER BY [^()]+(\nLIMIT [^\n]+)?$", question.sql)


def test_the_document_lists_every_question_as_its_file_has_it() -> None:
    _, marker, listed = DOCUMENT.read_text(encoding="utf-8").partition(MARKER)
    assert marker
    assert listed == made(), "run python -m tests.support.cookbook_document"
    headings = re.findall(r"^### (\w+): (.+)$", listed, re.MULTILINE)
    assert sorted(headings) == [(question.name, question.title) for question in questions()]


def test_every_code_of_a_refusal_is_documented() -> None:
    raised = set(re.findall(r'BadInput\(\s*"(\w+)"', (ROOT / "local" / "cookbook.py").read_text(encoding="utf-8")))
    documented = set(
        re.findall(r"^\| `(\w+)` \|", DOCUMENT.read_text(encoding="utf-8").partition("The type of")[0], re.MULTILINE)
    )
    assert raised == documented != set()


def test_what_the_document_says_of_notebooks_and_psql_works(
    cookbook_database: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    (notebook,) = re.findall(r"```python\n(.*?)```", document, re.DOTALL)
    names: dict[str, Any] = {"re": re}
    monkeypatch.chdir(ROOT)
    exec(re.search(r"text = .*?\n(?=with)", notebook, re.DOTALL)[0], names)  # type: ignore[index] # noqa: S102
    connection = psycopg2.connect(cookbook_database)
    with connection.cursor() as cursor:
        cursor.execute(names["statement"], names["values"])
        by_driver = [str(row[0]) for row in cursor]
    connection.close()
    (line,) = re.findall(r"^psql (-v .*) \"postgresql", document, re.MULTILINE)
    assert query.psql(cookbook_database, [*PSQL, *line.split()]) == 0
    nights = [row[0] for row in as_csv(capfd.readouterr().out)]
    assert nights[1:] == by_driver
    assert len(by_driver) == 13
