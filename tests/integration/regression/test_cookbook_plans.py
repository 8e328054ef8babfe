"""Rows come in the order that a question states: by another plan they are the same, also where values tie."""

from __future__ import annotations

from typing import Any

import psycopg2
import pytest

from local.cookbook import Question, questions
from tests.integration.regression.cookbook_database import cookbook_database

__all__ = ["cookbook_database"]

WITHOUT = (
    ("enable_hashjoin", "enable_hashagg"),
    ("enable_seqscan",),
    ("enable_sort", "enable_mergejoin", "enable_nestloop"),
    ("enable_indexscan", "enable_bitmapscan", "enable_nestloop"),
    ("enable_material", "enable_memoize", "enable_hashjoin", "enable_mergejoin"),
)
"""Ways of a plan, taken away together."""


@pytest.mark.parametrize("question", questions(), ids=lambda question: question.name)
def test_the_answer_is_the_same_by_every_plan(question: Question, cookbook_database: str) -> None:
    usual, *others = (rows(cookbook_database, question, without) for without in ((), *WITHOUT))
    for without, found in zip(WITHOUT, others, strict=True):
        assert found == usual, f"without {', '.join(without)}"


def rows(dsn: str, question: Question, without: tuple[str, ...]) -> list[list[Any]]:
    """Rows in their order, floats to nine digits: a sum depends on the order of its terms in the last bits."""
    connection = psycopg2.connect(dsn)
    try:
        with connection.cursor() as cursor:
            for way in without:
                cursor.execute("SELECT set_config(%s, 'off', false)", [way])
            cursor.execute(question.bound, question.values({}))
            return [[float(f"{v:.9g}") if isinstance(v, float) else v for v in row] for row in cursor.fetchall()]
    finally:
        connection.close()
