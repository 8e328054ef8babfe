"""The folder of a run: what an earlier try left is put aside, whole, and nothing else is touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpu_tasks.records import write_record
from regression.nights.folder import Night
from tests.integration.regression.example_records import run_record


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


@pytest.mark.parametrize(
    ("asked", "own", "expected"),
    [("classic", "audited", "classic"), (None, "audited", "audited"), (None, None, "classic")],
)
def test_the_protocol_of_the_rounds_is_the_one_that_the_run_record_will_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str | None, own: str | None, expected: str
) -> None:
    monkeypatch.setenv("NIGHTLY_RUNS", str(tmp_path))
    record = run_record()
    assert record.provision
    request, provision = replace(record.request, protocol=asked), replace(record.provision, protocol=own)
    night = Night(request.dag_id, request.dag_run_id)
    write_record(request, night.request_file)
    write_record(provision, night.folder / "provision.json")
    assert night.protocol == expected == replace(record, request=request, provision=provision).protocol
