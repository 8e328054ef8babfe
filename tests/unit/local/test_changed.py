"""``nightly changed``: what it says of what it has told the running stack."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local import changed_command, history, runs
from local.changed_command import command_changed
from local.cli import build_parser
from local.paths import Home
from local.try_command import ASKED


@pytest.mark.parametrize(
    ("options", "against"), [([], "the pinned kernels"), (["--against", "HEAD~1"], f"HEAD~1 ({'b' * 12})")]
)
def test_it_says_what_is_compared_with_what_and_where_the_answer_will_be(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    against: str,
) -> None:
    told: list[dict[str, Any]] = []

    def asset_event(_name: str, extra: dict[str, Any]) -> int:
        told.append(extra)
        return 7

    client = SimpleNamespace(asset_event=asset_event)
    state = SimpleNamespace(airflow_ready=True)
    monkeypatch.setattr(changed_command, "Stack", lambda *_: SimpleNamespace(state=lambda: state))
    monkeypatch.setattr(changed_command, "hold", lambda *_, **__: nullcontext(SimpleNamespace(airflow=lambda: client)))
    monkeypatch.setattr(runs, "make_available", lambda *_: None)
    monkeypatch.setattr(history, "commit", {"HEAD": "a" * 40, "HEAD~1": "b" * 40}.__getitem__)
    arguments = build_parser().parse_args(["changed", *options])
    assert command_changed(Home(tmp_path), arguments) == 0
    output, errors = capsys.readouterr()
    assert output == f"kernel_changed: event 7, HEAD ({'a' * 12}) against {against}\n"
    assert ASKED in errors
    assert told == [{"candidate": "a" * 40, **({"against": "b" * 40} if options else {})}]
