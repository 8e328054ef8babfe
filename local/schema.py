"""``sql/schema.sql``: what the migrations and views make, in one file for reading. ``./nightly schema`` writes it.

It is a dump of an empty database that was just migrated, on a server that lives as long as this takes, without what
is not the schema: owners, privileges (``docs/results.md`` has them), settings of the session.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
from pathlib import Path

from sqlalchemy import create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

from gpu_tasks.records import Outcome, write_text_atomically
from local.databases import libpq_uri
from local.errors import LauncherError
from local.paths import ROOT, Home
from local.postgres import Cluster, binaries, new_password

SCHEMA_FILE = ROOT / "sql" / "schema.sql"
HEADING = """\
-- The results database as the migrations (sql/migrations) and the views (sql/views) make it, for reading.
-- Written by `./nightly schema`; a test fails when it is not what they make.
"""
_NOISE = re.compile(
    r"^(--.*|SET .*;|SELECT pg_catalog\.set_config\(.*\);|\\(un)?restrict .*)\n", re.MULTILINE
)  # names of objects in comments, settings of the session, and a random word that pg_dump guards its output with


def command_schema(home: Home, arguments: argparse.Namespace) -> int:  # noqa: ARG001 - as every command
    """Write the file anew."""
    write_schema(SCHEMA_FILE)
    print(SCHEMA_FILE)
    return Outcome.OK.exit_code


def write_schema(path: Path) -> None:
    """Write the schema to ``path``, from an empty database on a server of its own."""
    with tempfile.TemporaryDirectory(prefix="kernel-nightly-schema-") as folder:
        Path(folder).chmod(0o755)  # the server may run as another user
        cluster = Cluster(Path(folder) / "postgres", new_password())
        cluster.initialise()
        cluster.start()
        try:
            text = schema_of(migrated(cluster.admin_dsn()))
        finally:
            cluster.stop()
    write_text_atomically(text, path)


def migrated(admin_dsn: str) -> str:
    """Bring the empty database of an administrator's DSN to the newest schema; returns the DSN."""
    from regression.results.migrate import upgrade
    from regression.results.roles import ROLES, ensure_roles

    url = make_url(admin_dsn).set(drivername="postgresql+psycopg2")
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        ensure_roles(connection, str(url.database), {role: new_password() for role in ROLES})
    upgrade(engine)
    return admin_dsn


def schema_of(dsn: str) -> str:
    """The schema of a database as text that makes it again in an empty one."""
    url = make_url(dsn)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    result = subprocess.run(
        [
            *(str(binaries() / "pg_dump"), "--schema-only", "--schema=public", "--no-owner", "--no-privileges"),
            libpq_uri(url.set(password=None)),
        ],
        env=environment | {"PGPASSWORD": str(url.password or "")},
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise LauncherError(f"pg_dump: {result.stderr.strip().splitlines()[0]}")
    return HEADING + "\n" + readable(result.stdout)


def readable(dumped: str) -> str:
    """What is the schema's own of a dump: statements as they are, without their schema's name."""
    text = _NOISE.sub("", dumped)
    for statement in ("CREATE SCHEMA public;\n", "COMMENT ON SCHEMA public IS 'standard public schema';\n"):
        text = text.replace(statement, "")
    text = re.sub(r"\bpublic\.", "", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
