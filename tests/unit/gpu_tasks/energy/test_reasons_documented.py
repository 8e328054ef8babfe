"""Every reason code of the energy code stands in docs/energy.md, and none stands there that no code gives.

The codes are read from the source: the first arguments of ``Reason(...)`` and of every error, and NVML's table.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from gpu_tasks.energy.nvml.errors import CODES

ROOT = Path(__file__).resolve().parents[4]
SOURCES = ROOT / "gpu_tasks"
PROGRAMS = (
    "measure",
    "telemetry",
    "summarise",
    "probe",
    "plot",
    "baseline",
    "rounds",
    "interleaving",
    "parts",
    "judging",
)
PAGE = ROOT / "docs" / "energy.md"
SECTION = "Reason codes"

GIVERS = re.compile(r"Reason|TaskError|BadInput|InvalidMeasurement|\w+(Failure|Failed|Mismatch)|__init__")
CODE = re.compile(r"[a-z][a-z0-9_]*")
PASSED_ON = {("energy/sampler.py", "code"), ("energy/nvml/errors.py", "code")}
"""Names that hold a code which some other place gave: the sampler's child, and NVML's table (``nvml_codes``)."""


def energy_files() -> list[Path]:
    programs = (SOURCES / "programs" / f"{name}.py" for name in PROGRAMS)
    return [*sorted(SOURCES.glob("energy/**/*.py")), SOURCES / "records" / "effects.py", *programs]


def nvml_codes() -> set[str]:
    return {error("call").code for error in CODES.values()}


def codes_in(tree: ast.Module, name: str) -> Iterator[str]:
    """The codes that a module gives; an argument that cannot be understood is an error of this test."""
    for function in _functions(tree):
        for call in _own_calls(function):
            argument = _code_argument(call)
            if argument is not None:
                yield from _texts(argument, function, name)


def _functions(tree: ast.Module) -> Iterator[ast.AST]:
    yield tree
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _own_calls(function: ast.AST) -> Iterator[ast.Call]:
    """Calls of a function or module that are in no function within it."""
    for node in ast.iter_child_nodes(function):
        if isinstance(node, ast.FunctionDef):
            continue
        if isinstance(node, ast.Call) and GIVERS.fullmatch(_name(node.func)):
            yield node
        yield from _own_calls(node)


def _name(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def _code_argument(call: ast.Call) -> ast.expr | None:
    """The argument that is a code: the first one, or the one after ``self`` and before a message."""
    arguments = call.args
    if arguments and isinstance(arguments[0], ast.Name) and arguments[0].id == "self":
        arguments = arguments[1:]
    if len(arguments) != 2:  # no code and message: an error that has a code of its own
        return None
    return arguments[0]


def _texts(argument: ast.expr, function: ast.AST, name: str) -> Iterator[str]:
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield from [argument.value] if CODE.fullmatch(argument.value) else []
    elif isinstance(argument, ast.IfExp):
        yield from chain(_texts(argument.body, function, name), _texts(argument.orelse, function, name))
    elif isinstance(argument, ast.BoolOp):
        yield from chain.from_iterable(_texts(value, function, name) for value in argument.values)
    elif isinstance(argument, ast.Attribute) and argument.attr == "code":
        pass  # of a reason or an error that has it from somewhere else
    elif isinstance(argument, ast.Name) and (name, argument.id) in PASSED_ON:
        pass
    elif isinstance(argument, ast.Name) and (values := list(_values(argument.id, function))):
        yield from chain.from_iterable(_texts(value, function, name) for value in values)
    else:
        pytest.fail(f"{name}:{argument.lineno}: which codes can {ast.unparse(argument)!r} be?")


def _values(name: str, function: ast.AST) -> Iterator[ast.expr]:
    """What a name is given in a function: by assignment, or by a loop over tuples that are written out."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            yield from (node.value for target in node.targets if isinstance(target, ast.Name) and target.id == name)
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Tuple) and isinstance(node.iter, ast.Tuple):
            names = [getattr(part, "id", None) for part in node.target.elts]
            if name in names:
                rows = (row for row in node.iter.elts if isinstance(row, ast.Tuple))
                yield from (row.elts[names.index(name)] for row in rows)


def given_codes(files: list[Path]) -> set[str]:
    found = set()
    for path in files:
        found |= set(codes_in(ast.parse(path.read_text(encoding="utf-8")), str(path.relative_to(SOURCES))))
    return found


def documented_rows() -> list[list[str]]:
    """Cells of the rows of every table in the section, without head and rule."""
    text = PAGE.read_text(encoding="utf-8")
    section = text.split(f"\n## {SECTION}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows if row.startswith("| `")]


def documented_codes() -> list[str]:
    return [code for row in documented_rows() for code in re.findall(r"`([^`]+)`", row[0])]


def test_every_code_of_the_energy_code_is_documented() -> None:
    missing = (given_codes(energy_files()) | nvml_codes()) - set(documented_codes())
    assert not missing


def test_every_documented_code_exists() -> None:
    unknown = set(documented_codes()) - given_everywhere() - nvml_codes()
    assert not unknown


def given_everywhere() -> set[str]:
    """Constants of all programs in the places of codes; what is computed there is not of interest."""
    found: set[str] = set()
    for path in SOURCES.glob("**/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and GIVERS.fullmatch(_name(node.func)):
                argument = _code_argument(node)
                found |= {str(argument.value)} if isinstance(argument, ast.Constant) else set()
    return found | given_codes(energy_files())


def test_each_is_documented_once_with_a_meaning_and_an_advice() -> None:
    codes = documented_codes()
    assert sorted(codes) == sorted(set(codes))
    for row in documented_rows():
        assert len(row) == 4, row
        assert all(row), row


@pytest.mark.parametrize(
    ("source", "codes"),
    [
        ('Reason("plain", "message")', {"plain"}),
        ('raise InvalidMeasurement("raised", f"x {1}")', {"raised"}),
        ('def f(x):\n    code = "one" if x else "two"\n    return Reason(code, "m")', {"one", "two"}),
        ('def f():\n    for code, field in (("a", 1), ("b", 2)):\n        Reason(code, "m")', {"a", "b"}),
        ('class E(TaskError):\n    def __init__(self):\n        super().__init__("own", "m")', {"own"}),
        ('class E(T):\n    def __init__(self):\n        TaskError.__init__(self, "hung", "m")', {"hung"}),
        ('def f(e):\n    return Reason(e.code or "other", e.message)', {"other"}),
    ],
)
def test_codes_are_found_however_they_are_written(source: str, codes: set[str]) -> None:
    assert set(codes_in(ast.parse(source), "x.py")) == codes


def test_a_code_that_nobody_can_read_is_an_error() -> None:
    with pytest.raises(pytest.fail.Exception, match="which codes can 'given'"):
        list(codes_in(ast.parse('def f(given):\n    Reason(given, "m")'), "x.py"))
