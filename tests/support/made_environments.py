"""The environments that end-to-end tests share with an installation: nobody waits for downloads in a test."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from local.environments import ENVIRONMENTS
from local.paths import Home, default_home

NEEDED = ("scheduler", "cpu")


def shared_environments() -> Path:
    """Folder of the environments to share, whether they are made there or not.

    ``NIGHTLY_ENVIRONMENTS``, which ``./nightly test`` sets; else where the test environment of this Python lies, else
    where the user's installation has its own.
    """
    beside = Path(sys.prefix).parent
    if not os.environ.get("NIGHTLY_ENVIRONMENTS") and Path(sys.prefix) == ENVIRONMENTS["test"].folder(beside):
        return beside
    return Home(default_home()).environments


def made_environments() -> Path:
    """The folder with what a night on a CPU needs; without that the test fails, and says what to call."""
    folder = shared_environments()
    missing = [name for name in NEEDED if not ENVIRONMENTS[name].is_complete(folder)]
    if missing:
        expected = f"expected the environments {' and '.join(NEEDED)}, found no complete {' and no '.join(missing)}"
        pytest.fail(f"{folder}: {expected}; run ./nightly test end_to_end, which makes them", pytrace=False)
    return folder
