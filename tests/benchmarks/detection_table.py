"""The figures of ``tests.benchmarks.detection`` as Markdown tables: argument, the file that it wrote."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

BY = ("ours", "history shift alone", "slow drift alone", "Perfherder", "Otava", "Otava, 2% floor")


def main() -> None:
    """Print the tables."""
    found = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["figures"]
    false = [row for row in found if row["what"] == "false alerts"]
    print("| false alerts in a series-year | " + " | ".join(BY) + " |\n|---|" + "---|" * len(BY))
    for noise, history in dict.fromkeys((row["noise"], row["history"]) for row in false):
        name = f"{noise}, {f'after {history} nights' if history else 'from the first night on'}"
        print(_row(name, [_of(false, noise, history, by) for by in BY], _alerts))
    rest = [row for row in found if "found_after" in row and row["what"] != "threshold"]
    print(
        "\n| found after 1 / 2 / 3 / 5 / 8 nights (median night) | " + " | ".join(BY) + " |\n|---|" + "---|" * len(BY)
    )
    for what, noise, history in dict.fromkeys((row["what"], row["noise"], row["history"]) for row in rest):
        rows = [row for row in rest if row["what"] == what]
        print(_row(f"{what}, {noise}, {history} nights", [_of(rows, noise, history, by) for by in BY], _shares))
    print("\n| threshold | false alerts a year, iid | AR(1) 0.4 | 3 % step found after 1 / 2 / 3 / 5 / 8 nights |")
    print("|---|---|---|---|")
    for row in found:
        if row["what"] == "threshold":
            alerts = f"{row['per_year, iid']:.2f} | {row['per_year, AR(1) 0.4']:.2f}"
            print(f"| {row['threshold']} | {alerts} | {_shares(row)} |")


def _of(rows: list[dict[str, Any]], noise: str, history: int, by: str) -> dict[str, Any] | None:
    wanted = (noise, history, by)
    return next((row for row in rows if (row["noise"], row["history"], row["by"]) == wanted), None)


def _row(name: str, rows: list[dict[str, Any] | None], text: Any) -> str:
    return f"| {name} | " + " | ".join("" if row is None else text(row) for row in rows) + " |"


def _alerts(row: dict[str, Any]) -> str:
    taken_back = f" + {row['retracted']:.1f} taken back" if row.get("retracted") else ""
    return f"{row['per_year']:.2f}{taken_back} ({row['series_years']})"


def _shares(row: dict[str, Any]) -> str:
    shares = " / ".join(f"{row['found_after'][n]:.2f}".lstrip("0") or "0" for n in ("1", "2", "3", "5", "8"))
    median = row["median_nights"]
    return f"{shares} ({'never' if median is None else f'{median:g}'})"


if __name__ == "__main__":
    main()
