"""The table of a night for people: what each line of energy is of."""

from __future__ import annotations

from regression.nights.table import verdict_table
from regression.results.outcome import CheckLine, FigureLine, RunVerdict


def lines_of(*figures: FigureLine) -> list[str]:
    checks = {"energy": CheckLine("ok", "fine")}
    verdict = RunVerdict("id", "night", "qda", "GPU", "ok", checks, 1, 1, 0, energy_trust="verified", figures=figures)
    return verdict_table(verdict).splitlines()


def test_differences_have_a_sign_and_idle_against_idle_is_energy_of_nothing() -> None:
    found = lines_of(
        FigureLine("interleaved", "candidate", 3, 0.585389, 0.00373, 0.0113),
        FigureLine("interleaved", "candidate - baseline", 3, 0.0002, 0.0001, 0.0003),
        FigureLine("interleaved", "candidate - control", 3, -0.1, 0.00376, 0.0114),
        FigureLine("interleaved", "idle - idle", 1, -0.000287, None, None),
    )
    assert found[3:8] == [
        "  energy of              figure       rounds  median mJ  sd mJ    detectable mJ",
        "  candidate              interleaved  3       0.585389   0.00373  0.0113",
        "  candidate - baseline   interleaved  3       +0.0002    0.0001   0.0003",
        "  candidate - control    interleaved  3       -0.1       0.00376  0.0114",
        "  nothing (idle - idle)  interleaved  1       -0.000287  -        -",
    ]
