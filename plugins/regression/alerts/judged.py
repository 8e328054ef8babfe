"""A run that was judged, as the alerts see it: how it ended and what its checks found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Check:
    """The last step of one check. ``first_look`` says what the step before it found, where there was one.

    ``plain_reason`` is the reason without what else changed; ``baseline`` names the accepted run, and when and by whom.
    """

    name: str
    verdict: str
    metric: str
    unit: str
    reason_code: str
    plain_reason: str
    value: float | None = None
    baseline_value: float | None = None
    baseline_low: float | None = None
    baseline_high: float | None = None
    direction: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    baseline_id: int | None = None
    baseline: str | None = None
    first_look: str | None = None


@dataclass(frozen=True)
class JudgedRun:
    """A run with its verdict (None: it was never settled) and the last step of each of its checks.

    ``candidate``: it tries a kernel that nights do not run. ``has_kernel``: it ran one whose PTX is known.
    """

    run_id: str
    dag_id: str
    dag_run_id: str
    workload: str
    trigger: str
    started_at: datetime
    verdict: str | None
    reason_code: str | None
    reason: str | None
    device_id: int | None
    device: str | None
    checks: Sequence[Check]
    label: str | None = None
    inject: str | None = None
    candidate: bool = False
    has_kernel: bool = True
