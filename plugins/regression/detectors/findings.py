"""Several things that one check found: the worst decides, and all of them are told in its details."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regression.detectors.verdict import Verdict

SHOWN = 3
ORDER = (Verdict.REGRESSED, Verdict.INVALID, Verdict.INCONCLUSIVE, Verdict.IMPROVED, Verdict.OK, Verdict.UNAVAILABLE)
"""What was seen wins over what could not be looked at, and that over everything that is fine."""


@dataclass(frozen=True)
class Found:
    """One finding: its verdict, documented word, line, and side; ``details`` holds JSON values only."""

    verdict: Verdict
    code: str
    text: str
    direction: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Everything of it, as ``check_result.details`` has it."""
        return {"verdict": self.verdict.value, "code": self.code, "text": self.text, **self.details}


def worst_of(findings: Sequence[Found]) -> Found:
    """The finding that decides: the first of the worst ones; there must be one at least."""
    return min(findings, key=lambda found: ORDER.index(found.verdict))


def text_of(findings: Sequence[Found], shown: int = SHOWN) -> str:
    """The first of the findings that have the deciding verdict, and how many more there are."""
    verdict = worst_of(findings).verdict
    same = list(dict.fromkeys(found.text for found in findings if found.verdict is verdict))
    more = f" | and {len(same) - shown} more findings" if len(same) > shown else ""
    return " | ".join(same[:shown]) + more


def names(found: Sequence[str], shown: int = SHOWN) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(found) - shown} more" if len(found) > shown else ""
    return ", ".join(found[:shown]) + more
