"""Where a named set of draws lives."""

from __future__ import annotations

import os
import re
from pathlib import Path

from gpu_tasks.payload.manifest import MANIFEST
from gpu_tasks.records import PAYLOAD_NAME, BadInput

FOLDER_VARIABLE = "NIGHTLY_PAYLOADS"
SHIPPED = Path(__file__).parent
SHIPPED_NAME = "original"
"""The one set whose files are here; no other may take its name."""


def check_name(name: str) -> str:
    """``name`` if it can name a set; raises ``BadInput`` (``bad_payload_name``)."""
    if not re.fullmatch(PAYLOAD_NAME, name):
        raise BadInput(
            "bad_payload_name",
            f"payload: expected a name of lower-case letters, digits, - and _ (up to 64), found {name!r}",
        )
    return name


def new_set_folder(name: str) -> Path:
    """Folder in which a set of this name would be built."""
    own = os.environ.get(FOLDER_VARIABLE)
    return (Path(own) if own else SHIPPED) / check_name(name)


def find_set(name: str) -> Path:
    """Folder of an existing set: ``original`` ships with the code, others may be in ``NIGHTLY_PAYLOADS``.

    Raises ``BadInput``: ``bad_payload_name`` or ``payload_not_found``.
    """
    shipped = SHIPPED / check_name(name)
    candidates = [shipped] if name == SHIPPED_NAME else list(dict.fromkeys([new_set_folder(name), shipped]))
    for folder in candidates:
        if (folder / MANIFEST).exists():
            return folder
    looked = " or ".join(str(folder) for folder in candidates)
    raise BadInput("payload_not_found", f"payload {name}: expected a {MANIFEST} in {looked}, found none")
