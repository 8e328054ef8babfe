"""The calibration in small: ``python -m tests.benchmarks.comparison`` is the whole of it, with the figures of the docs.

Two chances in a thousand that one of these fails with another seed; the seeds are fixed.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from regression.detectors.comparison import ENERGY, judge_metric
from regression.detectors.paired import BlockPair
from tests.benchmarks.comparison import Scenario, Task, repetition, summaries

SEED = 4711
DIFFERENT = ("better", "worse")


@pytest.mark.parametrize("blocks", [2, 4, 8, 16])
def test_normal_differences_of_equal_kernels_are_called_different_five_times_in_a_hundred(blocks: int) -> None:
    rng = np.random.default_rng(SEED)
    made = [[BlockPair(1 + off, 1.0) for off in row] for row in rng.normal(0, 0.003, (2000, blocks)).tolist()]
    share = np.mean([judge_metric(pairs, ENERGY).details["word"] in DIFFERENT for pairs in made])
    assert share == pytest.approx(0.05, abs=0.015)


def test_a_difference_of_the_detectable_size_is_found_eight_times_in_ten() -> None:
    rng = np.random.default_rng(SEED)
    size = (2.3646 + 0.8960) * 0.003 / 8**0.5  # quantiles of t with 7 degrees of freedom, from a table
    made = [[BlockPair(1 + size + off, 1.0) for off in row] for row in rng.normal(0, 0.003, (2000, 8)).tolist()]
    found = [judge_metric(pairs, ENERGY).details["word"] for pairs in made]
    assert np.mean([word == "worse" for word in found]) == pytest.approx(0.8, abs=0.03)


@pytest.fixture(scope="module")
def equal() -> list[dict[str, object]]:
    """40 comparisons of a kernel with itself on boards whose idle power wanders, as the programs measure them."""
    scenario = Scenario("random_walk")
    found = summaries(scenario, [repetition(Task(scenario, SEED, number, blocks=8)) for number in range(40)])
    return found["verdicts"] + found["blocks"]


@pytest.mark.parametrize("metric", ["energy", "time"])
def test_a_kernel_is_hardly_ever_different_from_itself(equal: list[dict[str, object]], metric: str) -> None:
    """Seven or more of 40 would be one chance in two hundred; at 5 % two are to be expected."""
    for row in equal:
        if row["metric"] == metric and "worse" in row:
            assert float(row["worse"]) + float(row["better"]) <= 6 / 40, row["blocks"]  # type: ignore[arg-type]
            assert float(row["interval_holds"]) >= 34 / 40  # type: ignore[arg-type]


@pytest.mark.parametrize("metric", ["energy", "time"])
def test_blocks_are_independent_and_without_bias(equal: list[dict[str, object]], metric: str) -> None:
    (row,) = (row for row in equal if row["metric"] == metric and "correlation_with_next" in row)
    assert abs(float(row["correlation_with_next"])) < 0.18  # type: ignore[arg-type]  # three standard errors of 280 pairs
    assert 0.4 < float(row["mean_variance_ratio"]) < 1.8  # type: ignore[arg-type]
    bias, error = float(row["bias_percent"]), float(row["bias_standard_error_percent"])  # type: ignore[arg-type]
    assert abs(bias) < 3 * error
    assert row["invalid_blocks"] == 0


def test_the_whole_of_it_reached_its_aims() -> None:
    """The committed figures: with the default number of blocks, 3 to 7 of 100 equal kernels are called different."""
    rows = json.loads((Path(__file__).parents[3] / "docs/comparing/calibration.json").read_text())["verdicts"]
    eight = [row for row in rows if row["blocks"] == 8]
    equal = [row["better"] + row["worse"] for row in eight if not row["energy_percent"]]
    assert len(equal) == 8
    assert all(0.03 <= share <= 0.07 for share in equal)
    found = [row["worse"] for row in eight if (row["energy_percent"], row["time_percent"]) == (10, 2)]
    assert found == [1, 1, 1, 1]


def test_a_tenth_more_energy_and_two_percent_more_time_are_found_every_time() -> None:
    scenario = Scenario("random_walk", energy_percent=10.0, time_percent=2.0)
    found = summaries(scenario, [repetition(Task(scenario, SEED, number, blocks=4)) for number in range(8)])
    assert [(row["metric"], row["worse"]) for row in found["verdicts"]] == [("energy", 1.0), ("time", 1.0)]
    less = Scenario("none", energy_percent=-10.0, time_percent=-2.0)
    found = summaries(less, [repetition(Task(less, SEED, number, blocks=4)) for number in range(4)])
    assert [(row["metric"], row["better"]) for row in found["verdicts"]] == [("energy", 1.0), ("time", 1.0)]
