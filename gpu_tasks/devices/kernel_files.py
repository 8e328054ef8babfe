"""Reading the files that kernels come in: manifests and PTX text, of any origin."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NoReturn

from gpu_tasks.records import BadInput

MAX_MANIFEST_BYTES = 1024 * 1024
MAX_PTX_BYTES = 4 * 1024 * 1024


def read_text(path: Path, limit: int = MAX_PTX_BYTES) -> str:
    """The text of a regular file; a pipe could keep us waiting, and a device has no end. Raises ``BadInput``."""
    try:
        # Bytes: reading as text would turn \r\n into \n and hash something else.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise BadInput("kernel_file_unreadable", f"{path}: expected a regular file, found another kind")
            raw = file.read(limit + 1)
        if len(raw) > limit:
            refuse(path, "size", f"at most {limit} bytes", "more")
        return raw.decode("ascii")
    except OSError as error:
        raise BadInput("kernel_file_unreadable", f"{path}: expected a readable file, found: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput("kernel_file_not_text", f"{path}: expected ASCII text, found other bytes") from None
    except ValueError as error:
        raise BadInput("kernel_file_unreadable", f"{path!r}: expected a file name, found: {error}") from None


def refuse(path: Path, field: str, expected: object, found: object) -> NoReturn:
    """Raise ``BadInput`` (``bad_kernel_manifest``) with file, field, expected and found."""
    raise BadInput("bad_kernel_manifest", f"{path}: {field}: expected {expected}, found {found}")
