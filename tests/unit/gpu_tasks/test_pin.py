"""``pin --build`` and what ``verify`` says of sources that are not pinned, in a copy of the checkout."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu_tasks.programs import pin, pin_kernels, verify
from gpu_tasks.programs.cli import main
from gpu_tasks.records import FileMismatch, Outcome, VerifyRecord, read_record
from gpu_tasks.sources import PINS, SourcesReport
from tests.unit.gpu_tasks.candidates.checkouts import CHANGES
from tests.unit.gpu_tasks.running import ROOT, complaint, program


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of what is pinned, and pinned as it is."""
    for house in ("gpu_tasks", "kernels"):
        shutil.copytree(ROOT / house, tmp_path / house, ignore=shutil.ignore_patterns("__pycache__"))
    assert run(tmp_path, "pin").returncode == 0
    return tmp_path


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return program(*arguments, root=root, PYTHONPATH=str(root), PYTHONDONTWRITEBYTECODE="1")


def change(root: Path, name: str) -> None:
    subprocess.run(["git", "apply", str(CHANGES / f"{name}.patch")], cwd=root, check=True, env={"GIT_DIR": "/nowhere"})


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_right_kernel_is_built_and_pinned(root: Path) -> None:
    before = contents(root)
    change(root, "reordered")
    result = run(root, "pin", "--build")
    assert result.returncode == 0, result.stderr
    after = contents(root)
    assert {name for name in after if after[name] != before[name]} == {
        PINS,
        "kernels/class_blocks.py",
        "kernels/ptx/SHA256SUMS",
        "kernels/ptx/class_blocks_score.ptx",
        "kernels/ptx/manifest.json",
    }
    assert after.keys() == before.keys()
    assert "emulator: class_blocks on 11 draws, races looked for\n" in result.stderr
    assert f"{root}/kernels/ptx/class_blocks_score.ptx: written\n" in result.stderr
    assert run(root, "verify", "--subject", "sources").returncode == 0
    assert subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=root / "kernels/ptx", check=True)
    again = run(root, "pin", "--build")
    assert f"{root}/kernels/ptx: up to date\n" in again.stderr
    assert contents(root) == after


def with_another_file(root: Path) -> None:
    wrote = "atexit.register(lambda: (pathlib.Path(sys.argv[-1]) / 'more.ptx').write_bytes(b'\\xc3'))"
    with (root / "kernels/fused.py").open("a", encoding="utf-8") as source:
        source.write(f"\nimport atexit, pathlib, sys  # noqa\n{wrote}\n")


def with_what_is_no_file(root: Path) -> None:
    (root / "kernels/own.py").symlink_to("own.py")


@pytest.mark.parametrize(
    ("spoil", "code"), [(with_another_file, "kernel_file_not_text"), (with_what_is_no_file, "unpinnable_source")]
)
def test_what_cannot_be_pinned_writes_nothing(root: Path, spoil: Callable[[Path], None], code: str) -> None:
    change(root, "reordered")
    spoil(root)
    before = contents(root)
    result = run(root, "pin", "--build")
    assert (result.returncode, contents(root)) == (2, before), result.stderr
    assert f"gpu_tasks pin: bad_input: {code}: " in result.stderr
    assert "Traceback" not in result.stderr


def unsynchronised(root: Path) -> None:
    change(root, "unsynchronised")


def with_a_centre_for_a_mean(root: Path) -> None:
    path = root / "kernels/class_blocks.py"
    text = path.read_text(encoding="utf-8")
    assert text.count("words[:9], words[9:18],") == 1
    path.write_text(text.replace("words[:9], words[9:18],", "words[:9], words[:9],"), encoding="utf-8")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (unsynchronised, r"draw 0: kernel train, PTX line \d+, block 0, thread \d+: read of byte \d+ of shared memory"),
        (with_a_centre_for_a_mean, r"draw 0: \d+ of 1000 predictions disagree, the first at index .* \(and 10 more\)"),
    ],
)
def test_a_wrong_kernel_is_not(root: Path, spoil: Callable[[Path], None], said: str) -> None:
    spoil(root)
    before = contents(root)
    result = run(root, "pin", "--build")
    assert result.returncode == 1, result.stderr
    assert contents(root) == before, "nothing is written"
    assert re.match(rf"gpu_tasks pin: regression: kernel_wrong: class_blocks: {said}", complaint(result))
    assert complaint(result).endswith("; nothing was written")
    assert len([line for line in result.stderr.splitlines() if line.startswith("class_blocks: draw ")]) <= 10


def test_every_variant_that_is_new_is_tried(root: Path) -> None:
    path = root / "kernels/build.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("FUSED_SHARED_BYTES = 60992", "FUSED_SHARED_BYTES = 61008"), encoding="utf-8")
    result = run(root, "pin", "--build")
    assert result.returncode == 0, result.stderr
    assert "emulator: class_blocks, fused on 11 draws, races looked for\n" in result.stderr
    assert "kernels/ptx/manifest.json: written" in result.stderr, "the same text, launched otherwise"


def test_sources_that_do_not_build_are_not_pinned(root: Path) -> None:
    path = root / "kernels/fused.py"
    path.write_text(path.read_text(encoding="utf-8") + "raise RuntimeError('no')\n", encoding="utf-8")
    before = contents(root)
    result = run(root, "pin", "--build")
    assert result.returncode == 2
    assert "does_not_build: kernels: expected kernels that build, found: RuntimeError: no" in complaint(result)
    assert contents(root) == before


def test_the_committed_text_is_what_the_sources_make(root: Path) -> None:
    """A text that was edited by hand gives way to what its source makes, which is emulated though it is no news."""
    path = root / "kernels/ptx/class_blocks_train.ptx"
    text = path.read_bytes()
    path.write_bytes(text.replace(b"\tbar.sync 0;\n", b"", 1))
    result = run(root, "pin", "--build")
    assert result.returncode == 0, result.stderr
    assert path.read_bytes() == text


def test_an_interruption_leaves_nothing_half_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The signal comes with the first file; the second one and the pins are written all the same."""
    new = {tmp_path / name: name for name in ("a.ptx", "manifest.json")}
    pinned = []

    def write(text: str, path: Path) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        path.write_text(text, encoding="ascii")

    monkeypatch.setattr(pin_kernels, "tried_kernels", lambda: new)
    monkeypatch.setattr(pin, "write_text_atomically", write)
    monkeypatch.setattr(pin, "write_pins", lambda _: pinned.append(sorted(p.name for p in tmp_path.iterdir())))
    before = signal.getsignal(signal.SIGTERM)
    try:
        status = main(["pin", "--build"])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert status == Outcome.INFRASTRUCTURE_FAILURE.exit_code, "it says that it was interrupted"
    assert pinned == [["a.ptx", "manifest.json"]]


def test_verify_says_what_to_do(root: Path, tmp_path: Path) -> None:
    change(root, "reordered")
    ours = root / "gpu_tasks/float32.py"
    ours.write_text(ours.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    result = run(root, "verify", "--subject", "sources")
    assert result.returncode == 4
    line = complaint(result)
    digest = "[0-9a-f]{64}"
    assert re.fullmatch(
        "gpu_tasks verify: verification_mismatch: sources_mismatch: "
        f"gpu_tasks/float32.py: sha256: expected {digest}, found {digest}; "
        f"kernels/class_blocks.py: sha256: expected {digest}, found {digest}; "
        "to see what a changed kernel does, run ./nightly try kernels/class_blocks.py; "
        "if the change is meant, run ./nightly pin",
        line,
    ), line
    allowed = run(root, "verify", "--subject", "sources", "--allow-kernels")
    assert allowed.returncode == 4
    assert "class_blocks" not in complaint(allowed)
    assert "try" not in complaint(allowed)
    assert "not what is pinned, and allowed to be: kernels/class_blocks.py\n" in allowed.stderr


def report(*files: str, found: str = "f" * 64) -> Any:
    mismatches = [FileMismatch(file, "sha256", "e" * 64, found) for file in files]
    return lambda _: SourcesReport("0" * 64, {"gpu_tasks/a.py": "0" * 64}, mismatches)


def verified(monkeypatch: pytest.MonkeyPatch, folder: Path, found: Any, *options: str) -> VerifyRecord:
    monkeypatch.setattr(verify, "verify_sources", found)
    main(["verify", "--subject", "sources", *options, "--out", str(folder / "verify.json")])
    return read_record(folder / "verify.json", VerifyRecord)


@pytest.mark.parametrize("more", [0, 1, 5])
def test_ten_files_are_named_and_the_others_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, more: int) -> None:
    files = [f"gpu_tasks/{number:02d}.py" for number in range(10 + more)]
    record = verified(monkeypatch, tmp_path, report(*files))
    assert record.reason is not None
    message = record.reason.message
    assert [f"{name}: sha256: expected {'e' * 64}, found {'f' * 64}" in message for name in files] == (
        [True] * 10 + [False] * more
    )
    counted = {0: "", 1: "; and 1 more file", 5: "; and 5 more files"}[more]
    assert message.endswith(f"found {'f' * 64}{counted}; if the change is meant, run ./nightly pin")
    assert len(record.mismatches) == 10 + more, "the record has them all"


@pytest.mark.parametrize(
    ("files", "tried"),
    [
        (["kernels/fused.py"], "kernels/fused.py"),
        (["kernels/ptx/fused.ptx"], "kernels/ptx/fused.ptx"),
        (["kernels/ptx/fused.ptx", "kernels/qda.py"], "kernels/qda.py"),
        (["kernels/ptx/SHA256SUMS", "gpu_tasks/kernels/x.py"], None),
    ],
)
def test_a_kernel_can_be_tried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: list[str], tried: str | None
) -> None:
    record = verified(monkeypatch, tmp_path, report(*files))
    assert record.reason is not None
    assert ("./nightly try" in record.reason.message) is (tried is not None)
    assert tried is None or f"run ./nightly try {tried}; " in record.reason.message
    record = verified(monkeypatch, tmp_path, report(*files, found="missing"))
    assert record.reason is not None
    assert "./nightly try" not in record.reason.message, "what is gone cannot be tried"


@pytest.mark.parametrize(
    ("file", "allowed"),
    [
        ("kernels/fused.py", True),
        ("kernels/ptx/fused.ptx", True),
        ("kernels/ptx/SHA256SUMS", True),
        ("kernels/ptx/control.ptx", False),
        ("kernels/ptx/manifest.json", False),
        ("gpu_tasks/kernels.py", False),
        ("gpu_tasks/devices/cuda/device.py", False),
    ],
)
def test_what_a_run_that_tries_a_kernel_may_find_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str, allowed: bool
) -> None:
    record = verified(monkeypatch, tmp_path, report(file), "--allow-kernels")
    assert ([mismatch.file for mismatch in record.mismatches] == [], record.reason is None) == (allowed, allowed)
    assert record.outcome is (Outcome.OK if allowed else Outcome.VERIFICATION_MISMATCH)
    assert verified(monkeypatch, tmp_path, report(file)).reason is not None
