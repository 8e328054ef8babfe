"""Secrets of one installation: generated once, in one file that only its owner can read."""

from __future__ import annotations

import base64
import json
import os
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from local.errors import LauncherError


@dataclass(frozen=True)
class Secrets:
    """Passwords of the database roles and keys of Airflow."""

    postgres_admin: str
    airflow_database: str
    owner: str
    writer: str
    reader: str
    airflow_admin: str
    jwt_secret: str
    api_secret_key: str
    fernet_key: str


def load(path: Path) -> Secrets:
    """The installation's secrets; makes them on the first call."""
    if not path.exists():
        _write(path, _generate())
    try:
        return Secrets(**json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        message = f"{path}: expected the secrets of this installation, found something else ({error})"
        raise LauncherError(message) from None


def _generate() -> Secrets:
    names = ("postgres_admin", "airflow_database", "owner", "writer", "reader")
    return Secrets(
        **{name: secrets.token_urlsafe(24) for name in names},
        airflow_admin=secrets.token_urlsafe(12),
        jwt_secret=secrets.token_urlsafe(64),
        api_secret_key=secrets.token_urlsafe(32),
        fernet_key=base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
    )


def _write(path: Path, values: Secrets) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        json.dump(asdict(values), stream, indent=2)
        stream.flush()
        os.fsync(stream.fileno())
    # A link, not a rename: of two first clients at once, the later one must not replace what the server was made with.
    with suppress(FileExistsError):
        os.link(temporary, path)
    temporary.unlink()
