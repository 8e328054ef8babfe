"""How many rounds a baseline needs: false alerts of the round-spread rule in a year, and what it finds.

    PYTHONPATH=.:plugins python -m tests.benchmarks.baseline_rounds [--baselines N] [--nights N] [--seed S]

A baseline is drawn once and judges all later nights, so a narrow or shifted one cries wolf again and again. Rounds are
normal with a standard deviation of 1; nights of seven rounds that leave the spread get seven more. Prints Markdown.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.random import Generator

from regression.detectors.spread import SpreadRule, compare
from regression.detectors.verdict import Verdict

SEED = 20261130
ROUNDS = MORE = 7
BASELINE_ROUNDS = (7, 14, 21, 35)
LEVEL = 100.0
BETWEEN_NIGHTS = (0.0, 0.3)
"""Standard deviations of a night's level, in those of a round."""
CHANGE = 2.5
YEAR = 365
RULE = SpreadRule("energy", "mJ", Verdict.REGRESSED, "")


def regressed(baseline: list[float], shift: float, between: float, noise: Generator) -> bool:
    """Whether a night that is ``shift`` higher than the truth is told, after confirmation rounds if need be."""
    level = LEVEL + shift + between * noise.standard_normal()
    rounds = level + noise.standard_normal(ROUNDS)
    found = compare(rounds.tolist(), baseline, rule=RULE, kernel_changed=False)
    if found.low <= found.median <= found.high:
        return False
    pooled = np.concatenate([rounds, level + noise.standard_normal(MORE)])
    return compare(pooled.tolist(), baseline, rule=RULE, kernel_changed=False).verdict is Verdict.REGRESSED


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baselines", type=int, default=400)
    parser.add_argument("--nights", type=int, default=200, help="nights judged by each baseline")
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    print(
        "| rounds of the baseline | nights differ by | false alerts a year, mean | of the worst tenth of baselines |"
        f" change of {CHANGE:g} found on its first night |\n|---:|---:|---:|---:|---:|"
    )
    for rounds in BASELINE_ROUNDS:
        for between in BETWEEN_NIGHTS:
            noise = np.random.default_rng([arguments.seed, rounds, round(100 * between)])
            false, found = [], []
            for _ in range(arguments.baselines):
                baseline = (LEVEL + noise.standard_normal(rounds)).tolist()
                quiet = [regressed(baseline, 0.0, between, noise) for _ in range(arguments.nights)]
                changed = [regressed(baseline, CHANGE, between, noise) for _ in range(arguments.nights // 5)]
                false.append(YEAR * float(np.mean(quiet)))
                found.append(float(np.mean(changed)))
            worst = float(np.mean(sorted(false)[-(len(false) // 10) :]))
            print(f"| {rounds} | {between:g} | {np.mean(false):.1f} | {worst:.0f} | {np.mean(found):.0%} |")


if __name__ == "__main__":
    main()
