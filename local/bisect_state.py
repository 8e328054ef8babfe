"""How far a search through the history has come: one file, written after each step, read when it goes on."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpu_tasks.records import BadInput, read_record, write_record
from local.comparing_arguments import KERNEL_DEVICES, METRICS
from local.errors import Usage
from local.paths import ROOT, Home

GOOD, BAD, SKIPPED = "good", "bad", "skipped"
KIND = "bisect"
_COMMIT = re.compile(r"[0-9a-f]{40,64}")


@dataclass(frozen=True)
class Step:
    """What was found of one commit.

    ``judged`` is good, bad or skipped (it cannot be judged; ``told`` says why). ``value`` is in the metric's unit, of
    that commit alone or as the difference from the good one; ``told`` is it in words. ``bundle`` is the kernel: another
    commit with the same one needs no step of its own.
    """

    commit: str
    judged: str
    value: float | None
    told: str
    bundle: str | None


@dataclass(frozen=True)
class Search:
    """What is searched for, between which commits, and every step so far; the ends are the first two of them.

    ``root`` is the checkout, ``variant`` which of the kernels is looked at, ``against`` the bundle of it at the good
    end, which the others are held against. Where ``is_over``, ``first_bad`` are the commits one of which it is: one,
    unless commits beside it could not be judged.
    """

    kind: str  # "bisect"
    root: str
    metric: str
    good: str
    bad: str
    variant: str | None
    against: str | None
    device: str
    blocks: int | None
    params: dict[str, Any]
    steps: list[Step] = field(default_factory=list)
    is_over: bool = False
    first_bad: list[str] = field(default_factory=list)

    def step(self, commit: str) -> Step | None:
        """What was found of ``commit``; None: nothing yet."""
        return next((step for step in self.steps if step.commit == commit), None)

    def judged(self, word: str) -> list[Step]:
        """The steps with this answer, in the order in which they were made."""
        return [step for step in self.steps if step.judged == word]

    def with_step(self, step: Step) -> Search:
        """The search with one more answer."""
        return replace(self, steps=[*self.steps, step])


def path(home: Home) -> Path:
    """The file of this installation's search."""
    return home.bisect / "search.json"


def read(home: Home) -> Search | None:
    """The search as it was last written; None where there is none. Raises ``Usage`` for one that cannot be gone on."""
    if not path(home).exists():
        return None
    try:
        found = read_record(path(home), Search)
        _check(found, path(home))
    except BadInput as error:
        raise Usage(f"{error.message}; `./nightly bisect --reset` forgets it") from None
    if found.root != str(ROOT):
        raise Usage(f"a search in another checkout, {found.root}, was begun; go on there, or --reset")
    return found


def _check(search: Search, file: Path) -> None:
    """Refuse what no search can have written: it was edited, or is of another version. Raises ``BadInput``."""
    named = [search.good, search.bad, *search.first_bad, *(step.commit for step in search.steps)]
    words = [step.judged for step in search.steps]
    ends = [(step.commit, step.judged) for step in search.steps[:2]]
    rules = (
        ("kind", search.kind == KIND, repr(KIND), search.kind),
        ("metric", search.metric in METRICS, " or ".join(METRICS), search.metric),
        ("device", search.device in KERNEL_DEVICES, " or ".join(KERNEL_DEVICES), search.device),
        ("steps.commit", all(map(_COMMIT.fullmatch, named)), "full names of commits", "another name"),
        ("steps.judged", set(words) <= {GOOD, BAD, SKIPPED}, "good, bad or skipped", words),
        ("steps", ends == [(search.good, GOOD), (search.bad, BAD)][: len(ends)], "both ends first", ends),
        ("steps.value", all(step.value is not None for step in search.steps[:2]), "a value of each end", None),
        ("first_bad", not search.is_over or (len(ends) == 2 and search.first_bad), "an answer when it is over", "none"),
    )
    for name, holds, expected, found in rules:
        if not holds:
            raise BadInput("bad_search", f"{file}: $.{name}: expected {expected}, found {str(found)[:200]}")


def write(home: Home, search: Search) -> None:
    """Keep the search: whoever reads it sees the whole of it, as it was before or as it is now."""
    write_record(search, path(home))


def forget(home: Home) -> bool:
    """Remove the search; False where there was none."""
    there = path(home).exists()
    path(home).unlink(missing_ok=True)
    return there
