"""Dumps of the results database by the server's own programs.

A restore is one transaction of psql: what is there goes, what the dump holds comes, and only then it is committed. If
anything ends early, the dump, psql or this process, nothing was changed.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from sqlalchemy.engine import make_url

from local.databases import libpq_uri
from local.errors import LauncherError, Usage
from local.postgres import binaries

CHUNK = 1024 * 1024
NOT_BEFORE_17 = b"SET transaction_timeout = 0;\n"  # pg_restore writes it for every server
HEADER = 64 * 1024
MAGIC = b"PGDMP"  # of pg_dump's custom format

CLEAR = b"""\
BEGIN;
SET LOCAL client_min_messages = warning;
SET LOCAL lock_timeout = '60s';
DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT format('DROP %s IF EXISTS public.%I CASCADE', kind, relname)
        FROM pg_class
        JOIN (VALUES ('r', 'TABLE'), ('p', 'TABLE'), ('v', 'VIEW'), ('m', 'MATERIALIZED VIEW')) AS k (relkind, kind)
            ON k.relkind = pg_class.relkind::text
        WHERE relnamespace = 'public'::regnamespace AND pg_get_userbyid(relowner) = current_user
        UNION ALL
        SELECT format('DROP ROUTINE IF EXISTS %s CASCADE', oid::regprocedure)
        FROM pg_proc
        WHERE pronamespace = 'public'::regnamespace AND pg_get_userbyid(proowner) = current_user
        UNION ALL
        SELECT format('DROP TYPE IF EXISTS public.%I CASCADE', typname)
        FROM pg_type
        WHERE typnamespace = 'public'::regnamespace AND typtype IN ('e', 'd')
            AND pg_get_userbyid(typowner) = current_user
    LOOP
        EXECUTE statement;
    END LOOP;
END $$;
"""


def dump(dsn: str, path: Path) -> int:
    """Write a backup of the database to ``path``, whole or not at all; returns its bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    os.close(descriptor)
    try:
        _run(["pg_dump", "--format=custom", f"--file={temporary}"], dsn)
        with Path(temporary).open("rb") as stream:
            os.fsync(stream.fileno())
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return path.stat().st_size


def check_target(path: Path, *, replace: bool) -> None:
    """Refuse, before anything is started, to write where something is that nobody wanted to lose."""
    if path.exists() and not path.is_file():
        raise Usage(f"{path}: expected a regular file or none, found something else")
    if path.exists() and not replace:
        raise Usage(f"{path}: expected no such file, found one; --replace writes over it")


def revision(path: Path) -> str:
    """Version of the schema in a backup; raises ``Usage`` for a file that is none."""
    if not path.is_file():
        raise Usage(f"{path}: expected a backup, found {'something else' if path.exists() else 'nothing'}")
    command = [binaries() / "pg_restore", "--data-only", "--table=alembic_version", "--file=-", path]
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    found = re.search(r"^COPY public\.alembic_version .*\n(\S+)\n", result.stdout, re.MULTILINE)
    if result.returncode and _begins_as_a_dump(path):
        why = result.stderr.strip().splitlines()[0].removeprefix("pg_restore: error: ")
        raise Usage(f"{path}: expected a backup that can be read to its end, found it damaged: {why}")
    if result.returncode or not found:
        raise Usage(f"{path}: expected a backup made by `./nightly backup`, found something else")
    return found[1]


def _begins_as_a_dump(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def restore(dsn: str, path: Path) -> None:
    """Replace everything that the owner has in the database by what the backup holds."""
    command = [str(binaries() / "pg_restore"), "--no-owner", "--schema=public", "--file=-", str(path)]
    with tempfile.TemporaryFile() as errors:
        reader = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
        try:
            _apply(dsn, reader)
        finally:
            reader.kill()
            reader.wait()


def _apply(dsn: str, dumped: subprocess.Popen[bytes]) -> None:
    address, environment = _connection(dsn)
    command = [str(binaries() / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", address]
    with tempfile.TemporaryFile() as errors:
        psql = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors
        )
        assert psql.stdin is not None and dumped.stdout is not None  # noqa: S101 - pipes were asked for
        try:
            with suppress(BrokenPipeError):  # psql has ended; it says why
                psql.stdin.write(CLEAR)
                for chunk in _script(dumped.stdout):
                    psql.stdin.write(chunk)
                if dumped.wait() == 0:  # else the transaction ends with the connection
                    psql.stdin.write(b"\nCOMMIT;\n")
        finally:
            with suppress(BrokenPipeError):
                psql.stdin.close()
            status = psql.wait()
        while dumped.stdout.read(CHUNK):  # a cut dump breaks in psql's hands before pg_restore can say why
            pass
        damaged = dumped.wait() != 0
        errors.seek(0)
        lines = [line for line in errors.read().decode(errors="replace").splitlines() if line.strip()]
    if damaged:
        raise LauncherError("the backup was not restored, nothing was changed: it cannot be read to its end")
    if status:
        wrong = next((line for line in lines if "ERROR" in line or "FATAL" in line), lines[-1] if lines else "")
        raise LauncherError(f"the backup was not restored, nothing was changed: {wrong or f'psql ended with {status}'}")


def _script(stream: IO[bytes]) -> Iterator[bytes]:
    header = stream.read(HEADER)
    yield header.replace(NOT_BEFORE_17, b"", 1)
    while chunk := stream.read(CHUNK):
        yield chunk


def _run(command: list[str], dsn: str) -> None:
    address, environment = _connection(dsn)
    program = str(binaries() / command[0])
    result = subprocess.run(
        [program, *command[1:], address], env=environment, capture_output=True, text=True, check=False
    )
    if result.returncode:
        lines = result.stderr.strip().splitlines() or [f"exit status {result.returncode}"]
        raise LauncherError(f"{command[0]}: {lines[0].removeprefix(f'{command[0]}: error: ')}")


def _connection(dsn: str) -> tuple[str, dict[str, str]]:
    """Address without the password, and an environment with it: arguments can be seen by others."""
    url = make_url(dsn)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return libpq_uri(url.set(password=None)), environment | {"PGPASSWORD": str(url.password or "")}
