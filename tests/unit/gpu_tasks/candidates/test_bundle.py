"""Bundles: the name is the content, everything is pinned, nothing half-written is ever seen."""

from __future__ import annotations

import hashlib
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu_tasks.candidates import bundle
from gpu_tasks.candidates.bundle import bundle_manifest, verify_bundle, write_bundle
from gpu_tasks.devices.manifest import COMMITTED, load_kernels, read_manifest
from gpu_tasks.records import BadInput, InfrastructureFailure, TaskError, VerificationMismatch

MANIFEST, FUSED = read_manifest(COMMITTED), load_kernels(COMMITTED, "fused")


def test_a_bundle_is_one_variant_with_every_hash(tmp_path: Path) -> None:
    name = write_bundle(tmp_path / "new" / "folder", MANIFEST, FUSED)
    manifest = tmp_path / "new" / "folder" / name / "manifest.json"
    assert name == f"candidate-{hashlib.sha256(manifest.read_bytes()).hexdigest()[:16]}"
    found = read_manifest(manifest)
    assert (list(found.variants), found.default, found.control) == (["fused"], "fused", None)
    assert all(launch.sha256 and launch.ptx_lines for launch in found.variants["fused"].launches)
    kernels = load_kernels(manifest)
    assert (kernels.texts, kernels.identity()) == (FUSED.texts, FUSED.identity())
    assert sorted(path.name for path in manifest.parent.iterdir()) == ["fused.ptx", "manifest.json"]
    assert manifest.parent.stat().st_mode & 0o777 == 0o755, "whoever runs the tasks has to read it"


def test_it_is_written_once(tmp_path: Path) -> None:
    name = write_bundle(tmp_path, MANIFEST, FUSED)
    before = (tmp_path / name / "manifest.json").stat()
    assert write_bundle(tmp_path, MANIFEST, FUSED) == name
    assert (tmp_path / name / "manifest.json").stat().st_ino == before.st_ino
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_many_at_once_make_one(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        names = set(pool.map(lambda _: write_bundle(tmp_path, MANIFEST, FUSED), range(16)))
    assert [path.name for path in tmp_path.iterdir()] == list(names)
    verify_bundle(tmp_path / names.pop() / "manifest.json")


def test_a_folder_that_is_none_and_one_that_is_a_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="candidate-0123456789abcdef: expected a bundle in"):
        bundle_manifest(tmp_path, "candidate-0123456789abcdef")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InfrastructureFailure, match="expected a folder that can be written"):
        write_bundle(tmp_path / "file", MANIFEST, FUSED)


def test_what_failed_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Path] = []

    def full(text: str, path: Path) -> None:
        if written:
            raise OSError(28, "No space left on device")
        written.append(path)
        path.write_text(text, encoding="utf-8")

    monkeypatch.setattr(bundle, "write_text_atomically", full)
    with pytest.raises(InfrastructureFailure, match="No space left on device"):
        write_bundle(tmp_path, MANIFEST, FUSED)
    assert written
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("candidates")
    return folder / write_bundle(folder, MANIFEST, FUSED)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_changed_byte_is_found(whole: Path, tmp_path: Path, data: st.DataObject) -> None:
    copy = tmp_path / whole.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(whole, copy)
    path = copy / data.draw(st.sampled_from(sorted(file.name for file in whole.iterdir())))
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 127))
    path.write_bytes(bytes(content))
    with pytest.raises(TaskError):
        bundle_manifest(tmp_path, whole.name)


@pytest.mark.parametrize("left", ["nothing", "no manifest", "other text", "no folder"])
def test_a_damaged_bundle_is_refused_with_what_helps(whole: Path, tmp_path: Path, left: str) -> None:
    """Whoever tries that kernel again has not asked for the bundle by its name."""
    copy = tmp_path / whole.name
    shutil.copytree(whole, copy)
    if left == "no manifest":
        (copy / "manifest.json").unlink()
    elif left == "other text":
        (copy / "fused.ptx").write_text("other", encoding="ascii")
    else:
        shutil.rmtree(copy)
        copy.mkdir() if left == "nothing" else copy.write_text("", encoding="ascii")
    with pytest.raises(VerificationMismatch, match=f"remove {copy} to have it written again") as refused:
        write_bundle(tmp_path, MANIFEST, FUSED)
    assert refused.value.code == "bundle_changed"


def test_another_kernel_under_the_name_of_a_bundle(whole: Path, tmp_path: Path) -> None:
    """All hashes inside are right; the name is not of them."""
    other = tmp_path / write_bundle(tmp_path, MANIFEST, load_kernels(COMMITTED, "record"))
    other.rename(tmp_path / whole.name)
    with pytest.raises(VerificationMismatch, match=r"manifest\.json: sha256: expected it to begin with"):
        bundle_manifest(tmp_path, whole.name)
    verify_bundle(COMMITTED)  # no bundle: nothing to hold it to
