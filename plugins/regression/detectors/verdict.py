"""What every detector returns: one typed verdict with its numbers, its reason and its direction."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Verdict(str, Enum):
    """Answer of one check.

    ``inconclusive``: something needed for the comparison is missing, or what there is shows neither a change nor that
    there is none (the reason says which). ``invalid``: the measurement cannot be used. ``unavailable``: this device
    cannot have the metric.
    """

    OK = "ok"
    REGRESSED = "regressed"
    IMPROVED = "improved"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True)
class Problem:
    """Why a part of the run is missing or unusable, as its record says: class of outcome, code, one line."""

    outcome: str
    code: str
    message: str


@dataclass(frozen=True)
class CheckVerdict:
    """Verdict of one check on one run.

    ``value`` and the ``baseline_`` figures are in ``unit``. ``direction`` is "lower", "higher", "changed" or None:
    where the value went relative to the baseline. ``reason_code`` is a documented snake_case word and ``reason``
    the one line that someone woken by it reads first. ``details`` holds JSON values only.
    """

    check: str
    verdict: Verdict
    metric: str
    unit: str
    reason_code: str
    reason: str
    value: float | None = None
    baseline_value: float | None = None
    baseline_low: float | None = None
    baseline_high: float | None = None
    direction: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


def finite(value: float | None) -> float | None:
    """The number itself, or None for None, NaN and infinities: a figure that is not there is not there."""
    return value if value is not None and math.isfinite(value) else None
