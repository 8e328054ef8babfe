"""``nightly try``: what it does with what the first look says."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from gpu_tasks.records import CandidateRecord, Outcome, utc_now
from local import first_look, try_command
from local.cli import build_parser
from local.conclusions import Conclusion
from local.errors import Usage
from local.first_look import Told
from local.paths import Home
from regression.results.gates import GateLine
from regression.results.outcome import CheckLine, RunVerdict

TRIED = CandidateRecord(
    kind="candidate",
    created_at=utc_now(),
    outcome=Outcome.OK,
    reason=None,
    workload="qda",
    spec="fused",
    origin="variant",
    commit=None,
    modified=None,
    bundle=f"candidate-{'a' * 16}",
    kernel=None,
    against=None,
    against_bundle=f"candidate-{'b' * 16}",
    equals_pinned=False,
    notes=[],
)


@pytest.mark.parametrize(("word", "status"), [("ok", None), ("regressed", 1)])
def test_what_was_to_be_queued_and_can_run_nowhere_is_no_success(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, word: str, status: int | None
) -> None:
    """Whoever asks for the id of a run would go on with an empty one."""
    told = Told({"compare_predictions": CheckLine(word, "why")}, {"compare_predictions": {}}, "a table")
    monkeypatch.setattr(first_look, "freeze", lambda *_, **__: TRIED)
    monkeypatch.setattr(first_look, "look", lambda *_, **__: None)
    monkeypatch.setattr(first_look, "told", lambda _: told)
    monkeypatch.setattr(try_command, "_require_running", lambda *_: None)
    monkeypatch.setattr(try_command, "_device", lambda *_: None)
    arguments = build_parser().parse_args(["try", "fused", "--queue"])
    if status is None:
        with pytest.raises(Usage, match="expected a GPU or --device, found neither; nothing was queued"):
            try_command.command_try(Home(tmp_path), arguments)
    else:
        assert try_command.command_try(Home(tmp_path), arguments) == status


@pytest.mark.parametrize("device", [None, "simulated"])
def test_what_the_comparison_says_the_first_look_does_not_say_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], device: str | None
) -> None:
    told = Told({"compare_predictions": CheckLine("ok", "why")}, {"compare_predictions": {}}, "a table")
    monkeypatch.setattr(first_look, "freeze", lambda *_, **__: TRIED)
    monkeypatch.setattr(first_look, "look", lambda *_, **__: None)
    monkeypatch.setattr(first_look, "told", lambda _: told)
    monkeypatch.setattr(try_command, "_device", lambda *_: device)
    monkeypatch.setattr(try_command, "hold", lambda *_, **__: nullcontext())
    monkeypatch.setattr(try_command, "compare", lambda *_: (ENDED, told))
    assert try_command.command_try(Home(tmp_path), build_parser().parse_args(["try", "fused"])) == 0
    assert capsys.readouterr().err.count("a table") == 1


@pytest.mark.parametrize(("rounds", "told"), [("14", "./nightly promote try__1"), ("0", "tried with --rounds 14")])
def test_a_run_that_promote_would_refuse_for_its_rounds_is_not_offered_to_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], rounds: str, told: str
) -> None:
    table = Told({"compare_predictions": CheckLine("ok", "why")}, {"compare_predictions": {}}, "a table")
    monkeypatch.setattr(first_look, "freeze", lambda *_, **__: TRIED)
    monkeypatch.setattr(first_look, "look", lambda *_, **__: None)
    monkeypatch.setattr(first_look, "told", lambda _: table)
    monkeypatch.setattr(try_command, "_device", lambda *_: "simulated")
    monkeypatch.setattr(try_command, "hold", lambda *_, **__: nullcontext())
    monkeypatch.setattr(try_command, "compare", lambda *_: (ENDED, table))
    arguments = build_parser().parse_args(["try", "fused", "--rounds", rounds])
    assert try_command.command_try(Home(tmp_path), arguments) == 0
    (accept,) = (line for line in capsys.readouterr().err.splitlines() if line.startswith("accept:"))
    assert told in accept


CHECK = CheckLine("ok", "11000 of 11000 predictions")
ENDED = Conclusion(
    "try__1",
    "success",
    RunVerdict(
        *("run-1", "try__1", "qda", "a GPU", "ok"),
        {"compare_predictions": CHECK},
        *(11000, 11000, 0),
        energy_trust="unverified",
        gates=(GateLine("sampling", "run", None, "power was sampled in 0 of 0 valid rounds"),),
    ),
    [],
    [],
)


@pytest.mark.parametrize(
    ("told", "again"),
    [
        (None, True),
        ({"compare_predictions": CHECK}, False),
        ({"compare_predictions": CheckLine("regressed", "what the record says and the database does not")}, True),
    ],
)
def test_a_conclusion_says_again_only_what_was_told_otherwise(told: dict[str, CheckLine] | None, again: bool) -> None:
    (text,) = ENDED.lines(told)
    assert ("compare_predictions" in text) == again
    assert ("sampling" in text) == (told is None)
    assert text.endswith("verdict: ok (exit 0)")
    assert not text.startswith("\n")
