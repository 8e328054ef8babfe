"""The folder of a run: what an earlier try left is put aside, whole, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from regression.nights.folder import Night


def test_every_earlier_try_gets_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTLY_RUNS", str(tmp_path))
    night = Night("d", "r")
    night.put_aside_earlier_try()
    assert list(tmp_path.iterdir()) == []
    for content in "ab":
        night.folder.mkdir(parents=True, exist_ok=True)
        night.request_file.write_text(content)
        (night.folder / "round-00.json").write_text(content)
        night.put_aside_earlier_try()
        assert list(night.folder.glob("*.json")) == []
    found = {path.relative_to(night.folder).as_posix(): path.read_text() for path in night.folder.rglob("*.json")}
    assert found == {
        f"earlier-{n}/{name}": c for n, c in ((1, "a"), (2, "b")) for name in ("request.json", "round-00.json")
    }
