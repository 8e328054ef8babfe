"""Specs that are none, kernels that no device could run: one line each, and nothing is left behind."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gpu_tasks.candidates import building
from gpu_tasks.records import Outcome
from tests.unit.gpu_tasks.candidates.checkouts import Checkout
from tests.unit.gpu_tasks.candidates.conftest import Candidate


def train(root: Path, change: Callable[[str], str]) -> None:
    text = (root / "kernels/ptx/class_blocks_train.ptx").read_text(encoding="ascii")
    assert change(text) != text
    (root / "own.ptx").write_text(change(text), encoding="ascii")


def manifest(root: Path, **fields: object) -> None:
    """A copy of the pinned folder whose default variant's first launch has other ``fields``."""
    (root / "own").mkdir()
    for path in (root / "kernels/ptx").iterdir():
        (root / "own" / path.name).write_bytes(path.read_bytes())
    found = json.loads((root / "own/manifest.json").read_text(encoding="utf-8"))
    found["default"] = "fused"
    found["variants"]["fused"]["launches"][0].update(fields)
    (root / "own/manifest.json").write_text(json.dumps(found), encoding="utf-8")


def source(root: Path, text: str) -> None:
    path = root / "kernels/fused.py"
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def link(root: Path, name: str, to: Path | str) -> None:
    (root / name).symlink_to(to)


def nothing(_: Path) -> None:
    pass


BAD: dict[str, tuple[Callable[[Path], None], str, str, str]] = {
    "nothing": (nothing, "", "unknown_candidate", "found ''"),
    "no such thing": (
        nothing,
        "no-such-thing",
        "unknown_candidate",
        "a variant (class_blocks, record, fused), a",
    ),
    "no such commit": (nothing, "deadbeef" * 5, "unknown_candidate", "found 'deadbeef"),
    "an option for git": (nothing, "--output=/tmp/x", "unknown_candidate", "found '--output=/tmp/x'"),
    "a range": (nothing, "HEAD..HEAD", "unknown_candidate", "found 'HEAD..HEAD'"),
    "a tree": (nothing, "HEAD:kernels", "unknown_candidate", "found 'HEAD:kernels'"),
    "a command": (nothing, "$(touch x)", "unknown_candidate", "found '$(touch x)'"),
    "very long": (nothing, "x" * 5000, "unknown_candidate", "found 'xxx"),
    "a long name": (nothing, "x" * 300, "unknown_candidate", "found 'xxx"),
    "bytes": (nothing, "\udcff", "bad_candidate", "--spec: expected printable text, found '\\udcff'"),
    "two lines": (nothing, "a\nb", "bad_candidate", "--spec: expected printable text"),
    "no such bundle": (nothing, "candidate-0123456789abcdef", "unknown_bundle", "expected a bundle in"),
    "a file elsewhere": (nothing, "/etc/hostname", "candidate_outside", "expected a path inside the repository"),
    "a way out": (nothing, "kernels/" + "../" * 30 + "etc/hostname", "candidate_outside", "found /etc/hostname"),
    "no such file": (nothing, "/no/such/file.ptx", "no_such_file", "expected a file in the repository, found none"),
    "a link out": (
        lambda r: link(r, "own.ptx", "/etc/hostname"),
        "own.ptx",
        "candidate_outside",
        "found /etc/hostname",
    ),
    "a link in the way": (
        lambda r: link(r, "own", "/etc"),
        "own/hostname",
        "candidate_outside",
        "found /etc/hostname",
    ),
    "a broken link": (lambda r: link(r, "own.ptx", "/nowhere"), "own.ptx", "no_such_file", "found a broken link"),
    "a circle": (lambda r: link(r, "own.ptx", "own.ptx"), "own.ptx", "no_such_file", "found a broken link"),
    "a folder": (nothing, "kernels/ptx", "bad_candidate", "kernels/ptx: expected a file, found a folder"),
    "another file": (
        nothing,
        "kernels/ptx/SHA256SUMS",
        "bad_candidate",
        "expected kernels/*.py, a .ptx or a",
    ),
    "another source": (
        lambda r: (r / "own.py").write_text("", encoding="utf-8"),
        "own.py",
        "bad_candidate",
        "own.py: expected kernels/*.py",
    ),
    "binary": (lambda r: (r / "own.ptx").write_bytes(bytes(range(256))), "own.ptx", "kernel_file_not_text", "own.ptx"),
    "too large": (
        lambda r: (r / "own.ptx").write_bytes(b"x" * (4 * 1024 * 1024 + 1)),
        "own.ptx",
        "bad_kernel_manifest",
        "own.ptx: size: expected at most",
    ),
    "no entry": (lambda r: (r / "own.ptx").write_text("x", encoding="ascii"), "own.ptx", "no_such_entry", "found none"),
    "another entry": (
        lambda r: train(r, lambda t: t.replace(".entry train(", ".entry teach(")),
        "own.ptx",
        "no_such_entry",
        "own.ptx: .entry: expected one of train, score, stats, fused, found teach",
    ),
    "an unknown architecture": (
        lambda r: train(r, lambda t: t.replace(".target sm_80", ".target sm_70")),
        "own.ptx",
        "ptx_target",
        "own.ptx: PTX line 2: expected .target sm_80 or sm_90, found sm_70",
    ),
    "another architecture": (
        lambda r: train(r, lambda t: t.replace(".version 7.0\n.target sm_80", ".version 8.0\n.target sm_90")),
        "own.ptx",
        "other_architecture",
        ".target: expected sm_80, as the manifest has it, found sm_90",
    ),
    "malformed": (
        lambda r: train(r, lambda t: t.replace("bar.sync 0;", "bar.sync 0", 1)),
        "own.ptx",
        "ptx_syntax",
        "own.ptx: PTX line ",
    ),
    "more shared memory than there is": (
        lambda r: manifest(r, shared_dynamic_bytes=200_000),
        "own/manifest.json",
        "shared_memory",
        "own/manifest.json: fused: expected at most 166912 bytes",
    ),
    "an entry that the text has not": (
        lambda r: manifest(r, entry="melted"),
        "own/manifest.json",
        "wrong_entry",
        ".entry: expected melted, found fused",
    ),
    "text outside, by its manifest": (
        lambda r: (manifest(r), (r / "own/fused.ptx").unlink(), link(r, "own/fused.ptx", "/etc/hostname"))[0],
        "own/manifest.json",
        "candidate_outside",
        "found /etc/hostname",
    ),
    "no manifest": (
        lambda r: (r / "own.json").write_text("{}", encoding="utf-8"),
        "own.json",
        "bad_record",
        "own.json: $.format: expected a value, found nothing",
    ),
    "a source that does not parse": (
        lambda r: source(r, "def broken(\n"),
        "kernels/fused.py",
        "does_not_build",
        "kernels/fused.py: expected kernels that build, found: SyntaxError: '(' was never closed (File \"kernels/",
    ),
    "a source that raises": (
        lambda r: source(r, "raise ValueError('no such luck')\n"),
        "kernels/fused.py",
        "does_not_build",
        'found: ValueError: no such luck (File "kernels/fused.py", line',
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_candidate(
    checkout: Checkout, candidate: Candidate, tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    prepare, spec, code, words = BAD[what]
    prepare(checkout.root)
    status, record = candidate(spec)
    assert (status, record.outcome) == (2, Outcome.BAD_INPUT)
    assert record.reason is not None
    assert (record.reason.code, words in record.reason.message) == (code, True), record.reason
    assert (record.bundle, record.kernel, record.equals_pinned) == (None, None, None)
    error = capsys.readouterr().err
    assert error == f"gpu_tasks candidate: bad_input: {code}: {record.reason.message}\n"
    assert not list((tmp_path / "candidates").glob("*")), "nothing is left behind"
    assert not (checkout.root / "x").exists()


@pytest.mark.parametrize(
    ("spec", "options", "code", "words"),
    [
        ("fused", ["--variant", "record"], "unknown_variant", "--variant: expected fused, as --spec has it"),
        (
            "kernels/fused.py",
            ["--variant", "fastest"],
            "unknown_variant",
            "class_blocks or fused or record, found",
        ),
        (
            "kernels/ptx/fused.ptx",
            ["--variant", "record"],
            "bad_kernel_manifest",
            ".entry: expected one of stats,",
        ),
        ("fused", ["--against", "nope"], "unknown_candidate", "found 'nope'"),
        ("fused", ["--against", "/etc/hostname"], "candidate_outside", "found /etc/hostname"),
        ("fused", ["--against", "a\tb"], "bad_candidate", "--against: expected printable text"),
        ("fused", ["--workload", "chess"], "unknown_workload", "found 'chess'"),
    ],
)
def test_what_does_not_go_together(candidate: Candidate, spec: str, options: list[str], code: str, words: str) -> None:
    status, record = candidate(spec, *options)
    assert status == 2
    assert record.reason is not None
    assert (record.reason.code, words in record.reason.message) == (code, True), record.reason


def test_what_git_says_where_it_knows_no_refs(checkout: Checkout, candidate: Candidate) -> None:
    with (checkout.root / ".git/config").open("a", encoding="utf-8") as config:
        config.write("[[[\n")
    _, record = candidate("HEAD")
    assert record.reason is not None
    assert "found 'HEAD'; there are no refs here: fatal: bad config line" in record.reason.message
    (checkout.root / ".git").rename(checkout.root / "git")
    _, record = candidate("HEAD")
    assert record.reason is not None
    assert "there are no refs here: fatal: not a git repository" in record.reason.message


def test_a_commit_without_kernels(checkout: Checkout, candidate: Candidate) -> None:
    checkout.git("rm", "-q", "-r", "--cached", "kernels")
    checkout.git("commit", "-q", "-m", "gone")
    status, record = candidate("HEAD")
    assert (status, record.reason and record.reason.code) == (2, "no_kernels_in_commit")


def test_a_commit_that_does_not_build(checkout: Checkout, candidate: Candidate) -> None:
    source(checkout.root, "import no_such_package\n")
    broken = checkout.commit("broken")
    checkout.git("revert", "--no-edit", "HEAD")
    status, record = candidate(broken)
    assert status == 2
    assert record.reason is not None
    expected = (
        f"{broken[:12]}: expected kernels that build, found: ModuleNotFoundError: No module named 'no_such_package'"
    )
    assert (record.reason.code, record.reason.message.startswith(expected)) == ("does_not_build", True), record.reason


def test_a_commit_with_a_link_out_of_it(checkout: Checkout, candidate: Candidate) -> None:
    (checkout.root / "kernels/qda.py").unlink()
    (checkout.root / "kernels/qda.py").symlink_to("/etc/hostname")
    linked = checkout.commit("a link")
    status, record = candidate(linked)
    assert (status, record.reason and record.reason.code) == (2, "bad_commit")


def test_a_build_that_does_not_end(checkout: Checkout, candidate: Candidate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "TIMEOUT_S", 0.5)
    source(checkout.root, "while True: pass\n")
    status, record = candidate("kernels/fused.py")
    assert status == 2
    assert record.reason is not None
    assert "expected kernels that are built within 0.5 s" in record.reason.message


def test_without_what_builds_kernels(checkout: Checkout, candidate: Candidate, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyptx" else find(name))
    status, record = candidate("kernels/fused.py")
    assert (status, record.outcome) == (5, Outcome.INFRASTRUCTURE_FAILURE)
    assert record.reason is not None
    assert record.reason.code == "pyptx_missing"
    assert candidate("fused")[0] == 0, "what is text already needs none"


def test_a_folder_for_bundles_is_needed(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from gpu_tasks.programs.cli import main

    monkeypatch.delenv("NIGHTLY_CANDIDATES", raising=False)
    out = str(tmp_path / "c.json")
    assert main(["candidate", "--spec", "fused", "--out", out]) == 2
    assert "no_candidates_folder" in capsys.readouterr().err
    monkeypatch.setenv("NIGHTLY_CANDIDATES", str(tmp_path / "own"))
    assert main(["candidate", "--spec", "fused", "--out", out]) == 0
    assert len([path for path in (tmp_path / "own").iterdir() if path.is_dir()]) == 2
    monkeypatch.setenv("NIGHTLY_CANDIDATES", str(tmp_path / "c.json"))
    assert main(["candidate", "--spec", "fused", "--out", out]) == 5
    assert "candidates_not_written" in capsys.readouterr().err
