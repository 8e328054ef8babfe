"""A throwaway PostgreSQL server for tests: one a session, one fresh database a test."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg2
import pytest

from local.postgres import Cluster, new_password


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Cluster]:
    """Running cluster; ``admin_dsn(database)`` is its superuser."""
    folder = Path(tempfile.mkdtemp(prefix="kernel-nightly-test-", dir="/tmp"))
    folder.chmod(0o755)
    cluster = Cluster(folder / "postgres", new_password())
    cluster.initialise()
    cluster.start()
    try:
        _set_up(cluster)
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder)


@pytest.fixture
def empty_database(postgres_server: Cluster) -> Iterator[str]:
    """Superuser DSN of a database that exists for one test."""
    with new_database(postgres_server) as dsn:
        yield dsn


@contextmanager
def new_database(server: Cluster, template: str = "template1") -> Iterator[str]:
    """Superuser DSN of a new database, a copy of ``template``, which nobody may be connected to."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    connection = psycopg2.connect(server.admin_dsn())
    connection.autocommit = True
    try:
        with connection.cursor() as cursor:
            cursor.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        yield server.admin_dsn(name)
        with connection.cursor() as cursor:
            cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    finally:
        connection.close()


def _set_up(server: Cluster) -> None:
    """Settings of a server that nobody keeps: its databases are not worth a wait, and nothing stirs in them.

    Nothing is flushed to disk: what a power cut would lose is thrown away anyway, and a killed server loses nothing by
    it. Autovacuum is off: it would analyse tables at a moment of its own choosing, and with that change the rows that
    PostgreSQL reckons with, and the plans, between two looks at the same database.
    """
    connection = psycopg2.connect(server.admin_dsn())
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("ALTER SYSTEM SET fsync = off")
        cursor.execute("ALTER SYSTEM SET autovacuum = off")
        cursor.execute("SELECT pg_reload_conf()")
    connection.close()
