"""What happened in years of nights on many boards, made up from one seed: figures, failures, a few true changes."""

from __future__ import annotations

import hashlib
import random
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from gpu_tasks.records import run_id_for

LAST_NIGHT = date(2026, 11, 29)
MODELS = (
    ("Board A 40 GB", 0.66, 0.0164, 8.4),
    ("Board B 80 GB", 0.45, 0.0102, 5.9),
    ("Board C 141 GB", 0.41, 0.0097, 5.1),
)
"""Name, mJ a replay, ms a replay, J per 10^12 operations."""
DRIVER_NIGHTS = 420
SOURCE_NIGHTS = 90
KERNEL_NIGHTS = 500
DRAWS, ROUNDS = 11, 7
ROUND_SD = 0.008
"""Standard deviation of the rounds of a night, relative: what their own uncertainty says, too."""
REASONS = ("throttled", "other_process", "clock_changed", "counter_stalled", "output_differs")
GATES_THAT_FAIL = ("meters_agree", "round_spread", "sampling", "exclusive", "reference_load")
REGRESSIONS = {5: range(12, 21), 3: range(160, 201), 11: range(900, 960), 14: range(2500, 2512)}
"""Board: the nights, counted back from the last, on which its kernel needed six per cent more."""
HOT_QUERIES = [(draw, index, draw % 7) for draw in (0, 3, 7) for index in (17, 40, 111, 289, 305, 512, 700, 901)]
"""Draw, query and right answer of those on the edge between two classes."""


def digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


@dataclass(frozen=True)
class Board:
    """A GPU with its own level of energy."""

    number: int
    uuid: str
    model: str
    mj: float
    ms: float
    joules: float


@dataclass(frozen=True)
class Measured:
    """A round: figures a replay, or why it may not be used."""

    mj: float
    ms: float
    reason: str | None


@dataclass(frozen=True)
class Night:
    """One run, before it is rows."""

    board: Board
    dag_run_id: str
    trigger: str
    started_at: datetime
    driver: int
    sources: int
    kernel: str
    ptx_sha256: str
    wrong: dict[int, list[tuple[int, int, int]]]
    rounds: list[Measured]
    failed_gate: str | None
    lost: bool
    tripped: bool
    joules: float
    run_id: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "run_id", run_id_for("nightly_qda", self.dag_run_id))

    @property
    def valid(self) -> list[Measured]:
        return [measured for measured in self.rounds if measured.reason is None]

    @property
    def verdict(self) -> str:
        if self.lost:
            return "infrastructure_failure"
        if self.wrong or self.tripped:
            return "regression"
        if self.failed_gate:
            return "invalid_measurement"
        return "ok" if len(self.valid) > 5 else "inconclusive"

    @property
    def median_mj(self) -> float:
        return statistics.median(measured.mj for measured in self.valid)


def boards(count: int, rng: random.Random) -> list[Board]:
    """``count`` boards of three models, each a few per cent from its model."""
    made = []
    for number in range(count):
        model, mj, ms, joules = MODELS[number % len(MODELS)]
        own = rng.gauss(1, 0.03)
        uuid = f"GPU-{digest('board', number)[:12]}"
        made.append(Board(number, uuid, model, mj * own, ms * rng.gauss(1, 0.004), joules * own))
    return made


def story(count: int, nights: int, rng: random.Random) -> Iterator[tuple[int, list[Night]]]:
    """Nights in the order of time, each with its runs.

    One scheduled run in 300 is missing; on one night in 50 a board has a second run, by hand, of another kernel.
    """
    fleet = boards(count, rng)
    drift = [1.0]
    while len(drift) < nights // DRIVER_NIGHTS + 3:
        drift.append(drift[-1] * rng.gauss(1, 0.01))
    for place in range(nights):
        runs = []
        for board in fleet:
            if rng.random() > 1 / 300:
                runs.append(_run(board, _Night(place, nights, drift), "scheduled", rng))
            if rng.random() < 1 / 50:
                runs.append(_run(board, _Night(place, nights, drift), "manual", rng))
        yield place, runs


@dataclass(frozen=True)
class _Night:
    """Place in the order of time, how many there are, and the level of energy under each driver."""

    place: int
    nights: int
    drift: list[float]


def _run(board: Board, night_of: _Night, trigger: str, rng: random.Random) -> Night:
    place, nights, drift = night_of.place, night_of.nights, night_of.drift
    ago = nights - 1 - place
    night = LAST_NIGHT - timedelta(days=ago)
    driver = (place + 17 * board.number) // DRIVER_NIGHTS
    kernel = "fused" if trigger == "manual" else "original" if place < nights // 3 else "class_blocks"
    tripped = ago in REGRESSIONS.get(board.number, ()) and trigger == "scheduled"
    lost = rng.random() < 1 / 300
    level = drift[driver] * (1.06 if tripped else 1.0) * rng.gauss(1, 0.005) * (0.8 if kernel == "fused" else 1.0)
    minutes = 3 * board.number + (600 if trigger == "manual" else 0)
    start = datetime(night.year, night.month, night.day, 2, tzinfo=UTC) + timedelta(minutes=minutes)
    return Night(
        board=board,
        dag_run_id=f"{trigger}__{night}_{board.number:02d}",
        trigger=trigger,
        started_at=start + timedelta(seconds=rng.randrange(60)),
        driver=driver,
        sources=place // SOURCE_NIGHTS,
        kernel=kernel,
        ptx_sha256=digest("ptx", kernel, place // KERNEL_NIGHTS),
        wrong={} if lost or rng.random() > 1 / 120 else _wrong(rng),
        rounds=[] if lost else [_measured(board, level, rng) for _ in range(ROUNDS)],
        failed_gate=rng.choice(GATES_THAT_FAIL) if not lost and rng.random() < 1 / 100 else None,
        lost=lost,
        tripped=tripped and not lost,
        joules=board.joules * rng.gauss(1, 0.004),
    )


def _wrong(rng: random.Random) -> dict[int, list[tuple[int, int, int]]]:
    """A few queries on the edge between two classes: draw to index, expected, found."""
    found: dict[int, list[tuple[int, int, int]]] = {}
    for draw, index, answer in rng.sample(HOT_QUERIES, rng.choice((1, 1, 1, 2, 3))):
        found.setdefault(draw, []).append((index, answer, (answer + 1 + index % 3) % 10))
    return found


def _measured(board: Board, level: float, rng: random.Random) -> Measured:
    reason = rng.choices(REASONS, (50, 20, 15, 10, 5))[0] if rng.random() < 1 / 80 else None
    return Measured(board.mj * level * rng.gauss(1, ROUND_SD), board.ms * rng.gauss(1, 0.002), reason)
