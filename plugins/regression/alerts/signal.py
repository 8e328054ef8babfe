"""What a night shows that somebody may have to look at: the input of everything about alerts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from regression.results.columns import ALERT_DIRECTIONS, ALERT_OUTCOMES

AGREEMENT, ENERGY, TIME, ENVIRONMENT, NIGHT = ("agreement", "energy", "time", "environment", "night")
QUALIFICATION, REPEATABILITY, MEMORY = ("qualification", "repeatability", "memory")
METRICS = (AGREEMENT, QUALIFICATION, REPEATABILITY, ENERGY, TIME, MEMORY, ENVIRONMENT, NIGHT)
MISSING = "missing"


@dataclass(frozen=True)
class Signal:
    """One thing that went wrong in one night.

    Signals with the same workload, device, metric and direction are about the same alert. ``run_id`` is the run that
    showed it; where there was none, as in a missing night, ``night`` is the planned time of that night: the same run or
    night never counts twice. ``headline`` is one line that says what happened, without workload and device; ``facts``
    are labels with a line each, in the order in which they are shown. ``value`` and ``baseline_value`` are in ``unit``.
    """

    workload: str
    metric: str
    direction: str
    outcome: str
    headline: str
    device_id: int | None = None
    device: str | None = None
    facts: tuple[tuple[str, str], ...] = field(default=())
    run_id: str | None = None
    night: datetime | None = None
    value: float | None = None
    baseline_value: float | None = None
    unit: str | None = None
    baseline_id: int | None = None

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for what no alert can be made of."""
        for name, words in (("metric", METRICS), ("direction", ALERT_DIRECTIONS), ("outcome", ALERT_OUTCOMES)):
            if getattr(self, name) not in words:
                raise ValueError(f"{name}: expected one of {', '.join(words)}, found {getattr(self, name)!r}")
        if (self.run_id is None) == (self.night is None):
            raise ValueError("a signal is of a run or of a night without one: expected run_id or night")
        if self.night is not None and self.night.tzinfo is None:
            raise ValueError(f"night: expected an aware time, found {self.night}")
        if not self.headline.strip() or len(self.headline.splitlines()) != 1:
            raise ValueError(f"headline: expected one line, found {self.headline!r:.80}")
