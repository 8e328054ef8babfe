"""How often a comparison calls equal kernels different, and which differences it finds: whole simulated runs, judged.

    PYTHONPATH=.:plugins python -m tests.benchmarks.comparison [--repetitions N] [--workers N] [--out FILE]

A repetition is one simulated board on which candidate and pinned kernel take turns as the program ``compare`` has them:
rounds of four interleaved blocks, each with its warm-up, sampler and reasons to be invalid. Its first 4, 8, 12 and 16
blocks are judged by the detector, so that the number of blocks can be chosen. The order within the blocks is another
one in each repetition, as on a GPU. What the kernels predict is no part of it and is emulated once a process.

Beside the verdicts it says whether blocks are as independent as the interval takes them to be: the correlation of
neighbouring differences, and the variance of the mean of the blocks over what their scatter makes of it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from gpu_tasks.programs.interleaving import BLOCKS_A_ROUND
from gpu_tasks.records import DRIFTS, Effects
from regression.detectors.comparison import ENERGY, TIME, MetricRule, judge_metric
from regression.detectors.paired import BlockPair, paired_effect
from tests.benchmarks.comparison_board import Pair, turns
from tests.benchmarks.energy_board import NO_EFFECTS, seed_of

SEED = 20261130
BLOCKS = (4, 8, 12, 16)
RULES = {"energy": ENERGY, "time": TIME}
WORDS = ("better", "worse", "same")
CHUNK = 5


@dataclass(frozen=True)
class Scenario:
    """Two kernels on boards whose idle power drifts in one way; what the candidate takes more, in percent."""

    drift: str
    energy_percent: float = 0.0
    time_percent: float = 0.0

    @property
    def effects(self) -> Effects:
        """As the simulated device takes them."""
        if not self.energy_percent and not self.time_percent:
            return NO_EFFECTS
        return Effects(energy_factor=1 + self.energy_percent / 100, time_factor=1 + self.time_percent / 100)


EQUAL = tuple(Scenario(drift) for drift in DRIFTS)
DIFFERENT = tuple(
    Scenario(drift, energy, time)
    for (energy, time), drift in itertools.product(((10.0, 2.0), (1.0, 0.1), (0.3, 0.02)), ("none", "random_walk"))
)


@dataclass(frozen=True)
class Task:
    """One repetition of a scenario."""

    scenario: Scenario
    seed: int
    number: int
    blocks: int = BLOCKS[-1]


def main() -> None:
    """Measure, print the tables, and write everything as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=400, help="boards for each scenario (default: 400)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes (default: one a CPU)")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the figures as JSON")
    arguments = parser.parse_args()
    found: dict[str, list[dict[str, Any]]] = {"verdicts": [], "either": [], "blocks": []}
    with ProcessPoolExecutor(arguments.workers) as pool:
        for scenario in EQUAL + DIFFERENT:
            tasks = [Task(scenario, arguments.seed, number) for number in range(arguments.repetitions)]
            for name, rows in summaries(scenario, list(pool.map(repetition, tasks, chunksize=CHUNK))).items():
                print("\n".join(map(_line, rows)), flush=True)
                found[name] += rows
    if arguments.out:
        about = {
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "repetitions": arguments.repetitions,
            "seed": arguments.seed,
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "scipy": version("scipy"),
        }
        arguments.out.write_text(_json(about, found), encoding="utf-8")


def repetition(task: Task) -> list[Pair]:
    """The blocks of one board, in the order in which they were measured."""
    seed = seed_of(task.seed, task.scenario, task.number)
    first_round = task.number * (task.blocks // BLOCKS_A_ROUND)
    return turns(seed, task.scenario.drift, task.scenario.effects, task.blocks, first_round)


def summaries(scenario: Scenario, repetitions: Sequence[Sequence[Pair]]) -> dict[str, list[dict[str, Any]]]:
    """Shares of the verdicts by metric and number of blocks, of either metric, and what the blocks are like."""
    what = {"drift": scenario.drift, "energy_percent": scenario.energy_percent, "time_percent": scenario.time_percent}
    columns = {name: [_column(pairs, name) for pairs in repetitions] for name in RULES}
    most = max(len(pairs) for pairs in repetitions)
    counts = [count for count in BLOCKS if count <= most]
    verdicts: list[dict[str, Any]] = []
    either = []
    for count in counts:
        words = {name: [_word(RULES[name], pairs[:count]) for pairs in columns[name]] for name in RULES}
        for name in RULES:
            truth = _truth(scenario, name)
            held = [_holds(pairs[:count], truth) for pairs in columns[name]]
            shares = {word: words[name].count(word) / len(repetitions) for word in (*WORDS, "inconclusive")}
            detectable = statistics.median(_detectable_percent(pairs[:count]) for pairs in columns[name])
            row = {"metric": name, "blocks": count, **shares, "interval_holds": statistics.mean(held)}
            verdicts.append({**what, **row, "median_detectable_percent": _significant(detectable)})
        differs = [any(w in ("better", "worse") for w in both) for both in zip(*words.values(), strict=True)]
        either.append({**what, "blocks": count, "either_different": statistics.mean(differs)})
    return {"verdicts": verdicts, "either": either, "blocks": [_blocks(what, name, columns[name]) for name in RULES]}


def _column(pairs: Sequence[Pair], name: str) -> list[BlockPair]:
    return [getattr(pair, name) for pair in pairs]


def _word(rule: MetricRule, pairs: Sequence[BlockPair]) -> str:
    word: str = judge_metric(pairs, rule).details["word"]
    return word if word in WORDS else "inconclusive"


def _truth(scenario: Scenario, name: str) -> Callable[[float], float]:
    """The true difference, from what the pinned kernel takes."""
    percent: Mapping[str, float] = {"energy": scenario.energy_percent, "time": scenario.time_percent}
    return lambda pinned: pinned * percent[name] / 100


def _holds(pairs: Sequence[BlockPair], truth: Callable[[float], float]) -> bool:
    effect = paired_effect(pairs)
    return effect is not None and effect.low <= truth(effect.pinned) <= effect.high


def _detectable_percent(pairs: Sequence[BlockPair]) -> float:
    effect = paired_effect(pairs)
    return float("nan") if effect is None else 100 * effect.detectable / effect.pinned


def _blocks(what: Mapping[str, Any], name: str, columns: Sequence[Sequence[BlockPair]]) -> dict[str, Any]:
    """Scatter and independence of the differences, less the true one, over repetitions whose blocks are all valid."""
    usable = [found for pairs in columns if len(found := [both for p in pairs if (both := p.usable)]) == len(pairs)]
    values = np.array(usable)
    off = (values[:, :, 0] - values[:, :, 1]) / values[:, :, 1] - what[f"{name}_percent"] / 100
    mean_variance = np.mean(np.mean(off, axis=1) ** 2) * off.shape[1]
    return {
        **what,
        "metric": name,
        "repetitions": len(usable),
        "invalid_blocks": sum(pair.usable is None for pairs in columns for pair in pairs),
        "bias_percent": _significant(100 * float(np.mean(off))),
        "bias_standard_error_percent": _significant(100 * float(np.std(np.mean(off, axis=1)) / len(off) ** 0.5)),
        "sd_percent": _significant(100 * float(np.std(off))),
        "correlation_with_next": round(float(np.mean(off[:, 1:] * off[:, :-1]) / np.mean(off**2)), 3),
        "mean_variance_ratio": round(float(mean_variance / np.mean(np.var(off, axis=1, ddof=1))), 3),
    }


def _significant(value: float) -> float:
    return float(f"{value:.3g}")


def _json(about: Mapping[str, Any], found: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """One row a line, so that a change of one is a change of one line."""
    tables = [
        f' "{name}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n ]" for name, rows in found.items()
    ]
    return json.dumps(about, indent=1)[:-2] + ",\n" + ",\n".join(tables) + "\n}\n"


def _line(row: Mapping[str, Any]) -> str:
    return "  ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}" for name, value in row.items()
    )


if __name__ == "__main__":
    main()
