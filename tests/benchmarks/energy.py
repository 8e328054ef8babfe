"""How right the energy figures are, where the truth is known: rounds on simulated boards, and Zeus on the same ones.

    python -m tests.benchmarks.energy [--zeus PYTHON] [--boards N] [--out FILE]

For each update period of the counter and each way in which idle power drifts, so many boards are made, one round of
each protocol is measured on each, and its figures are compared with what the board was told to use: bias, how much of
it is left once the stated one is taken off, standard deviation, how often the stated 95 % interval holds the truth,
and the smallest difference that 7 rounds find. A round begins on a board that has idled for a minute.

``PYTHON`` is an interpreter that has zeus (this one by default); without zeus those rows are left out.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from gpu_tasks.energy.protocols import AUDITED, CLASSIC
from gpu_tasks.energy.quantiles import detectable_difference
from gpu_tasks.records import DRIFTS, EnergyFigure
from tests.benchmarks.energy_board import Board, seed_of

ROOT = Path(__file__).resolve().parents[2]
PERIODS_S = (0.02, 0.05, 0.1)
ROUNDS = 7
BLOCKS = 4
SEED = 20261130
CHUNK, ZEUS_CHUNK = 50, 500  # boards a task: an interpreter takes seconds to import zeus
CLASSIC_ROW, ZEUS_ROW = "classic", "Zeus, windows of classic"


@dataclass(frozen=True)
class Error:
    """Of one figure on one board, mJ: ``left`` without the bias that it stated, ``held`` by its interval or not.

    Both are None of a measurement that states neither.
    """

    error: float
    left: float | None = None
    held: bool | None = None


@dataclass(frozen=True)
class Task:
    """Some boards of one period and drift: ``count`` of them from number ``first`` on."""

    period_s: float
    drift: str
    seed: int
    first: int
    count: int
    blocks: int
    zeus: str


def main() -> None:
    """Measure, print one table, and write everything as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boards", type=int, default=2000, help="boards for each period and drift (default: 2000)")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--blocks", type=int, default=BLOCKS, help="blocks of an interleaved round (default: 4)")
    parser.add_argument("--periods", type=float, nargs="+", default=PERIODS_S, metavar="S", help="of the counter")
    parser.add_argument("--drifts", nargs="+", default=DRIFTS, choices=DRIFTS, metavar="NAME", help="of idle power")
    parser.add_argument("--zeus", default=sys.executable, metavar="PYTHON", help="interpreter that has zeus")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the figures as JSON")
    arguments = parser.parse_args()
    arguments.zeus_version = _zeus_version(arguments.zeus)
    print(f"{arguments.boards} boards each, seed {arguments.seed}, zeus {arguments.zeus_version or 'not there'}")
    found = []
    print(
        f"{'':19}{'figure':<34}{'bias':>10}{'left':>10}{'sd':>10}{'/classic':>10}{'/Zeus':>8}{'held':>8}{'found':>10}"
    )
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for period_s, drift in itertools.product(arguments.periods, arguments.drifts):
            rows = _rows(pool, period_s, drift, arguments)
            print("\n".join(map(_line, rows)), flush=True)
            found += rows
    if arguments.out:
        about = {
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "boards": arguments.boards,
            "seed": arguments.seed,
            "blocks": arguments.blocks,
            "rounds": ROUNDS,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "zeus": arguments.zeus_version,
        }
        lines = ",\n".join(f"  {json.dumps(row)}" for row in found)
        text = json.dumps(about, indent=1)[:-2]
        arguments.out.write_text(f'{text},\n "figures": [\n{lines}\n ]\n}}\n', encoding="utf-8")


def _rows(pool: Executor, period_s: float, drift: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    errors: dict[str, list[Error]] = defaultdict(list)
    of_zeus = _tasks(period_s, drift, arguments, ZEUS_CHUNK) if arguments.zeus_version else []
    for chunk in [
        *pool.map(zeus_errors, of_zeus),
        *pool.map(errors_of, _tasks(period_s, drift, arguments, CHUNK)),
    ]:
        for board in chunk:
            for name, error in board.items():
                errors[name].append(error)
    rows = [_summary(period_s, drift, name, values) for name, values in errors.items()]
    sds = {row["figure"]: row["sd_mj"] for row in rows}
    for row in rows:
        row["sd_over_classic"] = _rounded(row["sd_mj"] / sds[CLASSIC_ROW], 3)
        row["sd_over_zeus"] = _rounded(row["sd_mj"] / sds[ZEUS_ROW], 3) if ZEUS_ROW in sds else None
    return rows


def _tasks(period_s: float, drift: str, arguments: argparse.Namespace, chunk: int) -> list[Task]:
    boards = arguments.boards
    return [
        Task(period_s, drift, arguments.seed, first, min(chunk, boards - first), arguments.blocks, arguments.zeus)
        for first in range(0, boards, chunk)
    ]


def errors_of(task: Task) -> list[dict[str, Error]]:
    """Error of each figure, board by board."""
    numbers = range(task.first, task.first + task.count)
    return [dict(_errors(task, seed_of(task.seed, number))) for number in numbers]


def _errors(task: Task, seed: int) -> Iterator[tuple[str, Error]]:
    for plan in (CLASSIC, AUDITED):
        board = Board(seed, period_s=task.period_s, drift=task.drift)
        for figure in board.figures_of(plan, board.look()):
            if figure.figure == "aligned":
                yield f"aligned ({plan.name} round)", _compared(figure, board)
            elif figure.figure == plan.name:
                yield plan.name, _compared(figure, board)
    board = Board(seed, period_s=task.period_s, drift=task.drift)
    for figure in board.interleaved_figures_of(task.blocks, board.look()):
        yield f"interleaved, {figure.subject}", _compared(figure, board)


def _compared(figure: EnergyFigure, board: Board) -> Error:
    truth_mj, stated = board.truth_mj(figure.subject), figure.uncertainty
    error = figure.adjusted_mj - truth_mj
    return Error(error, error - stated.bias_mj, stated.low_mj <= truth_mj <= stated.high_mj)


def zeus_errors(task: Task) -> list[dict[str, Error]]:
    """The same of Zeus on the same boards."""
    numbers = [str(value) for value in (task.period_s, task.drift, task.seed, task.first, task.count)]
    command = [task.zeus, "-m", "tests.benchmarks.zeus_window", *numbers]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)}: expected exit status 0, found: {result.stderr.strip()[-400:]}")
    boards = [json.loads(line) for line in result.stdout.splitlines()]
    return [{name: Error(error) for name, error in board.items()} for board in boards]


def _zeus_version(interpreter: str) -> str | None:
    """Version of zeus in the interpreter's environment, None where it has none."""
    code = "from importlib.metadata import version; print(version('zeus'))"
    result = subprocess.run([interpreter, "-c", code], capture_output=True, text=True, check=False)
    return result.stdout.strip() if result.returncode == 0 else None


def _summary(period_s: float, drift: str, name: str, values: list[Error]) -> dict[str, Any]:
    """What so many errors say."""
    left = [value.left for value in values if value.left is not None]
    held = [value.held for value in values if value.held is not None]
    sd = statistics.stdev(value.error for value in values)
    return {
        "tick_period_s": period_s,
        "drift": drift,
        "figure": name,
        "boards": len(values),
        "bias_mj": _rounded(statistics.mean(value.error for value in values), 6),
        "bias_left_mj": _rounded(statistics.mean(left), 6) if left else None,
        "sd_mj": _rounded(sd, 6),
        "coverage": _rounded(statistics.mean(held), 4) if held else None,
        "detectable_mj": _rounded(detectable_difference(sd, ROUNDS) or 0.0, 6),
    }


def _rounded(value: float, digits: int) -> float:
    return round(value, digits)


def _line(row: dict[str, Any]) -> str:
    """One row for people; mJ a replay."""

    def cell(name: str, form: str, width: int) -> str:
        value = row[name]
        return f"{'' if value is None else format(value, form):>{width}}"

    return (
        f"{1000 * row['tick_period_s']:>4.0f} ms {row['drift']:<12}{row['figure']:<34}"
        f"{cell('bias_mj', '+.5f', 10)}{cell('bias_left_mj', '+.5f', 10)}{cell('sd_mj', '.5f', 10)}"
        f"{cell('sd_over_classic', '.3f', 10)}{cell('sd_over_zeus', '.3f', 8)}{cell('coverage', '.1%', 8)}"
        f"{cell('detectable_mj', '.5f', 10)}"
    )


if __name__ == "__main__":
    main()
