"""People: the name that their decisions are kept under, and what they are told of long work."""

from __future__ import annotations

import getpass
import os
import sys


def author(given: str | None) -> str:
    """The name that was given, else the login name, else the number of the user."""
    if given:
        return given
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no entry for this user, as in some containers
        return f"uid {os.getuid()}"


def said(line: str) -> None:
    """Progress, on standard error: standard output is for the answer."""
    print(line, file=sys.stderr, flush=True)
