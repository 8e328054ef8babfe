"""Every reason code of the checks of what a task takes and leaves is in the tables of docs/operators.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from regression.detectors import memory, qualification, repeatability

ROOT = Path(__file__).resolve().parents[3]
SECTIONS = {qualification: "Qualification", memory: "MemoryDrift", repeatability: "Repeatability"}
WORD = re.compile(r"[a-z]+(_[a-z]+)*")


def codes(path: Path) -> Iterator[str]:
    """Words given as the code of a finding or problem, returned beside a text, or assigned to ``code``."""
    for node in ast.walk(ast.parse(path.read_text())):
        found: list[ast.expr] = []
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Found", "Problem"):
            found = node.args[1:2]
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            found = node.value.elts[:1]
        elif isinstance(node, ast.Assign) and "code" in ast.unparse(node.targets[0]):
            found = [node.value]
        for part in found:
            words = (
                one.value for one in ast.walk(part) if isinstance(one, ast.Constant) and isinstance(one.value, str)
            )
            yield from (word for word in words if (WORD.fullmatch(word) and "_" in word) or word == "qualified")


@pytest.mark.parametrize("module", SECTIONS, ids=lambda module: module.__name__)
def test_every_code_has_a_row(module: object) -> None:
    document = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    section = document.partition(f"### {SECTIONS[module]}Operator\n")[2].partition("\n### ")[0]
    rows = "\n".join(line.split("|")[1] for line in section.splitlines() if line.startswith("|"))
    documented = {word for cell in re.findall(r"`(\w+)`", rows) for word in (cell, f"baseline{cell}")}
    found = set(codes(Path(str(module.__file__))))  # type: ignore[attr-defined]
    assert len(found) > 5
    assert {code for code in found if code != "memory_"} <= documented
