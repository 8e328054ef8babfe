"""The error of everything that is wrong inside a payload folder: file, field, expected and found."""

from __future__ import annotations

from gpu_tasks.records import BadInput, FileMismatch


class PayloadDefect(BadInput):
    """One file of a payload that cannot be used; carries the same four facts as a ``FileMismatch``."""

    def __init__(self, file: str, field: str, expected: str, found: str) -> None:
        super().__init__("bad_payload", f"{file}: {field}: expected {expected}, found {found}")
        self.mismatch = FileMismatch(file, field, expected, found)
