"""What others say of an error without the secrets that they quote: addresses of webhooks, passwords, accounts."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from urllib.parse import quote, unquote, urlsplit

from regression.alerts.plain import cut, one_line

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
    return cut(one_line(words), LONGEST)


def silent_logger() -> logging.Logger:
    """A logger for a library that would log the address that it calls."""
    logger = logging.Logger("nobody")
    logger.addHandler(logging.NullHandler())
    return logger


class _Quiet(logging.Filter):
    """Drops what a thread logs that asked for that; another one may be at work at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002 - logging's signature
        return not getattr(self.asked, "quiet", False)


_QUIET = _Quiet()


@contextmanager
def no_requests_logged() -> Iterator[None]:
    """Meanwhile the library below says nothing in this thread, at no level."""
    logging.getLogger(QUOTING).addFilter(_QUIET)  # a filter that is there already is not added again
    _QUIET.asked.quiet = True
    try:
        yield
    finally:
        _QUIET.asked.quiet = False
