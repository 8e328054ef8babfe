"""A database with the cookbook's history, made once for all tests of a module: nobody changes it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import psycopg2
import pytest
from sqlalchemy import create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

from local.databases import libpq_uri
from local.postgres import Cluster
from regression.results import migrate
from regression.results.roles import READER, WRITER, ensure_roles
from tests.integration.regression.cookbook_judgements import store_history
from tests.integration.regression.databases import PASSWORDS


@pytest.fixture(scope="module")
def cookbook_database(postgres_server: Cluster) -> Iterator[str]:
    """Address of the reader in it."""
    name = f"cookbook_{uuid.uuid4().hex[:12]}"
    admin = psycopg2.connect(postgres_server.admin_dsn())
    admin.autocommit = True
    try:
        with admin.cursor() as cursor:
            cursor.execute(f'CREATE DATABASE "{name}"')
        url = make_url(postgres_server.admin_dsn(name)).set(drivername="postgresql+psycopg2")
        owner = create_engine(url, poolclass=NullPool)
        with owner.begin() as connection:
            ensure_roles(connection, name, PASSWORDS)
        migrate.upgrade(owner)
        store_history(create_engine(url.set(username=WRITER, password=PASSWORDS[WRITER]), poolclass=NullPool))
        yield libpq_uri(url.set(username=READER, password=PASSWORDS[READER]))
        with admin.cursor() as cursor:
            cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    finally:
        admin.close()


__all__ = ["cookbook_database"]
