"""The two databases on one server, Airflow's and the results', and the roles that may use them.

The server is the embedded one or, given a DSN, the user's; the DSN's role must be allowed to create roles and
databases there. The DSN's own database holds the results and its name with ``_airflow`` appended Airflow's metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2
from psycopg2 import sql
from sqlalchemy import create_engine
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from local.errors import LauncherError, Usage
from local.paths import ROOT
from local.secrets import Secrets

EMBEDDED_RESULTS = "results"
AIRFLOW_ROLE = "nightly_airflow"
FIRST_BASELINES = ROOT / "gpu_tasks/baselines"


@dataclass(frozen=True)
class Databases:
    """Connection URIs by purpose, derived from one administrator's DSN."""

    admin: URL
    results: str
    secrets: Secrets

    @property
    def airflow(self) -> str:
        """Airflow's metadata, as Airflow's own role."""
        return self._uri(AIRFLOW_ROLE, self.secrets.airflow_database, self.airflow_database)

    @property
    def owner(self) -> str:
        return self._uri("nightly_owner", self.secrets.owner, self.results)

    @property
    def writer(self) -> str:
        return self._uri("nightly_writer", self.secrets.writer, self.results)

    @property
    def reader(self) -> str:
        return self._uri("nightly_reader", self.secrets.reader, self.results)

    @property
    def airflow_database(self) -> str:
        return "airflow" if self.results == EMBEDDED_RESULTS else f"{self.results}_airflow"

    def _uri(self, role: str, password: str, database: str) -> str:
        url = self.admin.set(username=role, password=password, database=database)
        return url.render_as_string(hide_password=False)


def databases(admin_dsn: str, secrets: Secrets, *, embedded: bool) -> Databases:
    """Check the administrator's DSN and derive the others; a DSN without database name uses ``kernel_nightly``."""
    try:
        url = make_url(admin_dsn)
    except (ArgumentError, ValueError):
        raise Usage("--dsn: expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE, found something else") from None
    if not url.drivername.startswith("postgresql"):
        raise Usage(f"--dsn: expected a postgresql:// address, found {url.drivername}://")
    url = url.set(drivername="postgresql+psycopg2")
    results = EMBEDDED_RESULTS if embedded else url.database or "kernel_nightly"
    return Databases(url, results, secrets)


def prepare(target: Databases, records: Path, *, with_airflow: bool = True) -> None:
    """Make what is missing: roles, databases, the newest schema, the first baselines; safe to repeat.

    ``records`` is the folder of the kept record files, in which the first baselines have theirs as well.
    """
    from regression.results.baselines import ensure_first_baselines
    from regression.results.judgements import keep_missing
    from regression.results.migrate import upgrade
    from regression.results.roles import ensure_roles

    passwords = {
        "nightly_owner": target.secrets.owner,
        "nightly_writer": target.secrets.writer,
        "nightly_reader": target.secrets.reader,
    }
    try:
        with _administrator(target) as cursor:
            if with_airflow:
                _ensure_role(cursor, AIRFLOW_ROLE, target.secrets.airflow_database)
                _ensure_database(cursor, target.airflow_database, AIRFLOW_ROLE)
            _ensure_role(cursor, "nightly_owner", target.secrets.owner)
            _ensure_database(cursor, target.results, "nightly_owner")
            if target.results == EMBEDDED_RESULTS:  # a server of our own: its other databases are nobody's business
                cursor.execute("REVOKE CONNECT ON DATABASE postgres, template1 FROM PUBLIC")
        with engine_of(target.admin.set(database=target.results)) as engine, engine.begin() as connection:
            ensure_roles(connection, target.results, passwords)
        with engine_of(target.owner) as owner:
            upgrade(owner)
        with engine_of(target.writer) as writer:
            ensure_first_baselines(writer, FIRST_BASELINES, records)
            with writer.connect() as connection:
                keep_missing(connection, records)
    except (psycopg2.Error, DBAPIError) as error:
        raise LauncherError(f"the database server refused the set-up: {_first_line(error)}") from error


def identity(target: Databases) -> str:
    """What tells these databases from others of the same name: address and object ids; changes when one is remade."""
    names = (target.results, target.airflow_database)
    try:
        with _administrator(target) as cursor:
            cursor.execute("SELECT oid FROM pg_database WHERE datname = ANY(%s) ORDER BY datname", (list(names),))
            oids = [str(oid) for (oid,) in cursor.fetchall()]
    except psycopg2.Error as error:
        raise LauncherError(f"the database server cannot be used: {_first_line(error)}") from error
    return " ".join([f"{target.admin.host}:{target.admin.port or 5432}", *names, *oids])


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def libpq_uri(uri: str | URL) -> str:
    """The same address without SQLAlchemy's driver name, for psycopg2 itself and libpq's programs."""
    return make_url(uri).set(drivername="postgresql").render_as_string(hide_password=False)


@contextmanager
def engine_of(uri: str | URL) -> Iterator[Engine]:
    """Engine of a connection URI, whose connections are closed in the end."""
    engine = create_engine(uri)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def told_by_the_database() -> Iterator[None]:
    """Failures of the results database as the launcher's own, in one line."""
    try:
        yield
    except DBAPIError as error:
        line = next(iter(str(error.orig).strip().splitlines()), type(error).__name__)
        raise LauncherError(f"the results database: {line}") from error


@contextmanager
def _administrator(target: Databases) -> Iterator[Any]:
    """Autocommitting cursor of the administrator (``CREATE DATABASE`` cannot run in a transaction).

    In the maintenance database, because the results' may not be there yet; where that one is closed, in the DSN's.
    """
    try:
        connection = psycopg2.connect(libpq_uri(target.admin.set(database="postgres")))
    except psycopg2.OperationalError:
        if target.admin.database in (None, "postgres"):
            raise
        connection = psycopg2.connect(libpq_uri(target.admin))
    connection.autocommit = True
    try:
        yield connection.cursor()
    finally:
        connection.close()


def _ensure_role(cursor: Any, name: str, password: str) -> None:
    cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,))
    verb = sql.SQL("ALTER" if cursor.fetchone() else "CREATE")
    cursor.execute(sql.SQL("{} ROLE {} LOGIN PASSWORD {}").format(verb, sql.Identifier(name), sql.Literal(password)))
    cursor.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(name)))


def _ensure_database(cursor: Any, name: str, owner: str) -> None:
    cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
    if not cursor.fetchone():
        cursor.execute(
            sql.SQL("CREATE DATABASE {} OWNER {} ENCODING 'UTF8' TEMPLATE template0").format(
                sql.Identifier(name), sql.Identifier(owner)
            )
        )
    # Only the roles that were granted something may enter; results grants its own in ensure_roles.
    cursor.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(sql.Identifier(name)))
