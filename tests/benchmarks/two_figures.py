"""How often two figures of one energy cry wolf together, each at the threshold that two looks share; ``python -m``.

A trial's own figure is the board's energy with 4 % of its own noise, the aligned one with 0.4 %; the board itself has
the noise of ``simulated_nights``. Every night is judged as in use, by shift and drift of both, once with the thresholds
of one look and once with those of two. The steps are seen by either figure alone, and by both together.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from regression.detectors.drift import slow_drift
from regression.detectors.history import history_shift
from regression.detectors.series import Floats, Nights
from tests.benchmarks.detection import METRIC, SEED, YEAR, Judge, Told, found_after, judged, openings
from tests.benchmarks.simulated_nights import NOISES, Noise, nights, step

HISTORY = 180
BOARD, TRIAL, ALIGNED = 0.6, 4.0, 0.4
"""Noise in percent: of the board from night to night, and what each figure adds to it."""
STEPS = (5.0, 3.0)
FOLLOWING = 8
QUIET = 7


def main() -> None:
    """Measure, print each row, and write them as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=60, help="series-years of each kind of noise (default: 60)")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    rows = []
    for number, noise in enumerate(NOISES[:2]):
        rows += false_alerts(np.random.default_rng([arguments.seed, 5, number]), noise, arguments.series)
    for number, percent in enumerate(STEPS):
        rows += detections(np.random.default_rng([arguments.seed, 6, number]), percent, 2 * arguments.series)
    versions = {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__}
    for row in rows:
        print(json.dumps(row))
    if arguments.out:
        about = {"series": arguments.series, "seed": arguments.seed, **versions, "figures": rows}
        arguments.out.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def false_alerts(rng: np.random.Generator, noise: Noise, years: int) -> list[dict[str, Any]]:
    """Alerts a year without any change: of either figure alone, and of the two by the thresholds of one and of two."""
    made = [two_figures(rng, HISTORY + YEAR, noise) for _ in range(years)]
    rows = []
    for name, told in looks(made):
        per_year = sum(openings(one, QUIET) for one in told) / years
        rows.append({"what": "false alerts", "noise": noise.name, "by": name, "years": years, "per_year": per_year})
    return rows


def detections(rng: np.random.Generator, percent: float, count: int) -> list[dict[str, Any]]:
    """Shares of steps of so many percent that are told after so many nights."""
    shape = step(HISTORY, percent)
    made = [two_figures(rng, HISTORY + FOLLOWING, NOISES[0], shape) for _ in range(count)]
    rows = []
    for name, told in looks(made):
        first = [next((n + 1 for n, night in enumerate(one) if "higher" in night), None) for one in told]
        rows.append({"what": f"step {percent:g} %", "noise": NOISES[0].name, "by": name, **found_after(first)})
    return rows


def two_figures(
    rng: np.random.Generator, count: int, noise: Noise, shape: Callable[[Floats], Floats] | None = None
) -> tuple[Floats, Floats]:
    """A trial's own figure and the aligned one, of the same nights of one board."""
    level = 100 + BOARD * (nights(rng, count, noise) - 100)
    if shape is not None:
        level = level * (1 + shape(np.arange(count, dtype=np.float64)) / 100)
    return tuple(level * (1 + own * rng.normal(size=count) / 100) for own in (TRIAL, ALIGNED))  # type: ignore[return-value]


def looks(made: list[tuple[Floats, Floats]]) -> list[tuple[str, list[Told]]]:
    """What is told from night ``HISTORY`` on: by each figure as if it were alone, by both so, and by both as in use."""
    alone = [[told(figures, 1) for figures in both] for both in made]
    shared = [[told(figures, 2) for figures in both] for both in made]
    return [
        ("trial alone", [one for one, _ in alone]),
        ("aligned alone", [one for _, one in alone]),
        ("both, thresholds of one", [together(*both) for both in alone]),
        ("both, as in use", [together(*both) for both in shared]),
    ]


def told(figures: Floats, of: int) -> Told:
    """What shift and drift of one figure tell, one of so many looks."""
    return together(*(judged(figures, HISTORY, _one_of(judge, of)) for judge in (history_shift, slow_drift)))


def together(one: Told, other: Told) -> Told:
    """What either tells, night by night."""
    return [first | second for first, second in zip(one, other, strict=True)]


def _one_of(judge: Judge, looks: int) -> Judge:
    metric = replace(METRIC, looks=looks)

    def judging(_: Any, known: Nights) -> Any:
        return judge(metric, known)

    return judging


if __name__ == "__main__":
    main()
