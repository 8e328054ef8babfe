"""The hook and the CI lines of the documentation, as they stand there, in a scratch repository."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch

import pytest
import yaml

from local.paths import ROOT
from tests.support.scratch import NIGHTLY, Scratch

pytest.importorskip("pyptx", reason="pyptx is not installed: no commit can be tried")
SAY = """#!/bin/sh
printf '%s\\n' "$@" >> "$PWD/../called"
exit ${ANSWER:-0}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    return Scratch(tmp_path_factory.mktemp("scratch"))


@pytest.fixture
def scratch(place: Scratch) -> Iterator[Scratch]:
    """Branch ``main`` as it was, and a branch ``tile`` whose kernels are pinned as they changed."""
    place.git("checkout", "--quiet", "-B", "work", "main")
    place.git("branch", "--force", "tile", "main")
    yield place
    place.git("reset", "--quiet", "--hard")
    place.git("clean", "--quiet", "--force", "-d")


def called(scratch: Scratch) -> list[str]:
    """The words that ``./nightly`` was called with."""
    path = scratch.root.parent / "called"
    words = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return words


def commit_on(scratch: Scratch, branch: str, path: str, text: str) -> str:
    scratch.git("checkout", "--quiet", branch)
    file = scratch.root / path
    file.write_text(file.read_text() + text)
    found = scratch.commit(f"{path} changed")
    scratch.git("checkout", "--quiet", "work")
    return found


def install(scratch: Scratch) -> None:
    """The hook as its comment says, with a ``./nightly`` that says what it was called with."""
    (scratch.root / "nightly").write_text(SAY)
    scratch.commit("nightly says how it is called")
    lines = (ROOT / "docs/hooks/post-merge").read_text().splitlines()
    (command,) = [line.removeprefix("#   ") for line in lines if line.startswith("#   ")]
    subprocess.run(["sh", "-c", command], cwd=scratch.root, check=True)


def test_a_merge_that_changes_what_nights_run_is_told_with_both_commits(scratch: Scratch) -> None:
    install(scratch)
    before = scratch.git("rev-parse", "HEAD")
    commit_on(scratch, "tile", "kernels/ptx/fused.ptx", "// a remark\n")
    scratch.git("merge", "--quiet", "--no-edit", "tile")
    short = scratch.git("rev-parse", "--short", "HEAD")
    assert called(scratch) == ["changed", "HEAD", "--against", "ORIG_HEAD", "--note", f"merged as {short}"]
    assert scratch.git("rev-parse", "ORIG_HEAD") == before


def test_a_merge_of_anything_else_is_not_told(scratch: Scratch) -> None:
    install(scratch)
    commit_on(scratch, "tile", "README.md", "more\n")
    scratch.git("merge", "--quiet", "--no-edit", "tile")
    assert called(scratch) == []


def test_a_merge_stays_though_nobody_could_be_told(scratch: Scratch) -> None:
    """Without a running stack, as the real command says it; git sets its variables for the hook's ``./nightly`` too."""
    (scratch.root / "nightly").write_text(f"#!/bin/sh\nexec {sys.executable} - \"$@\" <<'END'\n{NIGHTLY}END\n")
    scratch.commit("nightly with this interpreter")
    (scratch.root / ".git/hooks").mkdir(exist_ok=True)
    hook = scratch.root / ".git/hooks/post-merge"
    hook.write_bytes((ROOT / "docs/hooks/post-merge").read_bytes())
    hook.chmod(0o755)
    commit_on(scratch, "tile", "kernels/ptx/fused.ptx", "// a remark\n")
    environment = os.environ | {
        "NIGHTLY_HOME": str(scratch.home),
        "PYTHONPATH": f"{scratch.root}:{scratch.root}/plugins",
    }
    command = ["git", "-c", "user.name=Ann", "-c", "user.email=a@example.org", "merge", "--no-edit", "tile"]
    merged = _run(command, scratch, environment)
    assert merged.returncode == 0, merged.stderr
    assert "nightly: changed: expected a running stack, found none" in merged.stderr
    assert "by hand: ./nightly try HEAD --against ORIG_HEAD" in merged.stderr
    assert scratch.git("diff", "--stat", "ORIG_HEAD", "HEAD", "--", "kernels/ptx")


def _run(command: list[str], scratch: Scratch, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=scratch.root, env=environment, capture_output=True, text=True, check=False)


def ci_line(job: str) -> str:
    """The one command of a job."""
    document = yaml.safe_load((ROOT / "docs/hooks/ci.yml").read_text())
    (line,) = [step["run"] for step in document["jobs"][job]["steps"] if "run" in step]
    return str(line)


def test_the_ci_line_of_a_pull_request_fails_for_a_race_and_passes_for_a_reordering(scratch: Scratch) -> None:
    for change, status in (("unsynchronised", 1), ("reordered", 0)):
        scratch.change(change)
        base, head = scratch.git("rev-parse", "HEAD"), scratch.commit(change)
        scratch.git("checkout", "--quiet", "--detach", base)  # the commit, not what happens to be checked out
        words = ci_line("try").replace('"$HEAD"', head).replace('"$BASE"', base).split()
        assert words[0] == "./nightly"
        tried = scratch.nightly(*words[1:])
        assert tried.returncode == status, tried.stderr
        scratch.git("checkout", "--quiet", "work")
        scratch.git("reset", "--quiet", "--hard", base)


def test_a_pull_request_with_the_same_kernels_in_other_words_starts_no_job(scratch: Scratch) -> None:
    """The command would fail it: there is nothing to compare, and nothing wrong either."""
    base, head = scratch.git("rev-parse", "main"), commit_on(scratch, "tile", "kernels/class_blocks.py", "# a remark\n")
    words = ci_line("try").replace('"$HEAD"', head).replace('"$BASE"', base).split()
    assert scratch.nightly(*words[1:]).returncode == 2
    triggers = yaml.safe_load((ROOT / "docs/hooks/ci.yml").read_text())[True]  # YAML takes the word "on" for a yes
    for event in ("pull_request", "push"):
        patterns = triggers[event]["paths"]
        changed = [*scratch.git("diff", "--name-only", base, head).splitlines(), "kernels/ptx/fused.ptx"]
        matched = [path for path in changed if any(fnmatch(path, pattern) for pattern in patterns)]
        assert matched == ["kernels/ptx/fused.ptx"]


def test_the_ci_line_of_a_push_tells_both_commits(scratch: Scratch) -> None:
    (scratch.root / "nightly").write_text(SAY)
    head = scratch.commit("nightly says how it is called")
    scratch.git("remote", "add", "origin", str(scratch.root))
    environment = os.environ | {"BASE": "b" * 40, "HEAD": head}
    done = _run(["sh", "-c", ci_line("measure")], scratch, environment)
    assert done.returncode == 0, done.stderr
    assert called(scratch) == ["changed", head, "--against", "b" * 40, "--note", "merged to main"]
