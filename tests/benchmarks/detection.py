"""How often the detectors cry wolf and how soon they find a change, where the truth is known; run with ``python -m``.

Seeded series are analysed again every night, as in use, by ours (history shift and slow drift together), by the rule
of Perfherder and, with ``--otava PYTHON``, by Apache Otava. False alerts are counted on series without any change: an
alert that comes back within a week of its last night is the same one. ``strict`` counts each night that tells after
one that did not. For the peers, a change point within three nights of one that was told before is the same one; it is
retracted when it is gone on a later night, of the 40 after it.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from regression.detectors.drift import slow_drift
from regression.detectors.history import HistorySettings, history_shift
from regression.detectors.series import Floats, Metric, Nights
from regression.detectors.verdict import CheckVerdict, Verdict
from tests.benchmarks import perfherder_rule, simulated_nights
from tests.benchmarks.otava_nightly import FLOORS
from tests.benchmarks.simulated_nights import NOISES, Noise, creep, step

SEED = 20261130
YEAR = 365
QUIET = 7
FOUND_AFTER = (1, 2, 3, 5, 8, 12)
AIMED_AT = ("iid", "AR(1) 0.4")
"""Kinds of noise with a stated aim; of the others a fifth as many series are made."""
SAME_POINT = 3
"""Change points so many nights apart are one."""
IN_SIGHT = 40
"""A change point that goes within so many nights was taken back; later, a peer may no longer look at it."""
PEER_YEARS = 10
"""Series-years of the peers, of each kind of noise."""
METRIC = Metric("figure", "ms")
THRESHOLDS = (3.6, 3.86, 4.2)

CHANGES: tuple[tuple[str, Noise, int, Callable[[int], Callable[[Floats], Floats]]], ...] = (
    *(("step 3 %", noise, 180, step) for noise in NOISES[:5]),
    ("step 3 %", NOISES[0], 60, step),
    ("step 5 %", NOISES[0], 180, partial(step, percent=5.0)),
    ("step 1.2 %", NOISES[0], 180, partial(step, percent=1.2)),
    *(("creep 0.5 % a night", noise, 180, creep) for noise in NOISES[:2]),
    ("creep 0.1 % a night", NOISES[0], 180, partial(creep, percent=0.1)),
)
"""Changes after a history of so many nights."""

Told = list[set[str]]
"""For each night the directions that are told."""


def main() -> None:
    """Measure, print the tables, and write everything as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=300, help="series-years of noise with an aim (default: 300)")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--otava", type=Path, help="Python of an environment with apache-otava; left out without it")
    parser.add_argument("--out", type=Path, help="write the figures as JSON; continued if it is there")
    arguments = parser.parse_args()
    otava = [str(arguments.otava), str(Path(__file__).with_name("otava_nightly.py"))] if arguments.otava else None
    about = {
        "series": arguments.series,
        "seed": arguments.seed,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "otava": _otava_version(arguments.otava),
    }
    found = _figures_so_far(arguments.out, about)
    for name, case in cases(arguments.series, arguments.seed, otava):
        if any(row["case"] == name for row in found):
            continue
        for row in case():
            print(json.dumps({"case": name, **row}), flush=True)
            found.append({"case": name, **row})
        if arguments.out:
            made = {**about, "made_at": datetime.now(UTC).isoformat(timespec="seconds"), "figures": found}
            arguments.out.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


def cases(series: int, seed: int, otava: list[str] | None) -> Iterator[tuple[str, Callable[[], list[dict[str, Any]]]]]:
    """Name and figures of each case; each has its own generator of random numbers."""
    quiet = [*((noise, 180) for noise in NOISES), (NOISES[0], 0), (NOISES[1], 0)]
    for number, (noise, before) in enumerate(quiet):
        rng = np.random.default_rng([seed, 1, number])
        count = series if noise.name in AIMED_AT and before else max(1, series // 5)
        yield f"false alerts {number}", partial(false_alerts, rng, noise, before, count, otava)
    for number, (what, noise, before, shape) in enumerate(CHANGES):
        rng = np.random.default_rng([seed, 2, number])
        yield f"change {number}", partial(detections, rng, what, noise, before, shape, series=series, otava=otava)
    for threshold in THRESHOLDS:
        yield f"threshold {threshold}", partial(other_threshold, threshold, max(1, series // 5), seed)


def false_alerts(
    rng: np.random.Generator, noise: Noise, before: int, count: int, otava: list[str] | None
) -> list[dict[str, Any]]:
    """Alerts in a series-year of one kind of noise without any change, ``before`` nights from the first one on."""
    about = {"what": "false alerts", "noise": noise.name, "history": before}
    years = [simulated_nights.nights(rng, before + YEAR, noise) for _ in range(count)]
    rows: list[dict[str, Any]] = []
    for name, told in by_detector([ours(year, before) for year in years]):
        alerts = {"per_year": sum(openings(one, QUIET) for one in told) / count}
        strict = {"strict": sum(openings(one, 1) for one in told) / count}
        rows.append({**about, "by": name, "series_years": count, **alerts, **strict})
    few = years[:PEER_YEARS]
    rows.append({**about, "by": "Perfherder", **peer_years([list(perfherder(y, before)) for y in few], before)})
    if otava and before:
        for floor, nightly in run_otava(otava, few, before).items():
            rows.append({**about, "by": otava_name(floor), **peer_years(nightly, before)})
    return rows


def detections(
    rng: np.random.Generator,
    what: str,
    noise: Noise,
    before: int,
    shape: Callable[[int], Callable[[Floats], Floats]],
    *,
    series: int,
    otava: list[str] | None,
) -> list[dict[str, Any]]:
    """Share of changes that are told after so many nights, and the median night."""
    slow = "0.1" in what or "1.2" in what
    count = max(1, series // 3 if slow else 2 * series)
    made = [simulated_nights.nights(rng, before + (60 if slow else 16), noise, shape(before)) for _ in range(count)]
    about = {"what": what, "noise": noise.name, "history": before}
    rows: list[dict[str, Any]] = []
    for name, told in by_detector([ours(one, before) for one in made]):
        first = [_first(["higher" in night for night in one]) for one in told]
        rows.append({**about, "by": name, **found_after(first)})
    few = made[: max(1, count // 4)]
    first = [_first_point(list(perfherder(one, before)), before) for one in few]
    rows.append({**about, "by": "Perfherder", **found_after(first)})
    if otava:
        for floor, nightly in run_otava(otava, few, before).items():
            first = [_first_point(one, before) for one in nightly]
            rows.append({**about, "by": otava_name(floor), **found_after(first)})
    return rows


def other_threshold(threshold: float, series: int, seed: int) -> list[dict[str, Any]]:
    """The history shift at another threshold, on the same series for all: what one buys with the other."""
    shift = partial(history_shift, settings=HistorySettings(threshold=threshold))
    row: dict[str, Any] = {"what": "threshold", "threshold": threshold, "series_years": series}
    for noise in NOISES[:2]:
        rng = np.random.default_rng([seed, 3])
        told = [judged(simulated_nights.nights(rng, 180 + YEAR, noise), 180, shift) for _ in range(series)]
        row[f"per_year, {noise.name}"] = sum(openings(one, QUIET) for one in told) / series
    rng = np.random.default_rng([seed, 4])
    made = [simulated_nights.nights(rng, 188, NOISES[0], step(180)) for _ in range(5 * series)]
    first = [_first(["higher" in night for night in judged(one, 180, shift)]) for one in made]
    return [{**row, **found_after(first)}]


Judge = Callable[[Metric, Nights], CheckVerdict]
OURS: dict[str, Judge] = {"history shift alone": history_shift, "slow drift alone": slow_drift}


def ours(figures: Floats, first: int) -> dict[str, Told]:
    """What each of our detectors tells on each night from ``first`` on."""
    return {name: judged(figures, first, judge) for name, judge in OURS.items()}


def judged(figures: Floats, first: int, judge: Judge) -> Told:
    """What one detector tells on each night from ``first`` on; a missing night tells nothing."""
    told: Told = []
    days = np.arange(len(figures), dtype=np.float64)
    there = np.isfinite(figures)
    for night in range(first, len(figures)):
        known = there[: night + 1]
        told.append(set())
        if known[-1]:
            verdict = judge(METRIC, Nights(days[: night + 1][known], figures[: night + 1][known], {}, None))
            if verdict.verdict in (Verdict.REGRESSED, Verdict.IMPROVED) and verdict.direction:
                told[-1].add(verdict.direction)
    return told


def by_detector(series: list[dict[str, Told]]) -> Iterator[tuple[str, list[Told]]]:
    """What is told of all series by both detectors together, and by each alone."""
    yield "ours", [[set().union(*night) for night in zip(*one.values(), strict=True)] for one in series]
    for name in OURS:
        yield name, [one[name] for one in series]


def openings(told: Told, quiet: int) -> int:
    """Alerts that were opened: told in a direction that was not told in the ``quiet`` nights before."""
    opened = 0
    for direction in ("higher", "lower"):
        last = -quiet - 1
        for night, directions in enumerate(told):
            if direction in directions:
                opened += night - last > quiet
                last = night
    return opened


def perfherder(figures: Floats, first: int) -> Iterator[list[int]]:
    """Perfherder's change points after each night, by night number; missing nights are left out, as it does."""
    numbers = np.flatnonzero(np.isfinite(figures))
    for night in range(first, len(figures)):
        known = numbers[numbers <= night][-60:]
        yield [int(known[point]) for point in perfherder_rule.changes(figures[known])]


def run_otava(command: list[str], made: list[Floats], first: int) -> dict[float, list[list[list[int]]]]:
    """Otava's change points after each night of each series, for each floor; nights without a value are null."""
    request = [{"values": [None if np.isnan(v) else float(v) for v in one], "first": first} for one in made]
    answer = subprocess.run(command, input=json.dumps(request), capture_output=True, text=True, check=True).stdout
    rows = json.loads(answer)
    return {floor: [[points for _, f, points in one if f == floor] for one in rows] for floor in FLOORS}


def otava_name(floor: float) -> str:
    """How Otava with this floor is called in the tables."""
    return f"Otava, {floor:.0%} floor" if floor else "Otava"


def peer_years(nightly: list[list[list[int]]], first: int) -> dict[str, Any]:
    """Change points told in a year, each date once: those that stay, and those that a later night takes back."""
    stayed = retracted = 0
    for one in nightly:
        told: dict[int, int] = {}
        for night, points in enumerate(one):
            for point in points:
                if point >= first and all(abs(point - other) > SAME_POINT for other in told):
                    told[point] = night
        for point, night in told.items():
            seen = [any(abs(point - p) <= SAME_POINT for p in one[later]) for later in range(night, len(one))]
            in_sight = seen[: max(1, point - first + IN_SIGHT - night)]
            stayed, retracted = stayed + all(in_sight), retracted + (not all(in_sight))
    return {"series_years": len(nightly), "per_year": stayed / len(nightly), "retracted": retracted / len(nightly)}


def found_after(first: list[int | None]) -> dict[str, Any]:
    """Shares found within so many nights, and the median night; None beyond what was simulated."""
    nights = np.array([np.inf if night is None else night for night in first])
    median = float(np.median(nights))
    shares = {str(n): round(float(np.mean(nights <= n)), 3) for n in FOUND_AFTER}
    return {"series": len(first), "found_after": shares, "median_nights": median if np.isfinite(median) else None}


def _figures_so_far(out: Path | None, about: dict[str, Any]) -> list[dict[str, Any]]:
    """What an earlier run with the same settings and versions has written; nothing of another one."""
    if out is None or not out.exists():
        return []
    made = json.loads(out.read_text(encoding="utf-8"))
    return list(made["figures"]) if {key: made.get(key) for key in about} == about else []


def _first(told: list[bool]) -> int | None:
    return told.index(True) + 1 if True in told else None


def _first_point(nightly: list[list[int]], change: int) -> int | None:
    """The night, counted from the change, on which a point within three nights of it or later is told."""
    return _first([any(point >= change - SAME_POINT for point in points) for points in nightly])


def _otava_version(python: Path | None) -> str | None:
    if python is None:
        return None
    command = [str(python), "-c", "import importlib.metadata as m; print(m.version('apache-otava'))"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
