"""The results database as an Airflow connection names it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from regression.results import RESULTS_CONNECTION

if TYPE_CHECKING:
    from sqlalchemy import Engine

CONNECT_TIMEOUT_S = 10


@cache
def results_engine(conn_id: str = RESULTS_CONNECTION) -> Engine:
    """Engine for a PostgreSQL connection; its extra fields are passed to libpq (``sslmode`` and so on)."""
    from airflow.sdk import Connection
    from sqlalchemy import URL, create_engine
    from sqlalchemy.pool import NullPool

    connection = Connection.get(conn_id)
    url = URL.create(
        "postgresql+psycopg2",
        username=connection.login,
        password=connection.password,
        host=connection.host,
        port=connection.port,
        database=connection.schema,
    )
    arguments = {"connect_timeout": CONNECT_TIMEOUT_S, **connection.extra_dejson}
    return create_engine(url, poolclass=NullPool, connect_args=arguments, hide_parameters=True)
