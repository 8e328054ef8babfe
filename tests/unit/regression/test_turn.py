"""Whose turn it is: first come, first served, and nobody who is gone keeps the others waiting."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regression.nights.turn import Waiting, in_turn, leave_turn, take_turn


def nobody(_: Waiting) -> bool:
    return False


def ask(folder: Path, name: str, gone: str = "") -> list[str]:
    """Who is before the run ``name``, where those whose names are letters of ``gone`` are over."""
    before = take_turn(folder, "dag", name, lambda waiting: waiting.dag_run_id in gone)
    return [waiting.dag_run_id for waiting in before]


def names(folder: Path) -> list[str]:
    return [waiting.dag_run_id for waiting in in_turn(folder)]


def test_whoever_asks_first_has_it_until_it_leaves(tmp_path: Path) -> None:
    assert [ask(tmp_path, name) for name in "abc"] == [[], ["a"], ["a", "b"]]
    assert [ask(tmp_path, name) for name in "cba"] == [["a", "b"], ["a"], []], "asking again changes nothing"
    leave_turn(tmp_path, "dag", "a")
    assert [ask(tmp_path, name) for name in "cb"] == [["b"], []]
    leave_turn(tmp_path, "dag", "b")
    leave_turn(tmp_path, "dag", "b")
    assert ask(tmp_path, "c") == []


def test_runs_of_two_dags_are_two_runs_whatever_their_names(tmp_path: Path) -> None:
    assert take_turn(tmp_path, "nightly_qda", "manual__1", nobody) == []
    (before,) = take_turn(tmp_path, "compare_kernels", "manual__1", nobody)
    assert (before.dag_id, before.dag_run_id) == ("nightly_qda", "manual__1")
    leave_turn(tmp_path, "compare_kernels", "manual__1")
    assert [waiting.dag_id for waiting in in_turn(tmp_path)] == ["nightly_qda"]


def test_one_that_is_over_is_passed_over_wherever_it_stands(tmp_path: Path) -> None:
    for name in "abcd":
        ask(tmp_path, name)
    assert ask(tmp_path, "d", gone="b") == ["a", "b", "c"], "a is before b: nobody asks for b yet"
    assert ask(tmp_path, "d", gone="ab") == ["c"]
    assert names(tmp_path) == ["c", "d"]
    assert ask(tmp_path, "a") == ["c", "d"], "a run that begins anew stands at the end"


def test_only_those_that_would_be_waited_for_are_asked_for(tmp_path: Path) -> None:
    for name in "abc":
        ask(tmp_path, name)
    asked: list[str] = []

    def is_over(waiting: Waiting) -> bool:
        asked.append(waiting.dag_run_id)
        return False

    take_turn(tmp_path, "dag", "a", is_over)
    take_turn(tmp_path, "dag", "c", is_over)
    assert asked == ["a"]


def test_a_queue_that_cannot_be_read_blocks_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ask(tmp_path, "a")
    (tmp_path / "turn.json").write_text('{"kind": "turn", "runs": [')
    with caplog.at_level(logging.WARNING):
        assert ask(tmp_path, "b") == []
    assert "begins anew" in caplog.text
    assert names(tmp_path) == ["b"]


def test_of_many_at_once_one_has_it_and_the_others_form_a_line(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(lambda number: ask(tmp_path, f"{number:02d}"), range(16)))
    assert sorted(map(len, found)) == list(range(16))
    assert sorted(names(tmp_path)) == [f"{number:02d}" for number in range(16)]


STEPS = st.lists(st.tuples(st.sampled_from(["ask", "leave", "end"]), st.sampled_from("abcd")), max_size=40)


@given(STEPS)
def test_whatever_happens_one_at_most_has_it_and_one_of_the_living_can(steps: list[tuple[str, str]]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        line: list[str] = []
        gone: set[str] = set()
        for step, run in steps:
            if step == "end":
                gone.add(run)
            elif step == "leave":
                leave_turn(folder, "dag", run)
                line = [other for other in line if other != run]
            elif run not in gone:
                line += [] if run in line else [run]
                living = [other for other in line[: line.index(run)] if other not in gone]
                assert (ask(folder, run, "".join(gone)) == []) == (not living)
