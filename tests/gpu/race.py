"""The interleaved benchmark: every round runs every contestant once, each time in another order."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.gpu.contestants import Contestant

SEGMENT_MS = 100.0
FEWEST_REPEATS = 3


@dataclass
class Row:
    """One contestant: microseconds a run in each round, or why there are none."""

    name: str
    repeats: int
    us_per_run: list[float]
    agreed: int | None
    unavailable: str | None

    @property
    def median_us(self) -> float | None:
        """Median over the rounds."""
        return statistics.median(self.us_per_run) if self.us_per_run else None


def race(
    makers: dict[str, Callable[[], Contestant]], frozen: np.ndarray, rounds: int, segment_ms: float = SEGMENT_MS
) -> list[Row]:
    """Rows in the order of ``makers``; ``frozen`` are the predictions that every contestant's last run has to have.

    Interleaving makes a drift of clocks or temperature meet all alike. A segment is ``segment_ms`` long by what a
    calibration found, so that a slow contestant gets no more time than a fast one.
    """
    rows = {name: Row(name, 0, [], None, None) for name in makers}
    running: dict[str, Contestant] = {}
    try:
        for name, make in makers.items():
            try:
                running[name] = make()
                rows[name].repeats = _calibrate(running[name], segment_ms)
            except Exception as error:  # whatever keeps one from running (torch.compile alone raises dozens of kinds)
                running.pop(name, None)
                rows[name].unavailable = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        names = list(running)
        for number in range(rounds):
            start = number % max(1, len(names))
            for name in names[start:] + names[:start]:
                repeats = rows[name].repeats
                rows[name].us_per_run.append(running[name].run(repeats) * 1000 / repeats)
        for name, contestant in running.items():
            rows[name].agreed = int(np.sum(contestant.predictions() == frozen))
    finally:
        for contestant in running.values():
            contestant.close()
    return list(rows.values())


def _calibrate(contestant: Contestant, segment_ms: float) -> int:
    """Repeats that fill a segment; warms up on the way."""
    contestant.run(FEWEST_REPEATS)
    per_run = contestant.run(FEWEST_REPEATS) / FEWEST_REPEATS
    if per_run < segment_ms / 20:
        several = max(FEWEST_REPEATS, int(segment_ms / 20 / max(per_run, 1e-4)))
        per_run = contestant.run(several) / several
    return max(FEWEST_REPEATS, int(segment_ms / max(per_run, 1e-4)))


def table(rows: list[Row]) -> list[str]:
    """Lines for people: median, range over the rounds, ratio to the first row, agreement."""
    first = rows[0].median_us
    lines = [f"{'':<26}{'median us':>12}{'min':>12}{'max':>12}{'ratio':>9}{'agreed':>9}"]
    for row in rows:
        if row.median_us is None:
            lines.append(f"{row.name:<26}  not run: {row.unavailable}")
            continue
        ratio = f"{row.median_us / first:9.2f}" if first else f"{'':>9}"
        spread = f"{min(row.us_per_run):12.2f}{max(row.us_per_run):12.2f}"
        lines.append(f"{row.name:<26}{row.median_us:12.2f}{spread}{ratio}{row.agreed:>9}")
    return lines
