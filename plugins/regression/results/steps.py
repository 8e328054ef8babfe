"""The steps in which a run is judged: its first rounds, and these together with its confirmation rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Row, func, select

from regression.detectors import CheckVerdict
from regression.detectors.confirmation import with_first_look
from regression.results import tables
from regression.results.checks import Finding
from regression.results.history import rounds_expected


def findings_by_step(
    connection: Connection, run: Row[Any], baseline_id: int | None, judge: Callable[[int], CheckVerdict]
) -> list[Finding]:
    """What ``judge`` says of each step; the last one is told with what the first rounds alone had said."""
    measured = tables.round_.c
    last = connection.execute(select(func.max(measured.step)).where(measured.run_id == run.run_id)).scalar_one()
    first = judge(0)
    if not last:
        return [Finding(first, baseline_id)]
    more = run.confirmation_rounds or 0
    pooled = with_first_look(first, judge(1), rounds_expected(run, 0), more)
    return [Finding(first, baseline_id), Finding(pooled, baseline_id, 1)]
