"""Draw what ``tests.benchmarks.energy`` wrote: standard deviation of a round by protocol, drift and update period.

python -m tests.benchmarks.energy_plot docs/energy/benchmark.json docs/energy/benchmark.svg
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib

COLOURS = {
    "Zeus, windows of classic": "#9d9d9d",
    "classic": "#4c78a8",
    "audited": "#54a24b",
    "aligned (classic round)": "#f2b134",
    "aligned (audited round)": "#e45756",
    "interleaved, candidate - baseline": "#b279a2",
}


def main() -> None:
    """One panel for each period, a group of points for each drift."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", type=Path, help="what --out of tests.benchmarks.energy wrote")
    parser.add_argument("picture", type=Path, help="a .svg, .png or .pdf file")
    arguments = parser.parse_args()
    found = json.loads(arguments.figures.read_text(encoding="utf-8"))
    sds = {(row["tick_period_s"], row["drift"], row["figure"]): row["sd_mj"] for row in found["figures"]}
    periods = sorted({period for period, _, _ in sds})
    drifts = list(dict.fromkeys(drift for _, drift, _ in sds))
    names = [name for name in COLOURS if any(figure == name for _, _, figure in sds)]
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "kernel-nightly"  # the same picture is the same file
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(periods), figsize=(13, 4.2), sharey=True, squeeze=False)
    width = 0.8 / len(names)
    for panel, period in zip(panels[0], periods, strict=True):
        for place, name in enumerate(names):
            heights = [sds[period, drift, name] for drift in drifts]
            offset = (place - (len(names) - 1) / 2) * width
            panel.plot([x + offset for x in range(len(drifts))], heights, "o", color=COLOURS[name], label=name)
        panel.grid(axis="y", alpha=0.4)
        panel.set_xticks(range(len(drifts)), [drift.replace("_", " ") for drift in drifts])
        panel.set(yscale="log", title=f"counter steps every {1000 * period:.0f} ms")
    panels[0][0].set_ylabel("sd of a round, mJ a replay")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="lower center", ncols=len(names), frameon=False)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(arguments.picture, metadata={"Date": None} if arguments.picture.suffix == ".svg" else None)


if __name__ == "__main__":
    main()
