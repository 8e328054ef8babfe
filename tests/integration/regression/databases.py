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

from regression.results import migrate
from regression.results.roles import OWNER, READER, ROLES, WRITER, ensure_roles

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
    admin = _engine(empty_database)
    with admin.begin() as connection:
        ensure_roles(connection, urlsplit(empty_database).path.lstrip("/"), PASSWORDS)
    return Database(admin, *(_engine(empty_database, role) for role in (OWNER, WRITER, READER)))


@pytest.fixture
def database(roles: Database) -> Iterator[Database]:
    """The same with the newest schema."""
    migrate.upgrade(roles.owner)
    yield roles


def _engine(dsn: str, role: str | None = None) -> Engine:
    url = make_url(dsn).set(drivername="postgresql+psycopg2")
    if role:
        url = url.set(username=role, password=PASSWORDS[role])
    return create_engine(url, poolclass=NullPool)
