"""What `nightly sql` was asked of the cookbook: one question with its values, their list, or the SQL of one."""

from __future__ import annotations

import argparse

from gpu_tasks.records import BadInput, Outcome
from local.cookbook import Question, find_question, pairs, questions
from local.errors import Usage


def asked(arguments: argparse.Namespace) -> tuple[Question, dict[str, str]] | None:
    """The question with a value for each of its parameters; None where none was asked."""
    _check(arguments)
    if arguments.name is None:
        return None
    try:
        question = find_question(arguments.name)
        return question, question.values(pairs(arguments.param))
    except BadInput as error:
        raise _usage(error) from None


def print_questions(arguments: argparse.Namespace) -> int:
    """`--list`: name, title and params with their defaults of each question; `--show`: the file of one."""
    _check(arguments)
    try:
        if arguments.show:
            print(find_question(arguments.name).path.read_text(encoding="utf-8"), end="")
            return Outcome.OK.exit_code
        for question in questions():
            print(f"{question.name}\n    {question.title}")
            if question.parameters:
                print("    " + "  ".join(f"{p.name}={p.default or repr(p.default)}" for p in question.parameters))
    except BadInput as error:
        raise _usage(error) from None
    return Outcome.OK.exit_code


def _check(arguments: argparse.Namespace) -> None:
    """Words that exclude or need each other."""
    given = [arguments.query is not None, arguments.name is not None, arguments.list]
    if sum(given) > 1 or (arguments.list and arguments.show):
        raise Usage("sql: expected one of a statement, --name and --list alone, found several")
    if (arguments.list or arguments.show) and arguments.form != "table":
        raise Usage(f"sql --{arguments.form}: expected a query to be asked, found none")
    if arguments.show and arguments.name is None:
        raise Usage("sql --show: expected --name NAME, found none")
    if arguments.param and (arguments.name is None or arguments.show):
        raise Usage("sql --param: expected with --name NAME, to be asked, found without")


def _usage(error: BadInput) -> Usage:
    return Usage(f"sql: {error.message}")
