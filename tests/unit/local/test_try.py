"""``nightly try``: what it does with what the first look says."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_tasks.records import CandidateRecord, Outcome, utc_now
from local import first_look, try_command
from local.cli import build_parser
from local.errors import Usage
from local.first_look import Told
from local.paths import Home
from regression.results.outcome import CheckLine

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
