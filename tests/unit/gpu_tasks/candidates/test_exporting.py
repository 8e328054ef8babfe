"""What a commit has, written beside the checkout: files, folders and links of it, and nothing outside."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu_tasks.candidates import repository
from gpu_tasks.records import BadInput

COMMIT = "c" * 40


@pytest.fixture
def archived(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has git answer with an archive of such members."""

    def of(*members: tuple[str, dict[str, Any]]) -> None:
        written = io.BytesIO()
        with tarfile.open(fileobj=written, mode="w") as archive:
            for name, fields in members:
                member = tarfile.TarInfo(name)
                data = fields.pop("data", b"")
                member.size = len(data)
                for field, value in fields.items():
                    setattr(member, field, value)
                archive.addfile(member, io.BytesIO(data))
        answer = subprocess.CompletedProcess([], 0, written.getvalue(), b"")
        monkeypatch.setattr(repository, "git", lambda *_, **__: answer)

    return of


@pytest.fixture(autouse=True)
def early_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11.0 to 3.11.3 know no filters, and a later one must not need them."""

    def extract_all(_archive: tarfile.TarFile, _path: Path = Path()) -> None:
        raise AssertionError("extracts without a filter")

    monkeypatch.setattr(tarfile.TarFile, "extractall", extract_all)


def link(to: str, kind: bytes = tarfile.SYMTYPE) -> dict[str, Any]:
    return {"type": kind, "linkname": to}


def test_files_folders_and_links_of_the_commit_are_written(archived: Callable[..., None], tmp_path: Path) -> None:
    archived(
        ("kernels/", {"type": tarfile.DIRTYPE, "mode": 0o775}),
        ("kernels/a.py", {"data": b"a = 1\n", "mode": 0o664}),
        ("kernels/deep/er/run", {"data": b"#!/bin/sh\n", "mode": 0o775}),
        ("kernels/b.py", link("a.py")),
        ("kernels/deep/c.py", link("../a.py")),
    )
    repository.export(tmp_path, COMMIT, "kernels", tmp_path / "out")
    kernels = tmp_path / "out" / "kernels"
    assert {(kernels / name).read_bytes() for name in ("a.py", "b.py", "deep/c.py")} == {b"a = 1\n"}
    assert (kernels / "a.py").stat().st_mode & 0o777 == 0o644
    assert (kernels / "deep/er/run").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    "member",
    [
        ("../outside.py", {"data": b"x"}),
        ("kernels/../../outside.py", {"data": b"x"}),
        ("kernels/link.py", link("../../outside.py")),
        ("kernels/link.py", link("/etc/hostname")),
        ("kernels/hard.py", link("kernels/a.py", tarfile.LNKTYPE)),
        ("kernels/pipe", {"type": tarfile.FIFOTYPE}),
        ("kernels/device", {"type": tarfile.CHRTYPE}),
    ],
    ids=lambda member: f"{member[0]}{member[1].get('linkname', '')}",
)
def test_nothing_else_is_written(
    archived: Callable[..., None], tmp_path: Path, member: tuple[str, dict[str, Any]]
) -> None:
    archived(("kernels/a.py", {"data": b"a = 1\n"}), (member[0], dict(member[1])))
    with pytest.raises(BadInput, match="expected plain files in kernels/, found: ") as caught:
        repository.export(tmp_path, COMMIT, "kernels", tmp_path / "out")
    assert caught.value.code == "bad_commit"
    written = [path for path in tmp_path.rglob("*") if not path.is_dir()]
    assert written == [tmp_path / "out" / "kernels" / "a.py"]


def test_a_link_that_is_a_folder_leads_no_file_outside(archived: Callable[..., None], tmp_path: Path) -> None:
    archived(("kernels/a", link("..")), ("kernels/a/b", link("..")), ("kernels/a/b/outside.py", {"data": b"x"}))
    with pytest.raises(BadInput):
        repository.export(tmp_path, COMMIT, "kernels", tmp_path / "out")
    assert not (tmp_path / "outside.py").exists()
