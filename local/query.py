"""SQL for people: as the read-only role, printed as a table, CSV or JSON, or in psql."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import psycopg2
from psycopg2 import extensions
from sqlalchemy.engine import make_url

from gpu_tasks.records import Outcome
from local.cookbook import Question
from local.databases import libpq_uri
from local.errors import LauncherError, Usage
from local.postgres import binaries

CONNECTION_FAILED = 2  # of psql's own exit statuses


def psql(dsn: str, arguments: list[str]) -> int:
    """Run the psql that comes with the server; the password travels in its environment, not in its arguments."""
    url = make_url(dsn)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    environment["PGPASSWORD"] = str(url.password or "")
    address = libpq_uri(url._replace(password=None))  # set() would take None for "as it is"
    return subprocess.run([str(binaries() / "psql"), *arguments, address], env=environment, check=False).returncode


def run(dsn: str, query: str, form: str) -> int:
    """Print the rows as table, csv or json; a refused statement is bad input, with PostgreSQL's own words."""
    if not query.strip():
        raise Usage("sql: expected a statement, found nothing")
    if form == "json":
        return _print_json(dsn, query)
    return _print_by_psql(dsn, ["-c", query], form)


def ask(dsn: str, question: Question, values: Mapping[str, str], form: str) -> int:
    """The same for a question of the cookbook: ``values`` are bound, by psql or by psycopg2."""
    if form == "json":
        return _print_json(dsn, question.bound, values)
    variables = [word for name, value in values.items() for word in ("-v", f"{name}={value}")]
    return _print_by_psql(dsn, [*variables, "-f", str(question.path)], form)


def _print_by_psql(dsn: str, source: list[str], form: str) -> int:
    options = ["-X", "-v", "ON_ERROR_STOP=1", "-P", "pager=off", "-P", "expanded=auto"]
    status = psql(dsn, [*options, *(["--csv"] if form == "csv" else []), *source])
    if status == CONNECTION_FAILED:
        return Outcome.INFRASTRUCTURE_FAILURE.exit_code
    return Outcome.OK.exit_code if status == 0 else Outcome.BAD_INPUT.exit_code


def _print_json(dsn: str, query: str, values: Mapping[str, str] | None = None) -> int:
    try:
        connection = psycopg2.connect(libpq_uri(dsn))
    except psycopg2.OperationalError as error:
        raise LauncherError(f"the results database does not answer: {str(error).strip().splitlines()[0]}") from error
    for kind in (extensions.PYDATE, extensions.PYDATETIME, extensions.PYDATETIMETZ, extensions.PYINTERVAL):
        extensions.register_type(_as_far_as_python_goes(kind), connection)
    try:
        with connection.cursor() as cursor:
            cursor.execute(query, values)
            names = [column.name for column in cursor.description or ()]
            if len(set(names)) < len(names):
                raise Usage(f"sql --json: expected columns of different names, found {', '.join(names)}")
            rows = [dict(zip(names, map(_json_value, row), strict=True)) for row in cursor] if names else []
    except (psycopg2.Error, UnicodeError) as error:
        print(str(error).strip(), file=sys.stderr)
        gone = connection.closed != 0
        return (Outcome.INFRASTRUCTURE_FAILURE if gone else Outcome.BAD_INPUT).exit_code
    finally:
        connection.close()
    print(json.dumps(rows, default=str, allow_nan=False))
    return Outcome.OK.exit_code


def _as_far_as_python_goes(kind: Any) -> Any:
    """A type of dates or times: what Python has no form for, such as infinity, stays as PostgreSQL writes it."""

    def cast(text: Any, cursor: Any) -> Any:
        if text is None or text.endswith("infinity"):
            return text
        try:
            return kind(text, cursor)
        except (ValueError, OverflowError, psycopg2.Error):
            return text

    return extensions.new_type(kind.values, kind.name, cast)


def _json_value(value: Any) -> Any:
    """What JSON has no form for, as PostgreSQL writes it."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, memoryview):
        return "\\x" + value.hex()
    return value
