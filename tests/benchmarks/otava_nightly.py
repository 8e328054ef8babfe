"""Apache Otava on growing series, run by the Python that has it: JSON in, the change points after each night out.

Input: a list of {"values": [...], "first": night from which on each night is analysed}; missing values are null. The
newest ``HISTORY`` nights are analysed with Otava's own defaults. Output: for each series a list of [night, floor of
magnitude, indices].
"""

from __future__ import annotations

import json
import sys

HISTORY = 240
FLOORS = (0.0, 0.02)


def main() -> None:
    """Analyse everything on standard input."""
    from otava.analysis import compute_change_points, fill_missing

    found = []
    for one in json.load(sys.stdin):
        rows = []
        for night in range(one["first"], len(one["values"])):
            begin = max(0, night + 1 - HISTORY)
            for floor in FLOORS:
                values = one["values"][begin : night + 1]
                fill_missing(values)
                points, _ = compute_change_points(values, window_len=50, max_pvalue=0.001, min_magnitude=floor)
                rows.append([night, floor, [int(point.index) + begin for point in points]])
        found.append(rows)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
