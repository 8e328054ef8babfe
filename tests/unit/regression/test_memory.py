"""Memory of a task: every figure, both comparisons, and what is not compared or not there."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regression.detectors import Problem, Verdict
from regression.detectors.memory import (
    FIGURES,
    NAMED,
    PEAK_ALLOCATED,
    PEAK_RESERVED,
    UNASSIGNED,
    MemoryAccount,
    MemoryConditions,
    MemoryFigure,
    judge_memory,
)

MIB = 2**20
HERE = MemoryConditions("A100 (GPU-1)", "GPU-1", "m", "driver=570 torch=2.13", {"WORKSPACE": ":16:8"})
BYTES = {
    PEAK_ALLOCATED.name: 20 * MIB,
    PEAK_RESERVED.name: 44 * MIB,
    NAMED.name: 14_000_000,
    UNASSIGNED.name: 6_000_000,
}
RUN = MemoryAccount("A100 tonight", HERE, BYTES, {"scores": 400_000, "raw": 13_600_000})
BASELINE, BEFORE = replace(RUN, name="A100 accepted"), replace(RUN, name="A100 yesterday")
NO_ALLOCATOR = Problem("ok", "no_allocator", "a CPU's allocator counts nothing")
CPU = MemoryConditions("CPU (cpu-1)", "cpu-1", "m", "torch=2.13")
ON_CPU = MemoryAccount("CPU tonight", CPU, {NAMED.name: 14_000_000}, no_allocator=NO_ALLOCATOR)


def grown(account: MemoryAccount, figure: MemoryFigure, by: int) -> MemoryAccount:
    value = account.figures[figure.name]
    assert value is not None
    return replace(account, figures={**account.figures, figure.name: value + by})


def test_the_same_memory_is_ok_and_says_against_what() -> None:
    found = judge_memory(RUN, BASELINE, BEFORE)
    assert (found.verdict, found.reason_code, found.direction) == (Verdict.OK, "same_memory", None)
    assert (found.metric, found.value, found.baseline_value) == (PEAK_ALLOCATED.name, 20 * MIB, 20 * MIB)
    assert "peak allocated 20,971,520 bytes, as in baseline A100 accepted, as in the run before, A100" in found.reason
    assert list(found.details["figures"]) == [figure.name for figure in FIGURES]
    json.dumps(found.details, allow_nan=False)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_each_figure_is_red_from_its_least_difference_on(figure: MemoryFigure) -> None:
    found = judge_memory(grown(RUN, figure, figure.least), BASELINE, BEFORE)
    assert (found.verdict, found.reason_code, found.direction) == (Verdict.REGRESSED, "memory_higher", "higher")
    assert (found.metric, found.baseline_value) == (figure.name, BYTES[figure.name])
    assert found.value == BYTES[figure.name] + figure.least
    less = judge_memory(grown(RUN, figure, -figure.least), BASELINE, BEFORE)
    assert (less.verdict, less.reason_code, less.direction) == (Verdict.IMPROVED, "memory_lower", "lower")


def test_what_an_allocator_rounds_by_is_no_difference_and_is_said() -> None:
    found = judge_memory(grown(RUN, PEAK_ALLOCATED, PEAK_ALLOCATED.least - 1), BASELINE, None)
    assert (found.verdict, found.reason_code, found.direction) == (Verdict.OK, "below_least_difference", None)
    assert "+4,095 bytes against baseline A100 accepted (20,971,520 bytes, 0.02 %); a difference counts from 4,096" in (
        found.reason
    )


def test_a_state_that_is_kept_for_each_block_is_seen() -> None:
    """What the reversible learner is for: 128 samples of 82 numbers kept once more."""
    assert judge_memory(grown(RUN, PEAK_ALLOCATED, 128 * 82 * 4), BASELINE, None).verdict is Verdict.REGRESSED


def test_named_storage_names_its_tensors() -> None:
    more = replace(grown(RUN, NAMED, 80_200), tensors={"scores": 480_000, "extra": 200, "raw": 13_600_000})
    found = judge_memory(more, BASELINE, None)
    assert found.reason == (
        "named storage 14,080,200 bytes, +80,200 bytes against baseline A100 accepted (14,000,000 bytes, 0.57 %); "
        "tensors: scores +80,000, extra +200 (new)"
    )
    less = judge_memory(replace(grown(RUN, NAMED, -400_000), tensors={"raw": 13_600_000}), BASELINE, None)
    assert less.reason.endswith("tensors: scores -400,000 (gone)")


def test_what_crept_since_the_baseline_is_red_though_the_run_before_had_it_too() -> None:
    found = judge_memory(grown(RUN, NAMED, 8), BASELINE, grown(BEFORE, NAMED, 8))
    assert found.verdict is Verdict.REGRESSED
    assert "+8 bytes against baseline A100 accepted" in found.reason
    assert "as in the run before, A100 yesterday" in found.reason


def test_what_is_new_tonight_is_red_where_the_baseline_cannot_be_compared_with() -> None:
    other = replace(BASELINE, conditions=replace(HERE, environment_class="driver=560 torch=2.12"))
    found = judge_memory(grown(RUN, UNASSIGNED, MIB), other, BEFORE)
    assert (found.verdict, found.metric) == (Verdict.REGRESSED, UNASSIGNED.name)
    assert judge_memory(RUN, other, BEFORE).verdict is Verdict.OK
    lower_before = judge_memory(RUN, BASELINE, grown(BEFORE, PEAK_RESERVED, -2 * MIB))
    assert (lower_before.verdict, lower_before.metric) == (Verdict.REGRESSED, PEAK_RESERVED.name)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"payload_manifest_sha256": "other"}, "baseline_other_payload"),
        ({"payload_manifest_sha256": None}, "baseline_other_payload"),
        ({"device": "H100 (GPU-1)"}, "baseline_other_device"),
        ({"environment_class": "driver=580"}, "baseline_other_environment"),
        ({"settings": {"WORKSPACE": ":4096:8"}}, "baseline_other_settings"),
    ],
)
def test_what_was_made_otherwise_is_not_compared(change: dict[str, Any], code: str) -> None:
    other = replace(BASELINE, conditions=replace(HERE, **change))
    found = judge_memory(grown(RUN, PEAK_ALLOCATED, MIB), other, None)
    assert (found.verdict, found.reason_code) == (Verdict.INCONCLUSIVE, code)
    assert judge_memory(RUN, None, None).reason_code == "no_baseline"


def test_named_storage_is_compared_on_every_device() -> None:
    found = judge_memory(grown(ON_CPU, NAMED, 1), BASELINE, None)
    assert (found.verdict, found.metric) == (Verdict.REGRESSED, NAMED.name)
    fine = judge_memory(ON_CPU, BASELINE, None)
    assert (fine.verdict, fine.details["unavailable"]) == (Verdict.OK, "no_allocator")
    assert fine.reason == (
        "named storage 14,000,000 bytes, as in baseline A100 accepted; "
        "nothing else is counted here: a CPU's allocator counts nothing"
    )


def test_named_storage_of_another_payload_is_the_same_or_not_compared() -> None:
    """Other images of the same size, as the original records have."""
    other = replace(BASELINE, conditions=replace(HERE, payload_manifest_sha256="other"))
    assert judge_memory(ON_CPU, other, None).verdict is Verdict.OK
    found = judge_memory(grown(ON_CPU, NAMED, 1), other, None)
    assert (found.verdict, found.reason_code) == (Verdict.INCONCLUSIVE, "baseline_other_payload")


def test_settings_that_one_of_the_two_does_not_say_are_not_compared() -> None:
    silent = replace(BASELINE, conditions=replace(HERE, settings={}))
    assert judge_memory(RUN, silent, None).verdict is Verdict.OK


@pytest.mark.parametrize(
    ("run", "verdict", "code"),
    [
        (None, Verdict.INVALID, "no_memory_record"),
        (
            replace(RUN, problem=Problem("infrastructure_failure", "device_lost", "gone")),
            Verdict.INVALID,
            "device_lost",
        ),
        (
            replace(RUN, problem=Problem("bad_input", "no_memory_account", "none here")),
            Verdict.UNAVAILABLE,
            "no_memory_account",
        ),
        (replace(RUN, figures={}), Verdict.INVALID, "figure_missing"),
        (replace(ON_CPU, figures={}), Verdict.INVALID, "figure_missing"),
        (grown(RUN, UNASSIGNED, -7_000_000), Verdict.INVALID, "impossible_figure"),
        (replace(ON_CPU, conditions=replace(CPU, uuid="GPU-1")), Verdict.INVALID, "memory_vanished"),
    ],
)
def test_what_was_not_measured_is_never_fine(run: MemoryAccount | None, verdict: Verdict, code: str) -> None:
    found = judge_memory(run, BASELINE, None)
    assert (found.verdict, found.reason_code) == (verdict, code)


def test_a_night_that_broke_says_why() -> None:
    lost = Problem("infrastructure_failure", "device_lost", "the GPU fell off the bus")
    found = judge_memory(None, None, None, lost)
    assert found.reason == "the memory of the task was not looked at: the GPU fell off the bus"


@given(
    st.fixed_dictionaries({figure.name: st.integers(0, 10**10) for figure in FIGURES}),
    st.fixed_dictionaries({figure.name: st.integers(-(10**7), 10**7) for figure in FIGURES}),
    st.booleans(),
)
def test_no_figure_hides_behind_another(values: dict[str, int], by: dict[str, int], against_before: bool) -> None:
    tonight = replace(RUN, figures={name: values[name] + max(by[name], -values[name]) for name in values})
    other = replace(RUN, name="other", figures=values)
    found = judge_memory(tonight, *((None, other) if against_before else (other, None)))
    moved = {figure: tonight.figures[figure.name] - values[figure.name] for figure in FIGURES}  # type: ignore[operator]
    expected = Verdict.OK
    if any(difference >= figure.least for figure, difference in moved.items()):
        expected = Verdict.REGRESSED
    elif any(difference <= -figure.least for figure, difference in moved.items()):
        expected = Verdict.IMPROVED
    assert found.verdict is expected
    json.dumps(found.details, allow_nan=False)
