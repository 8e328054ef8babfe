"""What an original record says in sentences is its author's words; a run keeps its figures, names and hashes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

SENTENCES = frozenset(
    {
        *("stdout", "stderr"),
        *("scope", "timing_scope", "meaning", "frozen_qualification_comparison"),
        *("initialization", "normalization", "optimizer", "shuffle"),
    }
)
"""Keys of the original records whose values describe; what was printed are figures that stand elsewhere, too."""
COMMAND = "command"


def without_sentences(content: Any) -> Any:
    """A copy of JSON ``content`` without the values of ``SENTENCES``; one word says what something is, and stays.

    Of the paths in a command their last part stays.
    """
    if isinstance(content, dict):
        return {key: _kept(key, value) for key, value in content.items() if not _is_sentence(key, value)}
    if isinstance(content, list):
        return [without_sentences(value) for value in content]
    return content


def left_out(content: Any, where: str = "$") -> Iterator[str]:
    """Where ``without_sentences`` leaves something out."""
    if isinstance(content, dict):
        for key, value in content.items():
            path = f"{where}.{key}"
            yield from [path] if _is_sentence(key, value) else left_out(value, path)
    if isinstance(content, list):
        for number, value in enumerate(content):
            yield from left_out(value, f"{where}[{number}]")


def _kept(key: str, value: Any) -> Any:
    if key == COMMAND and isinstance(value, list):
        return [PurePosixPath(word).name if str(word).startswith("/") else word for word in value]
    return without_sentences(value)


def _is_sentence(key: str, value: Any) -> bool:
    return key in SENTENCES and isinstance(value, str) and any(mark in value for mark in " \n")
