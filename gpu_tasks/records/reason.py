"""Why something is not as it should be, in the form every record says it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """Why something is not ok: a documented snake_case ``code`` and a one-line ``message``."""

    code: str
    message: str
