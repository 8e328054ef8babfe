"""The table of faults of other trackers in docs/detection.md: every one of them is named by a test where it says so."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
ROW = re.compile(r"\| (?P<where>[^|]+?) \| (?P<there>[^|]+) \| (?P<here>[^|]+) \| (?P<tests>(`test_\w+\.py`(, )?)+) \|")
FILES = {path.name: path for part in ("*/regression", "*/dags") for path in ROOT.glob(f"tests/{part}/test_*.py")}


def scenarios() -> Iterator[tuple[str, str, str]]:
    """Project, number and test file of each row, each by itself: "orion 263, 269" are two."""
    for row in ROW.finditer((ROOT / "docs" / "detection.md").read_text(encoding="utf-8")):
        files, project = re.findall(r"test_\w+\.py", row["tests"]), ""
        for word in row["where"].split(", "):
            project, number = word.rsplit(" ", 1) if " " in word else (project, word)
            for file in files:
                yield project, number, file


def named(path: Path) -> str:
    """What the docstrings of a file's tests say."""
    functions = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef))
    return "\n".join(ast.get_docstring(node) or "" for node in functions if node.name.startswith("test_"))


def test_the_table_is_there() -> None:
    assert len(set(scenarios())) > 60
    assert {("orion", "207"), ("conbench", "225"), ("asv", "932")} <= {found[:2] for found in scenarios()}


@pytest.mark.parametrize("project", sorted({project for project, _, _ in scenarios()}))
def test_every_fault_is_named_by_a_test(project: str) -> None:
    """A row of two numbers needs each of them in one of its files, and each file one of them."""
    rows = [(number, file) for name, number, file in scenarios() if name == project]
    said = {file: named(FILES[file]) for _, file in rows}
    mentions = {(n, f) for n, f in rows if re.search(rf"{re.escape(project)}\b[^.:;]*\b{n}\b", said[f], re.I)}
    assert {n for n, _ in mentions} == {n for n, _ in rows}
    assert {f for _, f in mentions} == {f for _, f in rows}
