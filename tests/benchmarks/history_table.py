"""The figures of ``tests.benchmarks.history`` as short Markdown tables: argument, the JSON file that it wrote."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Row = dict[str, Any]
BOUNDED = ("90 nights of a board", "one run")


def main() -> None:
    """Print three tables: sizes and loads, views and panels, questions."""
    found = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    whole, tenth = found["histories"]
    print("\n".join([*_sizes(whole, tenth), "", *_pages(whole, tenth), "", *_questions(whole, tenth)]))


def _sizes(whole: Row, tenth: Row) -> list[str]:
    lines = [f"| | {whole['nights']:,} nights | {tenth['nights']:,} nights |", "|---|---:|---:|"]
    lines += _line("runs, validations, rounds", [_rows(one) for one in (whole, tenth)])
    lines += _line("figures of rounds", [f"{one['rows']['round_energy']:,}" for one in (whole, tenth)])
    lines += _line("time to load all of it (COPY)", [f"{one['loading_s']:.0f} s" for one in (whole, tenth)])
    for name in whole["loads_ms"]:
        lines += _line(f"load of one more night {name}", [_both(one["loads_ms"][name]) for one in (whole, tenth)])
    lines += _line("on disk", [_mb(_whole_size(one)) for one in (whole, tenth)])
    for table in sorted(whole["bytes_of_rows"], key=lambda name: -_size(whole, name))[:5]:
        lines += _line(f"of it `{table}`, indexes included", [_mb(_size(one, table)) for one in (whole, tenth)])
    return lines


def _pages(whole: Row, tenth: Row) -> list[str]:
    lines = [
        "| view or panel | of | rows | p50 | p95 | CPU | a tenth: p95 | CPU | aim |",
        "|---|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    for one, other in zip(whole["answers_ms"], tenth["answers_ms"], strict=True):
        if one["kind"] != "question":
            name = f"`{one['name']}`" if one["kind"] == "view" else one["name"]
            cells = [one["use"], f"{one['rows']:,}", *_three(one), *_three(other)[1:], _met(one)]
            lines += _line(name, cells)
    return lines


def _questions(whole: Row, tenth: Row) -> list[str]:
    lines = [
        "| question | 90 nights of a board, or one run: p95 | CPU | all ten years: rows | p50 | p95 | CPU "
        "| a tenth: p95 | CPU | aims |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    pairs = list(zip(whole["answers_ms"], tenth["answers_ms"], strict=True))
    for name in dict.fromkeys(one["name"] for one, _ in pairs if one["kind"] == "question"):
        asked = [pair for pair in pairs if pair[0]["name"] == name and pair[0]["kind"] == "question"]
        bounded = next((one for one, _ in asked if one["use"] in BOUNDED), None)
        one, other = next(pair for pair in asked if pair[0]["use"] not in BOUNDED)
        aims = ", ".join(_met(each) for each in (bounded, one) if each)
        cells = [*(_three(bounded)[1:] if bounded else ["", ""]), f"{one['rows']:,}", *_three(one), *_three(other)[1:]]
        lines += _line(f"`{name}`", [*cells, aims])
    return lines


def _line(name: str, cells: list[str]) -> list[str]:
    return [f"| {name} | " + " | ".join(cells) + " |"]


def _three(one: Row) -> list[str]:
    return [one["failed"], "", ""] if "failed" in one else [_ms(one[name]) for name in ("p50", "p95", "cpu")]


def _both(times: Row) -> str:
    return f"{_ms(times['p50'])} ms, p95 {_ms(times['p95'])}, CPU {_ms(times['cpu'])}"


def _met(one: Row) -> str:
    if "failed" in one or one["cpu"] > one["aim_ms"]:
        return "missed"
    return "met" if one["p95"] <= one["aim_ms"] else "CPU only"


def _rows(history: Row) -> str:
    return ", ".join(f"{history['rows'][name]:,}" for name in ("run", "validation", "round"))


def _size(history: Row, table: str) -> int:
    return int(history["bytes_of_rows"][table] + history["bytes_of_indexes"][table])


def _whole_size(history: Row) -> int:
    return sum(_size(history, table) for table in history["bytes_of_rows"])


def _ms(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def _mb(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"


if __name__ == "__main__":
    main()
