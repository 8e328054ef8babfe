"""Bring the results database to the newest schema: Alembic migrations, then the views from their files.

No ini file and no address: whoever calls has a connection already.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command, op
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import ProgrammingError

from regression.results.roles import OWNER

SQL_FOLDER = Path(__file__).resolve().parents[3] / "sql"
MIGRATIONS = SQL_FOLDER / "migrations"
VIEWS = SQL_FOLDER / "views"
LOCK_KEY = 0x6B6E696768746C79  # any constant: two upgrades of one database wait for each other


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Migrate to ``revision`` and create the views, as the owner role, in one transaction.

    ``engine`` is connected as the owner role or as a member of it. Does nothing on a current database; a second
    upgrade at the same time waits. A failed one leaves the database as it was.
    """
    with engine.begin() as connection:
        _become_owner(connection)
        if not _is_current(connection):
            _drop_views(connection)
            command.upgrade(_config(connection), revision)
        if _is_current(connection):
            _create_views(connection)


def downgrade(engine: Engine, revision: str) -> None:
    """Go back to ``revision`` ("base": nothing left); the views go and come back with the next upgrade."""
    with engine.begin() as connection:
        _become_owner(connection)
        _drop_views(connection)
        command.downgrade(_config(connection), revision)


def revisions() -> list[str]:
    """Every version that the schema ever had, oldest first."""
    return [script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()][::-1]


def run_sql(name: str) -> None:
    """Run one SQL file that lies beside the migrations; for use in a migration."""
    _run_file(op.get_bind(), MIGRATIONS / "versions" / name)


def _run_file(connection: Connection, path: Path) -> None:
    """Hand the whole file to PostgreSQL as it is; without parameters, a per cent sign is one."""
    connection.exec_driver_sql(path.read_text(encoding="utf-8"), execution_options={"no_parameters": True})


def _become_owner(connection: Connection) -> None:
    connection.execute(text(f"SET LOCAL ROLE {OWNER}"))
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK_KEY})


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def _is_current(connection: Connection) -> bool:
    head = ScriptDirectory.from_config(_config(connection)).get_current_head()
    return MigrationContext.configure(connection).get_current_revision() == head


def _view_files() -> list[Path]:
    return sorted(VIEWS.glob("*.sql"))


def _drop_views(connection: Connection) -> None:
    """Views hold no data and refer to columns that a migration may change, so they go before it and come back."""
    for path in _view_files():
        connection.execute(text(f'DROP VIEW IF EXISTS "{path.stem}"'))


def _create_views(connection: Connection) -> None:
    """From their files; all of them anew where one has changed in a way that cannot be put in its place."""
    try:
        with connection.begin_nested():
            _replace_views(connection)
    except ProgrammingError:  # a column that was put between others, or is gone; else it is raised again
        _drop_views(connection)
        _replace_views(connection)


def _replace_views(connection: Connection) -> None:
    for path in _view_files():
        _run_file(connection, path)
