"""Which changes of a task's energy a night of seven rounds finds, and how often: whole simulated runs, judged.

    PYTHONPATH=.:plugins python -m tests.benchmarks.energy_power [--runs N] [--out FILE]

A run is seven audited rounds, each on a board that was opened anew as every program of a night does. Two runs differ in
their seeds, and in the task's energy by the effect; the second one is judged against the first by the detector of the
nights, once for each figure. Besides: runs whose sensor lies, how many of them look well by their rounds, and how many
the reference load finds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gpu_tasks.energy.bands import band_for
from gpu_tasks.energy.counter import idle_edges
from gpu_tasks.energy.gates import ROUND_SPREAD, reference_gate
from gpu_tasks.energy.protocols import AUDITED
from gpu_tasks.energy.simulation.gpu import TICK_PERIOD_S
from gpu_tasks.energy.telemetry import LOAD_S, SHORT_IDLE_S, reference_load
from gpu_tasks.energy.uncertainty import Surroundings
from gpu_tasks.energy.window_figures import edges_power_w
from gpu_tasks.records import Effects
from regression.detectors import EnergyBaseline, EnergyRun, MeasurementConditions, RoundEnergy, judge_energy
from tests.benchmarks.energy_board import NO_EFFECTS, Board, seed_of

ROUNDS = 7
SEED = 20261130
PERCENTS = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
DRIFTS = ("none", "random_walk")
FIGURES = ("classic", "aligned", "audited")
VERDICTS = ("regressed", "inconclusive", "ok")
CONDITIONS = MeasurementConditions("simulated", "payload", AUDITED.name, "environment", "kernel")
SENSORS = {"faulty_sensor": Effects(faulty_sensor=True), "sensor*0.5": Effects(sensor_scale=0.5)}

Rounds = list[dict[str, float]]
"""Of each round of a run its figures, by name, mJ a replay."""


@dataclass(frozen=True)
class Task:
    """One repetition: a pair of runs for each effect, and one with each sensor that lies."""

    drift: str
    seed: int
    number: int


@dataclass(frozen=True)
class Lie:
    """A run on a sensor that lies: each figure's median in mJ and spread over the median, and what the reference load
    shows: its joules per 10^12 operations, and whether that passes.
    """

    medians_mj: dict[str, float]
    spreads: dict[str, float]
    joules: float
    passed: bool | None


@dataclass(frozen=True)
class Repetition:
    """What came of it: the verdict by percent and figure, and the run on each sensor that lies."""

    verdicts: dict[tuple[float, str], str]
    lies: dict[str, Lie]


def main() -> None:
    """Measure, print two tables, and write everything as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400, help="pairs of runs for each effect and drift (default: 400)")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the figures as JSON")
    arguments = parser.parse_args()
    found: dict[str, list[dict[str, Any]]] = {"power": [], "sensors": []}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for drift in DRIFTS:
            tasks = [Task(drift, arguments.seed, number) for number in range(arguments.runs)]
            repetitions = list(pool.map(repetition, tasks, chunksize=5))
            found["power"] += _power(drift, repetitions)
            found["sensors"] += _sensors(drift, repetitions)
    _print(found)
    if arguments.out:
        about = {
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "runs": arguments.runs,
            "rounds": ROUNDS,
            "seed": arguments.seed,
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "scipy": version("scipy"),
        }
        arguments.out.write_text(json.dumps({**about, **found}, indent=1) + "\n", encoding="utf-8")


def repetition(task: Task) -> Repetition:
    """All the runs of one repetition, made and judged."""
    baseline = _rounds(task, "baseline", NO_EFFECTS)
    verdicts = {}
    for percent in PERCENTS:
        run = _rounds(task, f"{percent}", Effects(energy_factor=1 + percent / 100))
        for figure, verdict in _verdicts(run, baseline).items():
            verdicts[percent, figure] = verdict
    return Repetition(verdicts, {name: _lie(task, name, effects) for name, effects in SENSORS.items()})


def _rounds(task: Task, name: str, effects: Effects) -> Rounds:
    # The figures themselves do not depend on the wander, only their intervals do.
    around = Surroundings(TICK_PERIOD_S, None)
    found = []
    for number in range(ROUNDS):
        board = Board(seed_of(task.seed, task.drift, task.number, name, number), drift=task.drift, effects=effects)
        found.append({figure.figure: figure.adjusted_mj for figure in board.figures_of(AUDITED, around)})
    return found


def _verdicts(run: Rounds, baseline: Rounds) -> dict[str, str]:
    """What the detector says of each figure alone."""
    accepted = EnergyBaseline("baseline", CONDITIONS, _energies(baseline), accepted=True, trust="verified")
    verdict = judge_energy(EnergyRun(CONDITIONS, _energies(run), ROUNDS, "verified"), accepted)
    figures: Mapping[str, Mapping[str, str]] = verdict.details["figures"]
    return {name: figures[name]["verdict"] for name in FIGURES}


def _energies(rounds: Rounds) -> tuple[RoundEnergy, ...]:
    return tuple(
        RoundEnergy(number, True, figures[AUDITED.name], figures=figures) for number, figures in enumerate(rounds)
    )


def _lie(task: Task, name: str, effects: Effects) -> Lie:
    rounds = _rounds(task, name, effects)
    columns = {figure: [measured[figure] for measured in rounds] for figure in FIGURES}
    medians = {figure: statistics.median(values) for figure, values in columns.items()}
    spreads = {figure: (max(values) - min(values)) / abs(medians[figure]) for figure, values in columns.items()}
    board = Board(seed_of(task.seed, task.drift, task.number, name, "reference"), drift=task.drift, effects=effects)
    instruments, model = board.instruments, board.gpu.profile.name
    edges = idle_edges(instruments.gpu, instruments.clock, SHORT_IDLE_S, SHORT_IDLE_S)
    load = reference_load(instruments.known_load.run(LOAD_S), edges_power_w(edges))
    gate = reference_gate(load, band_for(model, {}), model, "before")
    return Lie(medians, spreads, load.joules_per_1e12_operations, gate.passed)


def _power(drift: str, repetitions: Sequence[Repetition]) -> list[dict[str, Any]]:
    """How often each verdict fell, by effect and figure."""
    counts: dict[tuple[float, str], Counter[str]] = defaultdict(Counter)
    for one in repetitions:
        for key, verdict in one.verdicts.items():
            counts[key][verdict] += 1
    rows = []
    for percent, figure in itertools.product(PERCENTS, FIGURES):
        shares = {verdict: counts[percent, figure][verdict] / len(repetitions) for verdict in VERDICTS}
        rows.append({"drift": drift, "energy_percent": percent, "figure": figure, **shares})
    return rows


def _sensors(drift: str, repetitions: Sequence[Repetition]) -> list[dict[str, Any]]:
    """How often rounds on a sensor that lies agree, and how often the reference load finds it all the same."""
    rows = []
    for sensor, figure in itertools.product(SENSORS, FIGURES):
        lies = [one.lies[sensor] for one in repetitions]
        agree = [lie.spreads[figure] <= ROUND_SPREAD for lie in lies]
        failed = [lie.passed is False for lie in lies]
        rows.append(
            {
                "drift": drift,
                "sensor": sensor,
                "figure": figure,
                "median_mj": round(statistics.median(lie.medians_mj[figure] for lie in lies), 6),
                "median_spread": round(statistics.median(lie.spreads[figure] for lie in lies), 4),
                "rounds_agree": statistics.mean(agree),
                "reference_gate_failed": statistics.mean(failed),
                "agree_though_failed": statistics.mean(a and f for a, f in zip(agree, failed, strict=True)),
                "joules_per_1e12_operations": round(statistics.median(lie.joules for lie in lies), 4),
            }
        )
    return rows


def _print(found: dict[str, list[dict[str, Any]]]) -> None:
    print(f"{'drift':<14}{'energy':>8}  {'figure':<10}{''.join(f'{verdict:>14}' for verdict in VERDICTS)}")
    for row in found["power"]:
        shares = "".join(f"{row[verdict]:>14.1%}" for verdict in VERDICTS)
        print(f"{row['drift']:<14}{row['energy_percent']:>+7.1f}%  {row['figure']:<10}{shares}")
    columns = f"{'median':>12}{'spread':>9}{'agree':>9}{'gate failed':>13}{'both':>9}"
    print(f"\n{'drift':<14}{'sensor':<15}{'figure':<10}{columns}")
    for row in found["sensors"]:
        print(
            f"{row['drift']:<14}{row['sensor']:<15}{row['figure']:<10}{row['median_mj']:>9.5f} mJ"
            f"{row['median_spread']:>9.1%}{row['rounds_agree']:>9.1%}{row['reference_gate_failed']:>13.1%}"
            f"{row['agree_though_failed']:>9.1%}"
        )


if __name__ == "__main__":
    main()
