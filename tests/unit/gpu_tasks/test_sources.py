"""The pins: current, and every kind of difference named."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from pathlib import Path

import pytest

from gpu_tasks.records import BadInput, VerificationMismatch
from gpu_tasks.sources import PINS, ROOT, source_files, verify_sources, write_pins


def test_the_committed_pins_are_current() -> None:
    mismatches = verify_sources(ROOT).mismatches
    assert mismatches == [], (
        "the sources changed: if that is meant, run ./nightly pin and commit gpu_tasks/SOURCES.sha256"
    )


def test_what_is_pinned() -> None:
    files = source_files(ROOT)
    for path in (
        "gpu_tasks/__main__.py",
        "gpu_tasks/payload/original/manifest.json",
        "gpu_tasks/payload/original/draw-00.npz",
        "gpu_tasks/payload/original/predictions/draw-00.npy",
        "gpu_tasks/workloads/learner/frozen/initial.npy",
        "gpu_tasks/workloads/learner/frozen/manifest.json",
        "gpu_tasks/workloads/learner/frozen/predictions.npy",
        "gpu_tasks/workloads/learner/frozen/states.json",
        "kernels/ptx/SHA256SUMS",
        "gpu_tasks/baselines/qda-original-a100.json",
        "gpu_tasks/environments/cpu/requirements.txt",
        "gpu_tasks/workloads/qda/reference_device.py",
    ):
        assert path in files
    assert PINS not in files
    assert not [path for path in files if "__pycache__" in path]


def test_every_committed_file_of_the_two_houses_is_pinned_but_documents_and_the_pins() -> None:
    command = ["git", "ls-files", "gpu_tasks", "kernels"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("no git checkout")
    committed = {path for path in listed.stdout.splitlines() if (ROOT / path).exists()}
    left_out = committed - set(source_files(ROOT))
    assert {path for path in left_out if not path.endswith(".md")} == {PINS}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    contents = {
        "gpu_tasks/a.py": "a",
        "gpu_tasks/payload/original/manifest.json": "{}",
        "kernels/k.ptx": "k",
        "kernels/SHA256SUMS": "s",
        "plugins/no.py": "not ours",
        "gpu_tasks/__pycache__/a.py": "cache",
        "gpu_tasks/.hidden/a.py": "hidden",
        "gpu_tasks/a.py.swp": "editor",
        "gpu_tasks/a.py~": "another editor",
        "gpu_tasks/#a.py#": "the same one",
        "gpu_tasks/README.md": "document",
        "gpu_tasks/payload/spring/manifest.json": "{}",
        "gpu_tasks/payload/spring/draw-00.npz": "a user's",
        "gpu_tasks/payload/spring/predictions/draw-00.npy": "a user's",
        "gpu_tasks/payload/original/draw-00.npz": "shipped",
        "gpu_tasks/payload/original/predictions/draw-00.npy": "shipped",
        "gpu_tasks/workloads/w/frozen/start.npy": "start",
    }
    for path, text in contents.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    write_pins(tmp_path)
    return tmp_path


def test_pins_are_a_sorted_sha256sum_file(tree: Path) -> None:
    lines = (tree / PINS).read_text(encoding="utf-8").splitlines()
    assert [line[66:] for line in lines] == [
        "gpu_tasks/a.py",
        "gpu_tasks/payload/original/draw-00.npz",
        "gpu_tasks/payload/original/manifest.json",
        "gpu_tasks/payload/original/predictions/draw-00.npy",
        "gpu_tasks/workloads/w/frozen/start.npy",
        "kernels/SHA256SUMS",
        "kernels/k.ptx",
    ]
    assert all(re.fullmatch(r"[0-9a-f]{64}  \S+", line) for line in lines)
    assert verify_sources(tree).mismatches == []
    assert verify_sources(tree).pins_sha256 == hashlib.sha256((tree / PINS).read_bytes()).hexdigest()


def test_changed_missing_and_new_files(tree: Path) -> None:
    pinned = {line[66:]: line[:64] for line in (tree / PINS).read_text(encoding="utf-8").splitlines()}
    (tree / "gpu_tasks/a.py").write_text("b", encoding="utf-8")
    (tree / "kernels/k.ptx").unlink()
    (tree / "kernels/new.py").write_text("n", encoding="utf-8")
    digest = {text: hashlib.sha256(text.encode()).hexdigest() for text in "bn"}
    assert [(m.file, m.expected, m.found) for m in verify_sources(tree).mismatches] == [
        ("gpu_tasks/a.py", pinned["gpu_tasks/a.py"], digest["b"]),
        ("kernels/k.ptx", pinned["kernels/k.ptx"], "missing"),
        ("kernels/new.py", "not pinned", digest["n"]),
    ]


def test_one_bit_of_a_data_file_is_a_difference(tree: Path) -> None:
    path = tree / "gpu_tasks/workloads/w/frozen/start.npy"
    before = path.read_bytes()
    path.write_bytes(bytes([before[0] ^ 1]) + before[1:])
    (found,) = verify_sources(tree).mismatches
    assert found.file == "gpu_tasks/workloads/w/frozen/start.npy"
    assert (found.expected, found.found) == tuple(hashlib.sha256(x).hexdigest() for x in (before, path.read_bytes()))
    path.unlink()
    (found,) = verify_sources(tree).mismatches
    assert (found.expected, found.found) == (hashlib.sha256(before).hexdigest(), "missing")


@pytest.mark.parametrize(
    "path",
    [
        "gpu_tasks/workloads/w/frozen/more.npy",
        "gpu_tasks/payload/original/draw-11.npz",
        "gpu_tasks/payload/build/__init__.py",
        "gpu_tasks/payload/build.cpython-311-x86_64-linux-gnu.so",
        "kernels/table.csv",
        "kernels/no_suffix",
    ],
)
def test_a_file_of_any_kind_that_is_not_pinned_is_a_difference(tree: Path, path: str) -> None:
    (tree / path).parent.mkdir(exist_ok=True)
    (tree / path).write_text("more", encoding="ascii")
    (found,) = verify_sources(tree).mismatches
    assert (found.file, found.expected, found.found) == (path, "not pinned", hashlib.sha256(b"more").hexdigest())


def test_a_link_to_a_folder_is_a_difference_and_no_pin(tree: Path) -> None:
    """Its modules would be found like any other."""
    elsewhere = tree / "elsewhere"
    elsewhere.mkdir()
    (tree / "gpu_tasks/payload/build").symlink_to(elsewhere)
    (found,) = verify_sources(tree).mismatches
    assert (found.file, found.found) == ("gpu_tasks/payload/build", "no file that can be read")
    with pytest.raises(BadInput, match="gpu_tasks/payload/build: expected a file"):
        write_pins(tree)


@pytest.mark.parametrize("text", ["junk\n", "0" * 64 + " one-space\n", "0" * 64 + "  a\n" + "0" * 64 + "  a\n", "\0"])
def test_damaged_pins(tree: Path, text: str) -> None:
    (tree / PINS).write_text(text, encoding="utf-8")
    with pytest.raises(VerificationMismatch, match=r"gpu_tasks/SOURCES\.sha256: line \d: expected"):
        verify_sources(tree)


def test_no_pins(tree: Path) -> None:
    (tree / PINS).unlink()
    with pytest.raises(VerificationMismatch, match="expected a file of pins"):
        verify_sources(tree)


@pytest.mark.parametrize("kind", ["pipe", "circle", "device"])
def test_what_is_no_file_is_a_difference_and_no_pin(tree: Path, kind: str) -> None:
    """A pipe would keep whoever reads it waiting."""
    write_pins(tree)
    odd = tree / "gpu_tasks/odd.py"
    if kind == "pipe":
        os.mkfifo(odd)
    else:
        odd.symlink_to("odd.py" if kind == "circle" else "/dev/zero")
    (found,) = verify_sources(tree).mismatches
    assert (found.file, found.found) == ("gpu_tasks/odd.py", "no file that can be read")
    before = (tree / PINS).read_bytes()
    with pytest.raises(BadInput, match=r"gpu_tasks/odd\.py: expected a file with a printable name"):
        write_pins(tree)
    assert (tree / PINS).read_bytes() == before


@pytest.mark.parametrize("name", ["a\nb.py", "\udcff.py"])
def test_a_name_that_no_line_can_hold_is_a_difference_and_no_pin(tree: Path, name: str) -> None:
    write_pins(tree)
    (tree / "gpu_tasks" / name).write_text("", encoding="ascii")
    (found,) = verify_sources(tree).mismatches
    assert found.file.encode()
    with pytest.raises(BadInput, match="found another name"):
        write_pins(tree)
    assert verify_sources(tree).mismatches == [found]
