"""What the benchmark of the history found, as Markdown."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.benchmarks.history_asked import Asked
from tests.benchmarks.history_rows import Generated


@dataclass
class Times:
    """Milliseconds by the clock, those of them that a CPU worked, and how many rows came back."""

    ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    rows: int = 0
    failed: str | None = None

    @property
    def p50(self) -> float:
        return statistics.median(self.ms)

    @property
    def p95(self) -> float:
        """Of few samples the largest."""
        return sorted(self.ms)[min(len(self.ms) - 1, int(0.95 * len(self.ms)))]

    @property
    def cpu(self) -> float:
        return statistics.median(self.cpu_ms)

    def figures(self) -> dict[str, Any]:
        if self.failed:
            return {"failed": self.failed}
        figures = {"p50": self.p50, "p95": self.p95, "cpu": self.cpu}
        return {name: round(value, 3) for name, value in figures.items()} | {"times": len(self.ms)}

    def __str__(self) -> str:
        return f"{self.failed} | | " if self.failed else " | ".join(map(_ms, (self.p50, self.p95, self.cpu)))


@dataclass
class Measured:
    """One history."""

    nights: int
    made: Generated
    sizes: list[tuple[str, int, int]]
    answers: list[tuple[Asked, Times]]
    loads: dict[str, Times]


def as_markdown(options: str, version: str, whole: Measured, tenth: Measured) -> str:
    """Everything that was measured: how, sizes, and one line for each that was asked; times in ms."""
    now, load = datetime.now(UTC), os.getloadavg()[2]
    lines = [
        f"`PYTHONPATH=plugins python -m tests.benchmarks.history {options}`, {now:%Y-%m-%d}, {version}, "
        f"Python {platform.python_version()}, {os.cpu_count()} cores with a load of {load:.1f}.",
        "",
        f"| | {whole.nights:,} nights | {tenth.nights:,} nights |",
        "|---|---:|---:|",
    ]
    for name, count in whole.made.rows.items():
        lines.append(f"| rows of `{name}` | {count:,} | {tenth.made.rows[name]:,} |")
    lines.append(f"| seconds to make and load them | {whole.made.seconds:.0f} | {tenth.made.seconds:.0f} |")
    lines.append(f"| of these in PostgreSQL | {whole.made.loading_s:.0f} | {tenth.made.loading_s:.0f} |")
    for name, times in whole.loads.items():
        lines.append(
            f"| load of one more night {name}: p50, p95, CPU in ms | {_three(times)} | {_three(tenth.loads[name])} |"
        )
    lines += ["", *_size_lines(whole, tenth)]
    for kinds in (("view", "Grafana"), ("question",)):
        lines += ["", *_answer_lines(whole, tenth, kinds)]
    return "\n".join([*lines, ""])


def as_json(options: str, version: str, histories: Sequence[Measured]) -> str:
    """The same figures, unrounded but for microseconds, of the histories that are done."""
    found = [
        {
            "nights": history.nights,
            "rows": history.made.rows,
            "seconds": round(history.made.seconds, 1),
            "loading_s": round(history.made.loading_s, 1),
            "bytes_of_rows": {name: rows for name, rows, _ in history.sizes},
            "bytes_of_indexes": {name: indexes for name, _, indexes in history.sizes},
            "loads_ms": {name: times.figures() for name, times in history.loads.items()},
            "answers_ms": [
                {"kind": one.kind, "name": one.name, "use": one.use, "aim_ms": one.aim_ms, "rows": times.rows}
                | times.figures()
                for one, times in history.answers
            ],
        }
        for history in histories
    ]
    about = {
        "options": options,
        "postgresql": version,
        "python": platform.python_version(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[2], 1),
    }
    return json.dumps(about | {"histories": found}, indent=1) + "\n"


def _size_lines(whole: Measured, tenth: Measured) -> list[str]:
    smaller = {name: rows + indexes for name, rows, indexes in tenth.sizes}
    lines = ["| table | MB of rows | MB of indexes | MB of a tenth |", "|---|---:|---:|---:|"]
    of_rows, of_indexes = sum(size[1] for size in whole.sizes), sum(size[2] for size in whole.sizes)
    lines.append(f"| all | {_mb(of_rows)} | {_mb(of_indexes)} | {_mb(sum(smaller.values()))} |")
    for name, rows, indexes in whole.sizes:
        if rows + indexes >= 1e6:
            lines.append(f"| `{name}` | {_mb(rows)} | {_mb(indexes)} | {_mb(smaller[name])} |")
    return lines


def _answer_lines(whole: Measured, tenth: Measured, kinds: Sequence[str]) -> list[str]:
    lines = [
        "| asked | of | rows | p50 | p95 | CPU | a tenth: p50 | p95 | CPU | aim |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for (one, times), (_, other) in zip(whole.answers, tenth.answers, strict=True):
        if one.kind not in kinds:
            continue
        name = one.name if one.kind == "Grafana" else f"`{one.name}`"
        met = "missed"
        if not times.failed and times.cpu <= one.aim_ms:
            met = "met" if times.p95 <= one.aim_ms else "met by the CPU"
        lines.append(f"| {name} | {one.use} | {times.rows:,} | {times} | {other} | {one.aim_ms:.0f} {met} |")
    return lines


def _three(times: Times) -> str:
    return str(times).replace(" | ", ", ")


def _ms(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _mb(size: float) -> str:
    return f"{size / 1e6:,.0f}"
