"""The pins: sha256 of every file that can change a result, code and data, in ``gpu_tasks/SOURCES.sha256``.

Format of ``sha256sum``: ``<64 hex digits>  <path from the repository root>``, sorted by path, so that
``sha256sum -c gpu_tasks/SOURCES.sha256`` works too.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from gpu_tasks.records import BadInput, FileMismatch, VerificationMismatch, write_text_atomically

ROOT = Path(__file__).resolve().parents[1]
PINS = "gpu_tasks/SOURCES.sha256"
PIN_COMMAND = "./nightly pin"
TRY_COMMAND = "./nightly try"
MISSING = "missing"
"""What is found where a pinned file should be and is not."""

UNREADABLE = "no file that can be read"

_HOUSES = ("gpu_tasks", "kernels")
_NO_RESULT = {".md", ".orig", ".rej", ".swp"}
"""Suffixes of documents, and of what editors and merges leave behind."""

_SETS = "gpu_tasks/payload/"
_SHIPPED_SET = "gpu_tasks/payload/original"
_OF_A_SET = {".json", ".npy", ".npz"}
_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")


@dataclass(frozen=True)
class SourcesReport:
    """What was found: sha256 of the pins file, sha256 of every source by path, and the differences."""

    pins_sha256: str
    found: dict[str, str]
    mismatches: list[FileMismatch]


def source_files(root: Path) -> list[str]:
    """Paths from ``root`` of the files to pin, sorted.

    Whatever is there, of whatever kind: code, PTX, baselines, environment locks, the shipped draws, what is frozen of a
    workload. A list of kinds would leave out the file that nobody thought of. Not sources are the pins themselves,
    caches, hidden files, documents, what editors leave behind, and the arrays of sets of draws that users build, which
    manifests of their own pin.
    """
    paths = []
    for house in _HOUSES:
        for folder, subfolders, files in os.walk(root / house):
            here = Path(folder).relative_to(root)
            subfolders[:] = [name for name in subfolders if not name.startswith(".") and name != "__pycache__"]
            linked = [name for name in subfolders if (root / here / name).is_symlink()]  # nobody walks into these
            paths += [path for name in files + linked if _is_source(path := (here / name).as_posix())]
    return sorted(paths)


def _is_source(path: str) -> bool:
    name, suffix = path.rpartition("/")[2], Path(path).suffix
    if path == PINS or name.startswith((".", "#")) or name.endswith("~") or suffix in _NO_RESULT:
        return False
    return not (_is_in_a_users_set(path) and suffix in _OF_A_SET)


def _is_in_a_users_set(path: str) -> bool:
    """Code there counts all the same: a folder beside the modules is a package that can hide one of them."""
    inside = path.removeprefix(_SETS)
    return inside != path and "/" in inside and not path.startswith(f"{_SHIPPED_SET}/")


def hash_sources(root: Path) -> dict[str, str]:
    """sha256 of every source file by path; ``UNREADABLE`` of what is named as one and cannot be read."""
    return {path: _digest(root / path) for path in source_files(root)}


def _digest(path: Path) -> str:
    """A pipe could keep us waiting, a link lead in a circle."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        pass
    return UNREADABLE


def pinnable(root: Path) -> dict[str, str]:
    """sha256 of every source file by path; raises ``BadInput`` (``unpinnable_source``) for what no line can pin."""
    hashes = hash_sources(root)
    for path, digest in hashes.items():
        if digest == UNREADABLE or not path.isprintable():
            found = UNREADABLE if digest == UNREADABLE else "another name"
            message = f"{path}: expected a file with a printable name, found {found}"
            raise BadInput("unpinnable_source", message)
    return hashes


def write_pins(root: Path) -> int:
    """Pin what is there now; returns the number of files. Raises ``BadInput`` as ``pinnable`` does."""
    hashes = pinnable(root)
    write_text_atomically("".join(f"{digest}  {path}\n" for path, digest in hashes.items()), root / PINS)
    return len(hashes)


def verify_sources(root: Path) -> SourcesReport:
    """Compare every source with its pin; raises ``VerificationMismatch`` when the pins cannot be read."""
    try:
        data = (root / PINS).read_bytes()
    except OSError as error:
        raise VerificationMismatch(
            "pins_unreadable", f"{PINS}: expected a file of pins, found: {error.strerror}"
        ) from None
    pinned, found = _parse(data), hash_sources(root)
    mismatches = [
        FileMismatch(_shown(path), "sha256", pinned.get(path, "not pinned"), found.get(path, MISSING))
        for path in sorted(pinned.keys() | found.keys())
        if pinned.get(path) != found.get(path)
    ]
    files = {_shown(path): digest for path, digest in found.items() if digest != UNREADABLE}
    return SourcesReport(hashlib.sha256(data).hexdigest(), files, mismatches)


def _shown(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode()


def _parse(data: bytes) -> dict[str, str]:
    pins: dict[str, str] = {}
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in pins:
            raise VerificationMismatch(
                "pins_unreadable", f"{PINS}: line {number}: expected a sha256 and a new path, found {line[:80]!r}"
            )
        pins[match[2]] = match[1]
    return pins
