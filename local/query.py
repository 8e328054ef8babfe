"""SQL for people: as the read-only role, printed as a table, CSV or JSON, or in psql."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from urllib.parse import unquote, urlsplit

import psycopg2

from gpu_tasks.records import Outcome
from local.databases import libpq_uri
from local.postgres import binaries


def psql(dsn: str, arguments: list[str]) -> int:
    """Run the psql that comes with the server; the password travels in its environment, not in its arguments."""
    url = urlsplit(dsn)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    environment |= {
        "PGHOST": url.hostname or "127.0.0.1",
        "PGPORT": str(url.port or 5432),
        "PGUSER": unquote(url.username or ""),
        "PGPASSWORD": unquote(url.password or ""),
        "PGDATABASE": unquote(url.path.lstrip("/")),
    }
    return subprocess.run([str(binaries() / "psql"), *arguments], env=environment, check=False).returncode


def run(dsn: str, query: str, form: str) -> int:
    """Print the rows as table, csv or json; a refused statement is bad input, with PostgreSQL's own words."""
    if form == "json":
        return _print_json(dsn, query)
    options = ["-X", "-v", "ON_ERROR_STOP=1", "-P", "pager=off", "-P", "expanded=auto"] + (
        ["--csv"] if form == "csv" else []
    )
    status = psql(dsn, [*options, "-c", query])
    return Outcome.OK.exit_code if status == 0 else Outcome.BAD_INPUT.exit_code


def _print_json(dsn: str, query: str) -> int:
    connection = psycopg2.connect(libpq_uri(dsn))
    try:
        with connection.cursor() as cursor:
            cursor.execute(query)
            names = [column.name for column in cursor.description or ()]
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()] if names else []
    except psycopg2.Error as error:
        print(str(error).strip(), file=sys.stderr)
        return Outcome.BAD_INPUT.exit_code
    finally:
        connection.close()
    print(json.dumps(rows, default=str))
    return Outcome.OK.exit_code
