"""What others say of an error without the secrets that they quote: addresses of webhooks, passwords, accounts."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from urllib.parse import quote, unquote, urlsplit

LONGEST = 300
SHORTEST_SECRET = 4
QUOTING = "urllib3.connectionpool"
"""A logger that names the path of every request at its lowest level."""


def secrets_of(address: str) -> set[str]:
    """The secret parts of an address: path, query, their parts, and who stands before the @; host and port are none."""
    parts = urlsplit(address)
    behind = parts.path + (f"?{parts.query}" if parts.query else "")
    words = [word for pair in parts.query.split("&") for word in pair.split("=")]
    return {behind, parts.path, parts.query, parts.username or "", parts.password or "", *parts.path.split("/"), *words}


def without_secrets(words: str, secrets: Iterable[str]) -> str:
    """One line of at most ``LONGEST`` characters, *** for every secret and word of one, in every form of an address.

    Parts shorter than four characters are left: they are no secrets, and would take ordinary words apart.
    """
    parts = {part for secret in secrets for part in (secret, *secret.split())}
    forms = {form for part in parts for form in (part, quote(part), quote(part, safe=""), unquote(part))}
    for form in sorted((form for form in forms if len(form) >= SHORTEST_SECRET), key=len, reverse=True):
        words = words.replace(form, "***")
    line = " ".join(words.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def silent_logger() -> logging.Logger:
    """A logger for a library that would log the address that it calls."""
    logger = logging.Logger("nobody")
    logger.addHandler(logging.NullHandler())
    return logger


@contextmanager
def no_requests_logged() -> Iterator[None]:
    """Meanwhile the library below says nothing, at no level."""
    logger = logging.getLogger(QUOTING)
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
