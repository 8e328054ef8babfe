"""What git says of the history of ``kernels/``: read only."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpu_tasks.candidates import repository
from local.errors import LauncherError, Usage
from local.paths import ROOT

KERNELS = "kernels"
_BISECTED = re.compile(r"([0-9a-f]{40,64}) \((?:.*, )?dist=\d+\)")


@dataclass(frozen=True)
class Commit:
    """What people know a commit by; the time is ISO 8601 with its zone, as the author's machine had it."""

    commit: str
    author: str
    date: str
    subject: str


def commit(ref: str) -> str:
    """Full hash of the commit that ``ref`` names; raises ``Usage`` where it names none."""
    if (why := repository.why_silent(ROOT)) is not None:
        raise Usage(f"{ref}: expected a git repository at {ROOT} to find it in, found none: {why}")
    found = repository.resolve(ROOT, ref)
    if found is None:
        raise Usage(f"{ref}: expected a git ref of this checkout, found none of that name")
    return found


def is_ancestor(earlier: str, later: str) -> bool:
    """Whether ``later`` has ``earlier`` in its history, or is it."""
    return _git("merge-base", "--is-ancestor", earlier, later, accept=(0, 1)).returncode == 0


def between(good: Sequence[str], bad: str) -> list[str]:
    """Commits that change ``kernels/``, in ``bad`` and in none of ``good``: those first that halve the rest best."""
    listed = _text(_git("rev-list", "--bisect-all", bad, *(f"^{each}" for each in good), "--", KERNELS))
    found = [_BISECTED.fullmatch(line) for line in listed.splitlines()]
    return [match[1] for match in found if match]


def newest(bad: str, good: str) -> str | None:
    """The latest commit that changes ``kernels/`` in ``bad`` and not in ``good``: the kernels of ``bad`` are its."""
    return _text(_git("rev-list", "--max-count=1", bad, f"^{good}", "--", KERNELS)) or None


def describe(commits: Iterable[str]) -> list[Commit]:
    """Each commit with author, date and subject, in the order given; what does not show is left out of the words."""
    form = "--format=%H%x00%an%x00%aI%x00%s"
    lines = [_text(_git("show", "--no-patch", form, each)) for each in commits]
    parts = [[_shown(part) for part in line.split("\0")] for line in lines]
    return [Commit(*part) for part in parts]


def _shown(text: str) -> str:
    return "".join(character for character in text if character.isprintable())


def _git(*arguments: str, accept: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[bytes]:
    found = repository.git(ROOT, *arguments)
    if found.returncode not in accept:
        raise LauncherError(f"git {arguments[0]}: {repository.complaint(found)}")
    return found


def _text(found: subprocess.CompletedProcess[bytes]) -> str:
    return found.stdout.decode("utf-8", "replace").strip("\n")
