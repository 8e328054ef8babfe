"""Questions of the cookbook: the form of a file, values by type, refusals that name what was expected."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_tasks.records import BadInput
from local.cookbook import FOLDER, Question, find_question, pairs, questions, read_question
from local.paths import ROOT

FILE = """\
-- Energy of a board
-- What it was,
-- night by night.
--
-- device (text): one board; empty: every one
\\if :{?device} \\else \\set device '' \\endif
-- workload (text): what was tested
\\if :{?workload} \\else \\set workload 'qda' \\endif
-- nights (integer): how many
\\if :{?nights} \\else \\set nights '14' \\endif
-- share (number): of what
\\if :{?share} \\else \\set share '0.5' \\endif
-- since (date): first night
\\if :{?since} \\else \\set since '-infinity' \\endif
-- figure (one of classic, aligned): way of measuring
\\if :{?figure} \\else \\set figure 'aligned' \\endif

-- A remark on the statement.
SELECT :'device', :'workload', :'nights'::integer % 7, :'share'::float8, :'since'::date, :'figure' LIKE 'a%';
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "energy.sql").write_text(FILE)
    return tmp_path


def test_a_file_is_read_with_its_parameters_and_its_statement(folder: Path) -> None:
    (question,) = questions(folder)
    assert (question.name, question.title) == ("energy", "Energy of a board")
    assert question.answers == "What it was, night by night."
    found = [(p.name, p.type, p.default, p.meaning) for p in question.parameters]
    assert found == [
        ("device", "text", "", "one board; empty: every one"),
        ("workload", "text", "qda", "what was tested"),
        ("nights", "integer", "14", "how many"),
        ("share", "number", "0.5", "of what"),
        ("since", "date", "-infinity", "first night"),
        ("figure", "one of classic, aligned", "aligned", "way of measuring"),
    ]
    assert question.bound == (
        "-- A remark on the statement.\nSELECT %(device)s, %(workload)s, %(nights)s::integer %% 7, %(share)s::float8, "
        "%(since)s::date, %(figure)s LIKE 'a%%'"
    )


def test_values_are_the_given_ones_by_type_and_defaults_otherwise(folder: Path) -> None:
    question = find_question("energy", folder)
    assert question.values({}) == {
        "device": "",
        "workload": "qda",
        "nights": "14",
        "share": "0.5",
        "since": "-infinity",
        "figure": "aligned",
    }
    given = {"device": "a'b; --", "nights": "+07", "share": "1e-3", "since": "20261130", "figure": "classic"}
    assert question.values(given) == {
        "device": "a'b; --",
        "workload": "qda",
        "nights": "7",
        "share": "0.001",
        "since": "2026-11-30",
        "figure": "classic",
    }


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("nights", "x", "an integer of 32 bits"),
        ("nights", "", "an integer of 32 bits"),
        ("nights", "1.0", "an integer of 32 bits"),
        ("nights", "2147483648", "an integer of 32 bits"),
        ("nights", "1; DROP TABLE run", "an integer of 32 bits"),
        ("share", "nan", "a finite number"),
        ("share", "inf", "a finite number"),
        ("share", "1_0", "a finite number"),
        ("since", "yesterday", "a date as 2026-11-30, -infinity or infinity"),
        ("since", "2026-02-30", "a date as 2026-11-30, -infinity or infinity"),
        ("figure", "interleaved", "one of classic, aligned"),
        ("figure", "", "one of classic, aligned"),
        ("workload", "", "text"),
        ("device", "a\0b", "text"),
        ("device", "\udc80", "text"),
    ],
)
def test_a_value_of_another_type_is_refused_with_name_expected_and_found(
    folder: Path, name: str, value: str, expected: str
) -> None:
    with pytest.raises(BadInput) as refused:
        find_question("energy", folder).values({name: value})
    assert refused.value.code == "bad_param"
    assert refused.value.message == f"param {name} of energy: expected {expected}, found {value!r}"


def test_a_param_that_the_question_does_not_have_is_refused_with_those_it_has(folder: Path) -> None:
    with pytest.raises(BadInput, match=r"param devise of energy: expected one of device, workload, .*, found devise"):
        find_question("energy", folder).values({"devise": "x"})


def test_an_unknown_question_is_refused_with_the_nearest_names(folder: Path) -> None:
    (folder / "time.sql").write_text("-- T\n-- A.\nSELECT 1\n")
    for name, hint in (("enrgy", "nearest: energy"), ("zzzzzz", "`./nightly sql --list` names them")):
        with pytest.raises(BadInput) as refused:
            find_question(name, folder)
        assert refused.value.code == "unknown_question"
        assert refused.value.message == f"name: expected a question of sql/queries, found {name!r}; {hint}"


@pytest.mark.parametrize("name", ["../energy", "energy.sql", "/etc/passwd", "", "energy\0"])
def test_a_name_is_no_path(folder: Path, name: str) -> None:
    (folder / "queries").mkdir()
    with pytest.raises(BadInput, match="expected a question"):
        find_question(name, folder / "queries")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("-- Energy of a board\n", "", "expected a title and a sentence"),
        ("-- What it was,\n-- night by night.\n", "", "expected a title and a sentence"),
        ("\\set nights '14'", "\\set night '14'", "expected two lines for every parameter"),
        ("-- nights (integer): how many\n", "", "expected two lines for every parameter"),
        ("(integer)", "(int)", "expected text, integer, number, date or one of ..., found int"),
        ("'14'", "'fourteen'", "param nights of energy: expected an integer"),
        ("'aligned'", "'audited'", "param figure of energy: expected one of classic, aligned"),
        (":'nights'::integer", "7", "expected to use"),
        (":'device'", ":'board'", "expected to use"),
    ],
)
def test_a_file_of_another_form_is_refused(folder: Path, before: str, after: str, message: str) -> None:
    path = folder / "energy.sql"
    assert before in FILE
    path.write_text(FILE.replace(before, after, 1))
    with pytest.raises(BadInput, match=message):
        read_question(path)


def test_params_are_pairs() -> None:
    assert pairs(["a=1", "b=", "c=x=y"]) == {"a": "1", "b": "", "c": "x=y"}
    for words in (["a"], ["=1"], ["a=1", "a=2"]):
        with pytest.raises(BadInput) as refused:
            pairs(words)
        assert refused.value.code == "bad_param"


@given(st.integers(-(2**31), 2**31 - 1), st.floats(allow_nan=False, allow_infinity=False), st.dates())
def test_every_integer_number_and_date_is_taken_and_means_the_same(whole: int, share: float, day: date) -> None:
    values = _energy().values({"nights": str(whole), "share": repr(share), "since": day.isoformat()})
    assert (int(values["nights"]), float(values["share"]), date.fromisoformat(values["since"])) == (whole, share, day)


@given(st.text())
def test_whatever_is_taken_as_an_integer_or_a_date_cannot_end_its_quotes(text: str) -> None:
    for name in ("nights", "since", "share", "figure"):
        try:
            value = _energy().values({name: text})[name]
        except BadInput:
            continue
        assert value.isascii()
        assert not set(value) & set("'\\\";\n")


def _energy() -> Question:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "energy.sql"
        path.write_text(FILE)
        return read_question(path)


def _nightly(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ) | {"NIGHTLY_HOME": str(home)}
    environment.pop("NIGHTLY_ENVIRONMENTS", None)
    system_python = Path(sys.base_prefix) / "bin" / "python3"
    command = [str(system_python), "-I", str(ROOT / "nightly"), "sql", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_list_and_show_need_no_environment_and_make_nothing(tmp_path: Path) -> None:
    listed = _nightly("--list", home=tmp_path / "home")
    assert listed.returncode == 0, listed.stderr
    for question in questions():
        assert f"{question.name}\n    {question.title}\n" in listed.stdout
        for parameter in question.parameters:
            assert f"  {parameter.name}={parameter.default or repr(parameter.default)}" in listed.stdout
    shown = _nightly("--show", "--name", "energy_trend", home=tmp_path / "home")
    assert (shown.returncode, shown.stdout) == (0, (FOLDER / "energy_trend.sql").read_text())
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--name", "energy_trnd"],
            "sql: name: expected a question of sql/queries, found 'energy_trnd'; nearest: energy",
        ),
        (["--name", "energy_trend", "--param", "since=soon"], "param since of energy_trend: expected a date"),
        (["--name", "energy_trend", "--param", "x=1"], "param x of energy_trend: expected one of workload"),
        (["--name", "energy_trend", "--param", "since"], "param: expected KEY=VALUE, found 'since'"),
        (["--name", "energy_trend", "SELECT 1"], "expected one of a statement, --name and --list alone"),
        (["--list", "--name", "energy_trend"], "expected one of a statement, --name and --list alone"),
        (["--list", "--json"], "sql --json: expected a query to be asked, found none"),
        (["--show", "--name", "energy_trend", "--csv"], "sql --csv: expected a query to be asked, found none"),
        (["--show"], "sql --show: expected --name NAME"),
        (["--param", "a=1", "SELECT 1"], "sql --param: expected with --name NAME"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_made(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    result = _nightly(*arguments, home=tmp_path / "home")
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "home").exists()
