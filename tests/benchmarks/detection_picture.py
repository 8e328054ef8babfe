"""Draws ``docs/detection/methods.svg``: what the detectors see in three simulated series (needs matplotlib)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot

from regression.detectors.changepoints import change_points
from regression.detectors.drift import slow_drift
from regression.detectors.history import DEFAULT, history_shift
from regression.detectors.series import Floats, Metric, Nights, of_values
from regression.detectors.verdict import Verdict
from tests.benchmarks.simulated_nights import NOISES, creep, nights, step

OUT = Path(__file__).resolve().parents[2] / "docs" / "detection" / "methods.svg"
METRIC = Metric("figure", "ms")
BEFORE, AFTER = 180, 12


def main() -> None:
    """Draw and write."""
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "kernel-nightly"  # the same picture is the same file
    matplotlib.rcParams["svg.fonttype"] = "none"
    figure, axes = pyplot.subplots(3, 1, figsize=(9, 9.5))
    rng = np.random.default_rng(20261130)
    _evidence(
        axes[0], nights(rng, BEFORE + AFTER, NOISES[0], step(BEFORE)), history_shift, "a step of 3 %: history shift"
    )
    _evidence(axes[1], nights(rng, BEFORE + AFTER, NOISES[0], creep(BEFORE)), slow_drift, "0.5 % a night: slow drift")
    _changes(axes[2], nights(rng, 365, NOISES[4], lambda n: step(120, 2.5)(n) + step(260, 3.0)(n)))
    figure.tight_layout()
    OUT.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(OUT, metadata={"Date": None})


def _evidence(axes: Any, figures: Floats, judge: Any, title: str) -> None:
    """The nights with the reference's band, and below them the evidence night by night."""
    days = np.arange(len(figures), dtype=np.float64)
    verdicts = [judge(METRIC, Nights(days[:n], figures[:n], {}, None)) for n in range(BEFORE - 20, len(figures) + 1)]
    first = next(v for v in verdicts if v.verdict is Verdict.REGRESSED)
    usual, scale = first.details["location"], first.details["scale"]
    axes.axhspan(usual - 2 * scale, usual + 2 * scale, color="0.9", label="usual, two standard deviations")
    axes.axhline(usual, color="0.6", linewidth=1)
    axes.plot(days[-45:], figures[-45:], ".", color="C0", label="night")
    axes.axvline(BEFORE, color="0.4", linestyle=":", label="the change begins")
    told = int(first.details["nights"]) - 1
    axes.plot(told, figures[told], "o", color="C3", markerfacecolor="none", markersize=10, label="first night told")
    axes.set(ylabel="ms", title=title, xlim=(118, 193))
    right = axes.twinx()
    numbers = [v.details["nights"] - 1 for v in verdicts]
    right.plot(numbers, [abs(v.details["statistic"]) for v in verdicts], color="C1", linewidth=1, label="evidence")
    right.axhline(first.details["threshold"], color="C1", linestyle="--", linewidth=1, label="threshold")
    right.set(ylabel="standard deviations", ylim=(0, 4 * DEFAULT.threshold))
    handles = [*axes.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
    axes.legend(handles=handles, loc="upper left", fontsize=8)


def _changes(axes: Any, figures: Floats) -> None:
    """A year with outlier nights, its change points and the levels between them."""
    found = change_points(of_values(METRIC, np.arange(len(figures)), map(float, figures)))
    axes.plot(figures, ".", color="C0", markersize=3, label="night")
    edges = [0, *(point.index for point in found), len(figures)]
    levels = [found[0].before, *(point.after for point in found)]
    for (left, right), level in zip(pairwise(edges), levels, strict=True):
        axes.plot([left, right - 1], [level, level], color="C3")
    for point in found:
        label = f"night {point.index}: {point.relative:+.1%}, {point.since_first:+.1%} since the first"
        axes.axvline(point.index, color="0.4", linestyle=":")
        axes.annotate(label, (point.index, max(levels) + 4), fontsize=8, ha="center")
    axes.set(xlabel="night", ylabel="ms", title="change points of a year with outlier nights")


if __name__ == "__main__":
    main()
