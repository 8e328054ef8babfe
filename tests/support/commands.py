"""The command line as tests call it."""

from __future__ import annotations

from collections.abc import Callable

Run = Callable[..., tuple[int, str, str]]
"""``./nightly`` with its arguments, in this process: exit status, standard output and standard error."""
