"""Who does something: the name that decisions are kept under."""

from __future__ import annotations

import getpass
import os


def author(given: str | None) -> str:
    """The name that was given, else the login name, else the number of the user."""
    if given:
        return given
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no entry for this user, as in some containers
        return f"uid {os.getuid()}"
