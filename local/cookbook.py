"""The questions in ``sql/queries``: one file each, for psql as it is and for ``./nightly sql --name``.

A file begins with its title and a sentence on what it answers. Then, below an empty comment line, come two lines for
every parameter, its meaning with the type, and its default, which psql fills in where the variable is not set::

    -- Energy of a board by night
    -- How the energy of a replay moved from night to night.
    --
    -- device (text): one board, by uuid or model name; empty: every one
    \\if :{?device} \\else \\set device '' \\endif

The statement has ``:'device'`` where the value belongs, with a cast where it is no text. Psql puts a quoted literal
there; for psycopg2 it becomes a bound parameter. Standard library only: listing needs no environment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

from gpu_tasks.records import BadInput
from local.paths import ROOT

FOLDER = ROOT / "sql" / "queries"
CHOICE = "one of "
BOUNDLESS = ("-infinity", "infinity")  # dates before and after every other, as PostgreSQL writes them
INTEGERS = range(-(2**31), 2**31)

_HEADER = re.compile(
    r"-- (?P<title>.+[\w)])\n(?P<answers>(?:-- .+\n)+)(?P<declared>--\n(?:(?:-- |\\).+\n)+)?(?P<sql>(?s:.)+)"
)
_PARAMETER = re.compile(
    r"-- (?P<name>[a-z][a-z0-9_]*) \((?P<type>[^()\n]+)\): (?P<meaning>.+)\n"
    r"\\if :\{\?(?P=name)\} \\else \\set (?P=name) '(?P<default>[^'\\\n]*)' \\endif\n"
)
_PLACE = re.compile(r":'(\w+)'")


@dataclass(frozen=True)
class Parameter:
    """One value that a question takes: ``type`` is text, integer, number, date or ``one of`` some words.

    Where the default is empty, empty means that nothing is asked for; elsewhere it is no value.
    """

    name: str
    type: str
    default: str
    meaning: str

    def cast(self, text: str) -> str:
        """``text`` in the form that PostgreSQL reads for the type; raises ``ValueError`` when it has none."""
        if not text:
            if self.default:
                raise ValueError
            return text
        if self.type.startswith(CHOICE):
            if text not in self.type.removeprefix(CHOICE).split(", "):
                raise ValueError
            return text
        return _CASTS[self.type](text)


@dataclass(frozen=True)
class Question:
    """One file: ``sql`` is its statement for psql, ``bound`` the same for psycopg2, both without a final semicolon."""

    name: str
    title: str
    answers: str
    parameters: tuple[Parameter, ...]
    sql: str

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.sql"

    @cached_property
    def places(self) -> set[str]:
        """Names that the statement uses."""
        return set(_PLACE.findall(self.sql))

    @cached_property
    def bound(self) -> str:
        return _PLACE.sub(r"%(\1)s", self.sql.replace("%", "%%"))

    def values(self, given: Mapping[str, str]) -> dict[str, str]:
        """A value for every parameter: the given ones checked by type, defaults for the others.

        Raises ``BadInput`` (``bad_param``) naming the parameter, what was expected and what was found.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in given:
            if name not in known:
                expected = f"one of {', '.join(known)}" if known else "no param"
                raise BadInput("bad_param", f"param {name} of {self.name}: expected {expected}, found {name}")
        return {name: _checked(self.name, parameter, given.get(name)) for name, parameter in known.items()}


def questions(folder: Path = FOLDER) -> list[Question]:
    """All of them by name."""
    return [read_question(path) for path in sorted(folder.glob("*.sql"))]


def find_question(name: str, folder: Path = FOLDER) -> Question:
    """The one of this name; raises ``BadInput`` (``unknown_question``) naming the nearest."""
    names = [path.stem for path in sorted(folder.glob("*.sql"))]
    if name not in names:
        nearest = get_close_matches(name, names, n=3, cutoff=0.4)
        hint = f"nearest: {', '.join(nearest)}" if nearest else "`./nightly sql --list` names them"
        raise BadInput("unknown_question", f"name: expected a question of sql/queries, found {name!r}; {hint}")
    return read_question(folder / f"{name}.sql")


def read_question(path: Path) -> Question:
    """Parse one file; raises ``BadInput`` (``bad_question``) when it does not have the form described above."""
    header = _HEADER.fullmatch(path.read_text(encoding="utf-8"))
    if header is None:
        raise BadInput("bad_question", f"{path.name}: expected a title and a sentence in comments, found none")
    answers = " ".join(line.removeprefix("-- ") for line in header["answers"].splitlines())
    declared = (header["declared"] or "").removeprefix("--\n")
    parameters = tuple(Parameter(**found.groupdict()) for found in _PARAMETER.finditer(declared))
    statement = header["sql"].strip().removesuffix(";")
    question = Question(path.stem, header["title"], answers, parameters, statement)
    _check(question, left=_PARAMETER.sub("", declared).strip())
    return question


def pairs(words: Sequence[str]) -> dict[str, str]:
    """``KEY=VALUE`` words by key; raises ``BadInput`` (``bad_param``)."""
    found: dict[str, str] = {}
    for word in words:
        name, separator, value = word.partition("=")
        if not separator or not name:
            raise BadInput("bad_param", f"param: expected KEY=VALUE, found {word!r}")
        if name in found:
            raise BadInput("bad_param", f"param {name}: expected once, found twice")
        found[name] = value
    return found


def _check(question: Question, left: str) -> None:
    name = f"{question.name}.sql"
    if left:
        raise BadInput(
            "bad_question", f"{name}: expected two lines for every parameter, found {left.splitlines()[0]!r}"
        )
    declared = {parameter.name for parameter in question.parameters}
    if len(declared) < len(question.parameters) or declared != question.places:
        found = ", ".join(sorted(question.places)) or "none"
        raise BadInput(
            "bad_question", f"{name}: expected to use {', '.join(sorted(declared)) or 'none'}, found {found}"
        )
    for parameter in question.parameters:
        if parameter.type not in _CASTS and not parameter.type.startswith(CHOICE):
            expected = f"{', '.join(_CASTS)} or {CHOICE}..."
            raise BadInput("bad_question", f"{name}, {parameter.name}: expected {expected}, found {parameter.type}")
        _checked(question.name, parameter, parameter.default)


def _checked(question: str, parameter: Parameter, given: str | None) -> str:
    text = parameter.default if given is None else given
    try:
        if "\0" in text:
            raise ValueError
        text.encode()  # what the command line could not decode has no form in UTF-8
        return parameter.cast(text)
    except ValueError:
        where = f"param {parameter.name} of {question}"
        expected = _WORDS.get(parameter.type, parameter.type)
        raise BadInput("bad_param", f"{where}: expected {expected}, found {text!r}") from None


def _integer(text: str) -> str:
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text) or int(text) not in INTEGERS:
        raise ValueError
    return str(int(text))


def _number(text: str) -> str:
    value = float(text)
    if not math.isfinite(value) or "_" in text:
        raise ValueError
    return repr(value)


def _date(text: str) -> str:
    return text if text in BOUNDLESS else date.fromisoformat(text).isoformat()


_CASTS: dict[str, Callable[[str], str]] = {"text": str, "integer": _integer, "number": _number, "date": _date}

_WORDS = {
    "integer": "an integer of 32 bits",
    "number": "a finite number",
    "date": "a date as 2026-11-30, -infinity or infinity",
}
