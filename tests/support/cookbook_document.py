"""The list of questions in ``docs/cookbook.md``, made from ``sql/queries`` and their known answers.

``python -m tests.support.cookbook_document`` writes it anew, below the marker; a test compares the two.
"""

from __future__ import annotations

import shlex
from typing import Any

from local.cookbook import Parameter, Question, find_question, questions
from local.paths import ROOT
from tests.integration.regression.cookbook_answers import NIGHTS, PREDICTIONS, Answer
from tests.integration.regression.cookbook_candidate_answers import CANDIDATES
from tests.integration.regression.cookbook_energy_answers import COMPARISONS, ROUNDS, TRENDS
from tests.integration.regression.cookbook_learner import LEARNER

DOCUMENT = ROOT / "docs" / "cookbook.md"
MARKER = "<!-- What follows is made by python -m tests.support.cookbook_document from the files in sql/queries. -->\n"
CHAPTERS = {
    "Nights and verdicts": NIGHTS,
    "Predictions": PREDICTIONS,
    "Energy and time by night": TRENDS,
    "Kernels, boards and figures compared": COMPARISONS,
    "Kernels that are tried": CANDIDATES,
    "Rounds and sensors": ROUNDS,
    "Workloads that train": LEARNER,
}
REST = "The database itself"
SHARED = ("workload", "device", "since", "until")
"""Params that the document explains once."""
ROWS, WIDTH = 4, 28


def made() -> str:
    """Everything below the marker."""
    examples: dict[str, Answer] = {}
    chapters: dict[str, list[str]] = {}
    for chapter, answers in CHAPTERS.items():
        for answer in answers:
            if answer.rows and answer.question not in examples:
                examples[answer.question] = answer
                chapters.setdefault(chapter, []).append(answer.question)
    chapters[REST] = [question.name for question in questions() if question.name not in examples]
    parts = []
    for chapter, names in chapters.items():
        parts.append(f"## {chapter}\n")
        parts += [_section(find_question(name), examples.get(name)) for name in names]
    return "\n" + "\n".join(parts)


def _section(question: Question, example: Answer | None) -> str:
    lines = [f"### {question.name}: {question.title}", "", question.answers, ""]
    if question.parameters:
        lines += ["Params: " + "; ".join(map(_parameter, question.parameters)) + ".", ""]
    params = example.params if example else {}
    given = "".join(f" --param {shlex.quote(f'{name}={value}')}" for name, value in params.items())
    lines += ["```", f"./nightly sql --name {question.name}{given}", "```", ""]
    return "\n".join(lines + (_table(example) if example else []))


def _parameter(parameter: Parameter) -> str:
    if parameter.name in SHARED:
        return f"`{parameter.name}`"
    default = f", `{parameter.default}` unless given" if parameter.default else ""
    return f"`{parameter.name}` ({parameter.type}{default}): {parameter.meaning}"


def _table(answer: Answer) -> list[str]:
    names = answer.columns.split()
    rows = [_line(map(_cell, row)) for row in answer.rows[:ROWS]]
    more = [_line(["..."] + [""] * (len(names) - 1))] if len(answer.rows) > ROWS else []
    return [_line(names), _line("---" for _ in names), *rows, *more, ""]


def _line(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, list):
        return f"{{{', '.join(map(str, value))}}}"
    text = str(value)
    return text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."


if __name__ == "__main__":
    written, marker, _ = DOCUMENT.read_text(encoding="utf-8").partition(MARKER)
    DOCUMENT.write_text(written + marker + made(), encoding="utf-8")
