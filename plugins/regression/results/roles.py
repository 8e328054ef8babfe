"""The three roles of the results database: owner (makes tables), writer (loads), reader (asks, and nothing else)."""

from __future__ import annotations

from collections.abc import Mapping

from psycopg2 import sql
from sqlalchemy import Connection

OWNER = "nightly_owner"
WRITER = "nightly_writer"
READER = "nightly_reader"
ROLES = (OWNER, WRITER, READER)
READER_SETTINGS = {
    "default_transaction_read_only": "on",
    "statement_timeout": "30s",
    "idle_in_transaction_session_timeout": "10min",  # an open transaction would hold up the next migration
    "work_mem": "64MB",  # a question over years sorts and joins in memory; 4 MB, the default, go through files
    "timezone": "UTC",  # as the nights are counted
    "search_path": "public",
}
"""What a reader's session begins with. Defaults: PostgreSQL lets every role change its own, until the next start."""
LOCK_KEY = 0x6B6E726F6C6573


def ensure_roles(admin_connection: Connection, database: str, passwords: Mapping[str, str]) -> None:
    """Create the roles with their passwords, or bring existing ones up to date, in one transaction.

    ``admin_connection`` is a superuser's (or one that may create roles and grant on ``database``), connected to
    ``database``; ``passwords`` maps each of ``ROLES`` to its password. Raises ``ValueError`` on a missing one. Safe
    to repeat. Nothing is committed here: the caller's transaction decides.
    """
    missing = [role for role in ROLES if not passwords.get(role)]
    if missing:
        raise ValueError(f"passwords: expected one for each of {', '.join(ROLES)}, missing {', '.join(missing)}")
    cursor = admin_connection.connection.cursor()
    cursor.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK_KEY,))
    for role in ROLES:
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,))
        verb = sql.SQL("ALTER ROLE") if cursor.fetchone() else sql.SQL("CREATE ROLE")
        cursor.execute(
            sql.SQL("{} {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD {}").format(
                verb, sql.Identifier(role), sql.Literal(passwords[role])
            )
        )
    for statement in _GRANTS:
        cursor.execute(
            sql.SQL(statement).format(
                database=sql.Identifier(database),
                owner=sql.Identifier(OWNER),
                writer=sql.Identifier(WRITER),
                reader=sql.Identifier(READER),
            )
        )
    for name, value in READER_SETTINGS.items():
        cursor.execute(
            sql.SQL("ALTER ROLE {} IN DATABASE {} SET {} = {}").format(
                sql.Identifier(READER), sql.Identifier(database), sql.Identifier(name), sql.Literal(value)
            )
        )
    cursor.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
    if cursor.fetchone() == (True,):
        # Large objects have no tables that could be closed to the reader; only a superuser may close the functions.
        for function in ("lo_create(oid)", "lo_creat(integer)", "lo_from_bytea(oid, bytea)"):
            cursor.execute(f"REVOKE EXECUTE ON FUNCTION pg_catalog.{function} FROM PUBLIC")
    cursor.close()


_GRANTS = (
    "REVOKE ALL ON DATABASE {database} FROM PUBLIC",
    "GRANT CONNECT ON DATABASE {database} TO {owner}, {writer}, {reader}",
    "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
    "GRANT USAGE, CREATE ON SCHEMA public TO {owner}",
    "GRANT USAGE ON SCHEMA public TO {writer}, {reader}",
    "ALTER ROLE {reader} IN DATABASE {database} RESET ALL",
    # Membership lets the administrator act as the owner, for these defaults and for migrations.
    "GRANT {owner} TO CURRENT_USER",
    "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA public GRANT SELECT, INSERT, UPDATE ON TABLES TO {writer}",
    "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA public GRANT USAGE ON SEQUENCES TO {writer}",
    "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA public GRANT SELECT ON TABLES TO {reader}",
)
