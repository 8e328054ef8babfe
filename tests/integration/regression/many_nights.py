"""Nights with given figures, one a day, and what the checks of a run find on them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Row

from gpu_tasks.records import RunRecord
from regression.results.baselines import accept_baseline
from regression.results.checks import Finding
from regression.results.history import find_run
from regression.results.history_checks import energy_history, time_history
from regression.results.loading import load_run
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import energy_round, energy_run
from tests.integration.regression.example_records import sha256_of

FIRST = datetime(2026, 12, 1, 2, tzinfo=UTC)
MJ, GROSS_MJ, MS, WALL_MS, IDLE_W = 0.6, 1.26, 0.0164, 0.0165, 40.0
"""Usual figures."""


def night(
    day: int,
    name: str | None = None,
    *,
    mj: float = MJ,
    gross_mj: float = GROSS_MJ,
    ms: float | None = MS,
    wall_ms: float = WALL_MS,
    idle_w: float = IDLE_W,
    hour: int = 0,
    request: dict[str, Any] | None = None,
    environment: dict[str, Any] | None = None,
    **changes: Any,
) -> RunRecord:
    """A verified scheduled run of seven audited rounds on that day from the first, its medians as given."""
    started = FIRST + timedelta(days=day, hours=hour)
    figures = {"cuda_ms": ms, "wall_ms": wall_ms, "idle_before_w": idle_w - 0.1, "idle_after_w": idle_w + 0.1}
    rounds = [energy_round(n, mj * (1 + (n - 3) / 500), **figures) for n in range(7)]
    record = energy_run(name or f"scheduled__{day:03d}", rounds=rounds, **changes)
    assert record.provision
    moment, end = (f"{at:%Y-%m-%dT%H:%M:%S.%fZ}" for at in (started, started + timedelta(minutes=5)))
    versions = replace(record.provision.environment, **(environment or {}))
    return replace(
        record,
        started_at=moment,
        completed_at=end,
        created_at=end,
        request=replace(record.request, **{"trigger": "scheduled", **(request or {})}),
        provision=replace(record.provision, environment=versions),
        summary=replace(record.summary, cuda_ms_median=ms, wall_ms_median=wall_ms, gross_mj_median=gross_mj),
    )


def noisy(count: int, seed: int = 7, *, first: int = 0, time: float = 1.0, energy: float = 1.0) -> Iterator[RunRecord]:
    """``count`` nights of half a percent of noise, their times and energies multiplied."""
    rng = random.Random(seed)
    for day in range(first, first + count):
        m, t, i = (1 + rng.gauss(0, 0.005) for _ in range(3))
        yield night(
            day,
            **{"mj": MJ * energy * m, "gross_mj": GROSS_MJ * energy * m, "idle_w": IDLE_W * i},
            **{"ms": MS * time * t, "wall_ms": WALL_MS * time * t},
        )


def store(database: Database, *records: RunRecord) -> None:
    for record in records:
        load_run(database.writer, record, sha256_of(record))


def accept(database: Database, record: RunRecord, **purposes: Any) -> int:
    run_id = record.request.run_id
    return accept_baseline(database.writer, run_id, accepted_by="test", reason="for the test", **purposes)


def stored_run(connection: Any, name: str) -> Row[Any]:
    return find_run(connection, "nightly_qda", name)


def histories(database: Database, name: str) -> dict[str, Finding]:
    """What the history checks find on a stored run."""
    with database.reader.connect() as connection:
        run = stored_run(connection, name)
        found = [*energy_history(connection, run), *time_history(connection, run)]
    return {finding.verdict.check: finding for finding in found}


def codes(found: dict[str, Finding], *checks: str) -> Sequence[str]:
    """Reason codes by check, of all of them by default."""
    return [found[check].verdict.reason_code for check in checks or found]
