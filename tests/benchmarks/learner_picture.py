"""Draws what ``tests.benchmarks.learner`` found: memory over the depth (needs matplotlib).

python -m tests.benchmarks.learner_picture docs/learner/benchmark.json docs/learner/memory.svg
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

LABELS = {
    "reversible": ("reversible core", "o-"),
    "ordinary": ("ordinary autograd, eager", "s-"),
    "compiled": ("ordinary autograd, torch.compile", "^--"),
}
MIB = 1024 * 1024


def main() -> None:
    """Read, draw and write."""
    source, out = map(Path, sys.argv[1:])
    rows = json.loads(source.read_text(encoding="utf-8"))["rows"]
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "kernel-nightly"  # the same picture is the same file
    matplotlib.rcParams["svg.fonttype"] = "none"
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6))
    _curves(left, rows, lambda row: row["saved_bytes_per_sample"] / 1024, "kept for the backward pass", "KiB a sample")
    _curves(right, rows, lambda row: row["peak_bytes"] / MIB, "resident peak of a step on 10,000 samples", "MiB more")
    left.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None})


def _curves(axes: Any, rows: list[dict[str, Any]], figure_of: Any, title: str, unit: str) -> None:
    for kind, (label, style) in LABELS.items():
        own = [row for row in rows if row["kind"] == kind]
        axes.plot([row["depth"] for row in own], [figure_of(row) for row in own], style, label=label, markersize=5)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(sorted({row["depth"] for row in rows})))
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(bottom=0)
    axes.set(xlabel="depth, blocks", ylabel=unit, title=title)
    axes.title.set_fontsize(10)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
