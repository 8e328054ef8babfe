"""Repeatability: within a run, in a second process, between runs that were made alike, and of the reference."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regression.detectors import CheckVerdict, Problem, Verdict
from regression.detectors.repeatability import (
    Circumstances,
    DrawState,
    Earlier,
    OtherProcess,
    ReferenceEnd,
    RepeatabilityRun,
    judge_repeatability,
    made_otherwise,
)

HASHES = {"final.bias": "a" * 64, "predictions": "b" * 64, "scores": "c" * 64}
CHANGED = {**HASHES, "final.bias": "d" * 64}
HERE = Circumstances("CPU (cpu-1)", "m", "torch=2.13", {"WORKSPACE": ":16:8"}, {"core.py": "1", "task.py": "2"})
DRAW = DrawState(0, HASHES, (True, True, True), ReferenceEnd("grid", "e" * 64, "e" * 64))
EARLIER = Earlier("CPU yesterday", HERE, HASHES, True)
LOST = Problem("infrastructure_failure", "device_lost", "the GPU fell off the bus")


def judged(
    *states: DrawState,
    earlier: Earlier | None = EARLIER,
    process: OtherProcess | None = None,
    expected: tuple[int, ...] | None = None,
    problem: Problem | None = None,
) -> CheckVerdict:
    draws = expected if expected is not None else tuple(state.draw for state in states)
    known = {} if earlier is None else dict.fromkeys(draws, earlier)
    return judge_repeatability(RepeatabilityRun(HERE, draws, states, process, problem), known)


def test_the_same_bytes_are_ok_and_say_as_where() -> None:
    found = judged(DRAW, replace(DRAW, draw=1), process=OtherProcess(0, HASHES, frozenset(HASHES), 5))
    assert (found.verdict, found.reason_code, found.value) == (Verdict.OK, "same_state", 0)
    assert found.reason == "the same 6 hashes on 2 draws as in run CPU yesterday"
    json.dumps(found.details, allow_nan=False)


def test_one_changed_hash_is_a_regression_that_names_draw_hash_and_run() -> None:
    found = judged(DRAW, replace(DRAW, draw=3, hashes=CHANGED))
    assert (found.verdict, found.reason_code, found.direction) == (Verdict.REGRESSED, "state_changed", "changed")
    assert found.value == 1
    assert found.reason == "draw 3: 1 of 3 hashes are others (final.bias) than in run CPU yesterday"


def test_a_hash_that_is_gone_is_a_regression_and_a_new_one_is_not() -> None:
    fewer = {name: sha256 for name, sha256 in HASHES.items() if name != "scores"}
    found = judged(replace(DRAW, hashes=fewer))
    assert (found.verdict, found.reason_code) == (Verdict.REGRESSED, "hash_missing")
    assert "1 hashes fewer (scores)" in found.reason
    assert judged(replace(DRAW, hashes={**HASHES, "more": "f" * 64})).verdict is Verdict.OK
    renamed = judged(replace(DRAW, hashes={"other": "f" * 64}))
    assert (renamed.verdict, renamed.reason_code) == (Verdict.REGRESSED, "hashes_renamed")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"environment_class": "torch=2.12"}, "environment torch=2.12 -> torch=2.13"),
        ({"settings": {"WORKSPACE": ":4096:8"}}, "WORKSPACE :4096:8 -> :16:8"),
        ({"settings": {}}, "settings that one of the two does not say: WORKSPACE"),
        ({"sources": {"core.py": "0", "task.py": "2"}}, "source core.py"),
        ({"sources": {}}, "source core.py, task.py"),
        ({"device": "CPU (cpu-2)"}, "device CPU (cpu-2) -> CPU (cpu-1)"),
        ({"payload_manifest_sha256": "other"}, "another payload"),
    ],
)
def test_what_was_made_otherwise_may_end_otherwise_and_is_told(change: dict[str, Any], told: str) -> None:
    other = replace(EARLIER, circumstances=replace(HERE, **change))
    found = judged(replace(DRAW, hashes=CHANGED), earlier=other)
    assert (found.verdict, found.reason_code) == (Verdict.INCONCLUSIVE, "state_changed_elsewhere")
    assert found.reason.endswith(f"than in run CPU yesterday, which was made otherwise: {told}")
    assert found.direction == "changed"
    same = judged(DRAW, earlier=other)
    assert (same.verdict, same.reason) == (
        Verdict.OK,
        f"the same 3 hashes on 1 draw as in run CPU yesterday, though made otherwise: {told}",
    )


def test_a_device_that_does_not_say_which_machine_computes_proves_nothing_by_a_difference() -> None:
    nowhere = replace(HERE, device=None)
    assert made_otherwise(nowhere, nowhere) == ["which machine computed is not known"]
    unknown = Circumstances(None, None, None)
    assert made_otherwise(unknown, unknown) == [
        "which machine computed is not known",
        "another payload",
        "environment not known",
        "sources not known",
    ]


def test_the_reference_that_ends_elsewhere_is_red_whatever_else() -> None:
    moved = replace(DRAW, reference=ReferenceEnd("grid", "e" * 64, "f" * 64))
    for earlier in (EARLIER, None, replace(EARLIER, circumstances=Circumstances(None, None, None))):
        found = judged(moved, earlier=earlier)
        assert (found.verdict, found.reason_code) == (Verdict.REGRESSED, "reference_state_changed")
        assert found.reason == (
            "draw 0: the reference ends elsewhere than when the draw was frozen: grid expected eeeeeeeeeeee, "
            "found ffffffffffff"
        )
    lost = judged(replace(moved, hashes=None, replays_equal=(), problem=LOST))
    assert lost.reason_code == "reference_state_changed"
    assert judged(replace(DRAW, reference=ReferenceEnd("grid", None, "f" * 64))).verdict is Verdict.OK
    gone = judged(replace(DRAW, reference=None))
    assert (gone.verdict, gone.reason_code) == (Verdict.INVALID, "reference_state_missing")
    assert judged(replace(DRAW, reference=None), earlier=replace(EARLIER, has_reference=False)).verdict is Verdict.OK


def test_a_replay_that_left_other_bytes_is_named() -> None:
    found = judged(replace(DRAW, replays_equal=(True, False, True)))
    assert (found.verdict, found.reason_code) == (Verdict.REGRESSED, "replay_state_differs")
    assert found.reason == "draw 0: replay 1 left other bytes than the eager run"


def test_a_second_process_repeats_itself_and_the_first() -> None:
    lost = judged(DRAW, process=OtherProcess(0, HASHES, frozenset({"predictions", "scores"}), 5))
    assert (lost.verdict, lost.reason_code) == (Verdict.REGRESSED, "state_not_repeated")
    assert lost.reason == "1 of 3 hashes are others after 5 runs: final.bias"
    other = judged(DRAW, process=OtherProcess(0, CHANGED, frozenset(HASHES), 5))
    assert (other.verdict, other.reason_code, other.value) == (Verdict.REGRESSED, "processes_differ", 1)
    assert other.reason == "draw 0: 1 hashes are others in a second process: final.bias"
    elsewhere = OtherProcess(7, CHANGED, frozenset(HASHES), 5)
    assert judged(DRAW, process=elsewhere).verdict is Verdict.OK  # of a draw that was not validated


@pytest.mark.parametrize(
    ("states", "expected", "problem", "code"),
    [
        ((), (0,), None, "draw_missing"),
        ((), (0,), LOST, "device_lost"),
        ((), (), None, "draw_missing"),
        ((replace(DRAW, hashes=None, replays_equal=(), problem=LOST),), (0,), None, "device_lost"),
        ((replace(DRAW, hashes=None),), (0,), None, "no_hashes"),
        ((replace(DRAW, replays_equal=()),), (0,), None, "no_replays"),
        ((DRAW,), (0, 1), None, "draw_missing"),
    ],
)
def test_what_was_not_looked_at_is_never_fine(
    states: tuple[DrawState, ...], expected: tuple[int, ...], problem: Problem | None, code: str
) -> None:
    found = judged(*states, expected=expected, problem=problem)
    assert (found.verdict, found.reason_code) == (Verdict.INVALID, code)


def test_the_first_night_has_nothing_to_be_compared_with() -> None:
    found = judged(DRAW, earlier=None)
    assert (found.verdict, found.reason_code, found.value) == (Verdict.INCONCLUSIVE, "no_earlier_run", None)
    told = "no earlier good run of this device to compare with; within this run everything came out again"
    assert found.reason == told
    assert judged(DRAW, *(replace(DRAW, draw=draw) for draw in range(1, 11)), earlier=None).reason == told


def test_a_workload_that_leaves_nothing_has_no_such_check() -> None:
    bare = DrawState(0, None)
    found = judged(bare, earlier=None)
    assert (found.verdict, found.reason_code) == (Verdict.UNAVAILABLE, "no_state")
    assert judged(bare, earlier=replace(EARLIER, has_reference=False)).reason_code == "no_hashes"  # it did, once
    assert judged(bare, DrawState(1, HASHES, (True,)), earlier=None).verdict is Verdict.INVALID


NAMES = ("final.bias", "predictions", "scores")
STATES = st.dictionaries(st.sampled_from(NAMES), st.sampled_from("ab"), min_size=1)


@given(STATES, STATES, st.booleans(), st.lists(st.booleans(), min_size=1, max_size=3))
def test_red_and_only_red_where_bytes_that_must_be_the_same_are_not(
    before: dict[str, str], tonight: dict[str, str], alike: bool, replays: list[bool]
) -> None:
    circumstances = HERE if alike else replace(HERE, environment_class="torch=2.12")
    earlier = Earlier("before", circumstances, before)
    found = judged(DrawState(0, tonight, tuple(replays)), earlier=earlier)
    kept = all(tonight.get(name) == sha256 for name, sha256 in before.items())
    assert (found.verdict is Verdict.REGRESSED) == (not all(replays) or (alike and not kept))
    if found.verdict is Verdict.OK:
        assert all(before.get(name, sha256) == sha256 for name, sha256 in tonight.items())
    json.dumps(found.details, allow_nan=False)
