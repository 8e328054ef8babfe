"""The table of a night for people: what each line of energy is of."""

from __future__ import annotations

import pytest

from regression.nights.table import verdict_table
from regression.results.outcome import CheckLine, FigureLine, Look, RunVerdict


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


def test_both_looks_of_a_check_are_shown_with_what_called_for_the_second() -> None:
    checks = {"agreement": CheckLine("ok", "all"), "energy": CheckLine("ok", "within", Look("regressed", "above"))}
    verdict = RunVerdict(
        *("id", "night", "qda", "GPU", "ok", checks, 1, 1, 0),
        confirmation_rounds=7,
        confirmation_reason="energy: above",
    )
    assert verdict_table(verdict).splitlines()[:6] == [
        "  check                 verdict    reason",
        "  agreement             ok         all",
        "  energy, first rounds  regressed  above",
        "  energy, all rounds    ok         within",
        "",
        "confirmation: 7 more rounds, as the first ones left the spread of their baseline",
    ]


@pytest.mark.parametrize(
    ("first", "shown"),
    [
        (Look("invalid", "no sensor"), ["energy"]),
        (Look("invalid", "a gate"), ["energy, first rounds", "energy, all rounds"]),
        (Look("ok", "no sensor"), ["energy, first rounds", "energy, all rounds"]),
    ],
)
def test_two_looks_that_say_the_same_are_one_line(first: Look, shown: list[str]) -> None:
    checks = {"energy": CheckLine("invalid", "no sensor", first)}
    told = verdict_table(RunVerdict("id", "night", "qda", "GPU", "ok", checks, 1, 1, 0, confirmation_rounds=7))
    assert [line.split("  ")[1] for line in told.partition("\n\n")[0].splitlines()[1:]] == shown


@pytest.mark.parametrize("planned", [None, 0])
def test_nothing_is_said_of_confirmation_where_there_was_none(planned: int | None) -> None:
    checks = {"energy": CheckLine("ok", "fine")}
    verdict = RunVerdict(
        *("id", "night", "qda", "GPU", "ok", checks, 1, 1, 0), confirmation_rounds=planned, confirmation_reason="fine"
    )
    assert "confirmation" not in verdict_table(verdict)


def test_what_decides_comes_first_and_what_looks_back_last() -> None:
    names = ("a_history", "agreement", "b_history", "energy", "environment", "time")
    verdict = RunVerdict("id", "night", "qda", "GPU", "ok", {n: CheckLine("ok", "x") for n in names}, 1, 1, 0)
    shown = [line.split()[0] for line in verdict_table(verdict).splitlines()[1:7]]
    assert shown == ["agreement", "energy", "time", "environment", "a_history", "b_history"]


def test_a_long_reason_goes_on_under_itself_and_loses_nothing() -> None:
    words = " ".join(f"word-{number}" for number in range(40))
    checks = {"agreement": CheckLine("ok", "all"), "energy": CheckLine("regressed", words + " " + "x" * 120)}
    verdict = RunVerdict("id", "night", "qda", "GPU", "ok", checks, 1, 1, 0)
    lines = verdict_table(verdict).splitlines()
    reason = [line for line in lines[2 : lines.index("")] if line]
    assert reason[0].startswith("  energy     regressed  word-0 word-1 ")
    assert all(
        line.startswith(" " * 24 + "word") or line.endswith("xx") for line in [" " * 24 + reason[0][24:], *reason[1:]]
    )
    assert max(len(line) for line in reason[:-1]) <= 24 + 92 < len(reason[-1])
    assert " ".join(line[24:] for line in reason) == words + " " + "x" * 120


def test_histories_of_figures_that_the_device_has_not_are_one_line_and_others_are_shown() -> None:
    checks = {
        "energy": CheckLine("unavailable", "no counter"),
        "idle_power_history": CheckLine("unavailable", "no counter"),
        "energy_history": CheckLine("unavailable", "no counter"),
        "time_history": CheckLine("inconclusive", "2 nights"),
    }
    told = verdict_table(RunVerdict("id", "night", "qda", "CPU", "ok", checks, 1, 1, 0)).splitlines()
    assert told[1:4] == [
        "  energy        unavailable   no counter",
        "  time_history  inconclusive  2 nights",
        "  histories     unavailable   this device has none of energy, idle power",
    ]
