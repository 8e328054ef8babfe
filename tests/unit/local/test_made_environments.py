"""Which environments end-to-end tests share, by ``./nightly test`` and by bare pytest, and what is said without any."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from local.environments import ENVIRONMENTS
from tests.support.made_environments import made_environments, shared_environments


@pytest.fixture(autouse=True)
def neither(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As where nobody has set anything and this Python is of no installation."""
    monkeypatch.delenv("NIGHTLY_ENVIRONMENTS", raising=False)
    monkeypatch.setenv("NIGHTLY_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "elsewhere" / "venv"))


def test_those_that_were_named_come_first_then_those_beside_this_python_then_the_users(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert shared_environments() == tmp_path / "home" / "environments"
    monkeypatch.setattr(sys, "prefix", str(ENVIRONMENTS["test"].folder(tmp_path / "beside")))
    assert shared_environments() == tmp_path / "beside"
    monkeypatch.setenv("NIGHTLY_ENVIRONMENTS", str(tmp_path / "named"))
    assert shared_environments() == tmp_path / "named"


def test_without_them_a_test_fails_with_one_sentence_that_says_what_to_call(tmp_path: Path) -> None:
    def make(name: str) -> None:
        made = ENVIRONMENTS[name].folder(folder)
        (made / "bin").mkdir(parents=True)
        (made / "bin" / "python").touch()
        (made / "complete").touch()

    folder = tmp_path / "home" / "environments"
    for found in ("scheduler and no cpu", "cpu"):
        with pytest.raises(pytest.fail.Exception) as caught:
            made_environments()
        told = f"{folder}: expected the environments scheduler and cpu, found no complete {found}"
        assert str(caught.value) == f"{told}; run ./nightly test end_to_end, which makes them"
        make(found.partition(" ")[0])
    assert made_environments() == folder
