"""A results database with its roles and newest schema, as each role sees it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

from local.postgres import Cluster
from regression.results import migrate
from regression.results.roles import OWNER, READER, ROLES, WRITER, ensure_roles
from tests.support.postgres import new_database

PASSWORDS = {role: f"password' of \"{role}" for role in ROLES}


@dataclass(frozen=True)
class Database:
    """Engines of one results database by role."""

    admin: Engine
    owner: Engine
    writer: Engine
    reader: Engine


def one(database: Database, statement: str) -> dict[str, Any]:
    """The only row that a statement gives to the reader."""
    with database.reader.connect() as connection:
        return dict(connection.execute(text(statement)).one()._mapping)


@pytest.fixture
def roles(empty_database: str) -> Database:
    """A database with the three roles and nothing else in it."""
    return _with_roles(empty_database)


@pytest.fixture
def database(postgres_server: Cluster, newest_schema: str) -> Iterator[Database]:
    """The same with the newest schema."""
    with new_database(postgres_server, newest_schema) as dsn:
        yield _with_roles(dsn)


@pytest.fixture(scope="session")
def newest_schema(postgres_server: Cluster) -> Iterator[str]:
    """Name of a database with the roles and the newest schema, to be copied: a copy is made in no time."""
    with new_database(postgres_server) as dsn:
        migrate.upgrade(_with_roles(dsn).owner)
        yield _name(dsn)


def _with_roles(dsn: str) -> Database:
    admin = _engine(dsn)
    with admin.begin() as connection:
        ensure_roles(connection, _name(dsn), PASSWORDS)
    return Database(admin, *(_engine(dsn, role) for role in (OWNER, WRITER, READER)))


def _name(dsn: str) -> str:
    return urlsplit(dsn).path.lstrip("/")


def _engine(dsn: str, role: str | None = None) -> Engine:
    url = make_url(dsn).set(drivername="postgresql+psycopg2")
    if role:
        url = url.set(username=role, password=PASSWORDS[role])
    return create_engine(url, poolclass=NullPool)
